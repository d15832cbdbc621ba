//! `config.yaml`: reading what people have, changing one value and nothing else.
//!
//! [`Config::load`] never fails. A file that is missing gives the defaults; one that is broken gives the defaults and
//! says so in [`Config::problems`]; a single odd value is named there and replaced by its default, and everything else
//! holds. So a conversation always starts, and whoever starts it shows the problems (CFG-6, SEL-5).
//!
//! [`edit`] is the other half: it changes the bytes of one value, or refuses.

#[cfg(test)]
mod agreement;
mod check;
mod compression;
mod document;
pub mod edit;
mod home;
mod json;
mod key;
mod model;
mod plugins;
mod problem;
mod read;
mod resolve;
mod text;
mod timeouts;

pub use check::{Serves, check};
pub use compression::{Compression, TailMode};
pub use home::HermesHome;
pub use key::{KeyError, KeyPath};
pub use model::{AuxiliaryCompression, Fallback, Model, Secret};
pub use plugins::{PluginEntry, Plugins};
pub use problem::{Problem, ProblemKind, Severity};
pub use timeouts::Timeouts;

use read::{Places, Reader};
use serde_json::Value as Json;
use serde_yaml::{Mapping, Value};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of the built-in engine, which serves unless the file names another (SEL-1, SEL-6).
pub const BUILT_IN_ENGINE: &str = "compressor";

/// Top-level sections of the host and of the original. An engine of such a name would otherwise be handed keys and
/// addresses that are not its own.
const HOST_SECTIONS: &[&str] = &[
    "model",
    "models",
    "providers",
    "custom_providers",
    "fallback_providers",
    "fallback_model",
    "auxiliary",
    "secrets",
    "credential_pool_strategies",
    "context",
    "compression",
    "plugins",
    "memory",
    "agent",
    "delegation",
    "gateway",
    "dashboard",
    "terminal",
    "tools",
    "mcp_servers",
    "security",
    "platforms",
    "telegram",
    "discord",
    "slack",
];

/// A configuration as it holds: the resolved tree, the typed sections, and what was wrong.
#[derive(Debug, Clone)]
pub struct Config {
    path: PathBuf,
    exists: bool,
    root: Option<Mapping>,
    places: Places,
    problems: Vec<Problem>,
    broken: bool,
    engine: String,
    compression: Compression,
    model: Model,
    auxiliary_compression: AuxiliaryCompression,
    fallback_providers: Vec<Fallback>,
    plugins: Plugins,
    timeouts: Timeouts,
}

impl Config {
    /// Reads `config.yaml` of a home. Never fails; see the module's text.
    pub fn load(home: &HermesHome) -> Self {
        Self::from_file(&home.config_path())
    }

    /// Reads a file. Never fails.
    pub fn from_file(path: &Path) -> Self {
        match read_bounded(path) {
            Ok(bytes) => Self::from_text(&bytes, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut config = Self::build(None, Places::default(), path, Vec::new());
                config.exists = std::fs::symlink_metadata(path).is_ok();
                if config.exists {
                    let message =
                        "the file is a link to one that is not there; defaults are used".to_owned();
                    config.problems.push(
                        Problem::new(ProblemKind::Unreadable, Severity::Error, path, message)
                            .hint("remove the link or create its target"),
                    );
                    config.broken = true;
                }
                config
            }
            Err(error) => {
                let message = format!("the file cannot be read: {error}; defaults are used");
                let problem = Problem::new(ProblemKind::Unreadable, Severity::Error, path, message)
                    .hint("check its owner and mode");
                Self::unusable(problem, path)
            }
        }
    }

    /// Takes the bytes of a file. `path` is only named in messages.
    pub fn from_text(text: &[u8], path: &Path) -> Self {
        match parse(text, path) {
            Ok((root, places, problems)) => Self::build(root, places, path, problems),
            Err(problem) => Self::unusable(*problem, path),
        }
    }

    /// Reads the file again. A broken one changes nothing but [`problems`](Self::problems): the last good values stay.
    pub fn reload(&mut self) {
        let fresh = Self::from_file(&self.path);
        if fresh.broken && !self.broken {
            self.problems = fresh.problems;
            for problem in &mut self.problems {
                problem.message = problem
                    .message
                    .replace("defaults are used", "the values read before stay in use");
            }
        } else {
            *self = fresh;
        }
    }

    fn unusable(problem: Problem, path: &Path) -> Self {
        let mut config = Self::build(None, Places::default(), path, vec![problem]);
        config.broken = true;
        config
    }

    fn build(
        root: Option<Mapping>,
        places: Places,
        path: &Path,
        mut problems: Vec<Problem>,
    ) -> Self {
        let mut reader = Reader::new(root.as_ref(), &places, path, &mut problems);
        let engine = engine_name(&mut reader);
        let compression = Compression::read(&mut reader);
        let model = Model::read(&mut reader);
        let auxiliary_compression = AuxiliaryCompression::read(&mut reader);
        let fallback_providers = model::read_fallbacks(&mut reader);
        let plugins = Plugins::read(&mut reader);
        let timeouts = Timeouts::read(&mut reader);
        Self {
            path: path.to_owned(),
            exists: true,
            root,
            places,
            problems,
            broken: false,
            engine,
            compression,
            model,
            auxiliary_compression,
            fallback_providers,
            plugins,
            timeouts,
        }
    }

    /// The file this came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Is there a file at all?
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// What was wrong, in the order it was found.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// True when nothing of the file could be used.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// The configured engine, exactly as written; `compressor` when that is absent, null, empty or no text (SEL-1).
    pub fn engine_name(&self) -> &str {
        &self.engine
    }

    /// The engine's own settings (CFG-4): the top-level section of exactly the engine's name, in whatever shape it
    /// has, neither checked nor changed. `{}` when there is none.
    ///
    /// An engine that is named like a section of the host (`model`, `auxiliary`, …) would get settings that are not
    /// its own, keys of providers among them. For those names the section is `context.engines.<name>`.
    pub fn engine_section(&self, engine: &str) -> Json {
        let value = if HOST_SECTIONS.contains(&engine) {
            self.find(&["context", "engines", engine])
        } else {
            self.find(&[engine])
        };
        match value {
            None | Some(Value::Null) => Json::Object(serde_json::Map::new()),
            Some(value) => json::to_json(value),
        }
    }

    /// The `compression` block.
    pub fn compression(&self) -> &Compression {
        &self.compression
    }

    /// The `compression` block for the built-in engine: what the file says, every key of ours with its valid value.
    pub fn compression_json(&self) -> Json {
        self.compression
            .to_json(self.find(&["compression"]).map(json::to_json))
    }

    /// The `model` section.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// `auxiliary.compression`.
    pub fn auxiliary_compression(&self) -> &AuxiliaryCompression {
        &self.auxiliary_compression
    }

    /// `fallback_providers`, in order.
    pub fn fallback_providers(&self) -> &[Fallback] {
        &self.fallback_providers
    }

    /// The `plugins` section.
    pub fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// `context.timeouts`.
    pub fn context_timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// A value of the file by its dotted key, aliases and merge keys resolved; list items go by number.
    pub fn get(&self, key: &str) -> Option<Json> {
        let key = KeyPath::parse(key).ok()?;
        self.find(&key.parts()).map(json::to_json)
    }

    /// The value that holds for a key: for the keys of ours the valid one or its default, for all others what the file
    /// says.
    pub fn effective(&self, key: &KeyPath) -> Option<Json> {
        let own = match key.parts().as_slice() {
            ["context", "engine"] => Some(Json::from(self.engine_name())),
            ["compression", rest @ ..] if !rest.is_empty() => {
                let block = self.compression_json();
                rest.iter()
                    .try_fold(&block, |value, name| value.get(name))
                    .cloned()
            }
            ["context", "timeouts", name] => self.timeouts.seconds(name).map(Json::from),
            _ => None,
        };
        own.or_else(|| self.find(&key.parts()).map(json::to_json))
    }

    /// Line and column of a key's value, both from 1.
    pub fn place(&self, key: &str) -> Option<(usize, usize)> {
        let key = KeyPath::parse(key).ok()?;
        self.find(&key.parts())?;
        self.places.of(&key.parts())
    }

    fn find(&self, key: &[&str]) -> Option<&Value> {
        let root = self.root.as_ref()?;
        let (first, rest) = key.split_first()?;
        let start = read::child_of(root, first)?;
        rest.iter()
            .try_fold(start, |value, name| read::child(value, name))
    }
}

/// Reads at most one byte more than is allowed, so that a huge file costs no more than a large one.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(text::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

type Parsed = (Option<Mapping>, Places, Vec<Problem>);

fn parse(bytes: &[u8], path: &Path) -> Result<Parsed, Box<Problem>> {
    let broken = |kind, message: String| {
        let message = format!("{message}; defaults are used");
        Problem::new(kind, Severity::Error, path, message)
    };
    let text = text::decode(bytes).map_err(|error| {
        let problem = broken(ProblemKind::Unreadable, error.to_string());
        Box::new(
            problem
                .at(error.place())
                .hint("save the file as UTF-8 text"),
        )
    })?;
    let (_, body) = text::split_bom(text);
    let syntax = |error: document::SyntaxError| {
        let problem = broken(
            ProblemKind::Syntax,
            format!("broken YAML: {}", error.message),
        );
        let hint = match stray_bom(text, body) {
            Some((at, (line, _))) => format!(
                "delete the invisible byte order mark U+FEFF in line {line}, at byte {at} of the file"
            ),
            None => {
                "correct the file with an editor; no command writes to it until then".to_owned()
            }
        };
        Box::new(problem.at(error.place).hint(hint))
    };
    let document = document::Document::parse(body).map_err(syntax)?;
    let mut problems: Vec<Problem> = resolve::duplicates(&document)
        .iter()
        .map(|found| duplicate(found, path))
        .collect();
    let root = match document.parts().first() {
        None => None,
        Some(part) => Some((
            resolve::resolve(&document, part.root).map_err(syntax)?,
            part.root,
        )),
    };
    let mapping = match root {
        None | Some((Value::Null, _)) => None,
        Some((Value::Mapping(mapping), _)) => Some(mapping),
        Some((other, id)) => {
            let message = format!(
                "the file is {}, expected a mapping of sections such as `context:`; defaults are used",
                read::show(&other)
            );
            problems.push(
                Problem::new(ProblemKind::Shape, Severity::Error, path, message)
                    .at(Some(document.node(id).place))
                    .hint("write sections at the start of the line, their keys indented below"),
            );
            None
        }
    };
    if let Some(second) = document.parts().get(1) {
        let message = format!(
            "a second document begins at line {}; only the first one is read",
            second.line
        );
        problems.push(
            Problem::new(ProblemKind::Shape, Severity::Warning, path, message)
                .at(Some((second.line, 1)))
                .hint("remove the line `---` and what follows, or move it above"),
        );
    }
    if let Some((at, place)) = stray_bom(text, body) {
        let message = format!(
            "a byte order mark stands inside the text at byte {at}; the key or value beside it is not recognised"
        );
        problems.push(
            Problem::new(ProblemKind::Shape, Severity::Warning, path, message)
                .at(Some(place))
                .hint("delete the invisible character U+FEFF there"),
        );
    }
    Ok((mapping, Places::new(document), problems))
}

/// A byte order mark behind the start, as careless programs leave it: its offset in the file and its place.
fn stray_bom(text: &str, body: &str) -> Option<(usize, (usize, usize))> {
    let at = body.find(text::BOM)?;
    Some((
        text.len() - body.len() + at,
        text::place_at_end(&body[..at]),
    ))
}

fn duplicate(found: &resolve::Duplicate, path: &Path) -> Problem {
    let message = format!(
        "the key {} stands twice, at line {} and at line {}; the last one counts",
        found.key, found.first_line, found.last.0
    );
    Problem::new(ProblemKind::Duplicate, Severity::Warning, path, message)
        .at(Some(found.last))
        .key(found.key.clone())
        .hint(format!(
            "remove line {} or line {}",
            found.first_line, found.last.0
        ))
}

fn engine_name(reader: &mut Reader<'_>) -> String {
    let key = ["context", "engine"];
    reader.section(&["context"]);
    if let Some(value @ (Value::Sequence(_) | Value::Mapping(_))) = reader.value(&key) {
        let message = format!(
            "context.engine is {}, expected the name of one engine; {BUILT_IN_ENGINE} is used",
            read::show(value)
        );
        let hint = "write one name, such as `engine: compressor`".to_owned();
        reader.report(ProblemKind::Shape, Severity::Warning, &key, message, hint);
        return BUILT_IN_ENGINE.to_owned();
    }
    reader
        .text(&key)
        .unwrap_or_else(|| BUILT_IN_ENGINE.to_owned())
}
