//! `config.yaml`: reading what people have, changing one value and nothing else.
//!
//! [`Config::load`] never fails. A file that is missing gives the defaults; one that is broken gives the defaults and
//! says so in [`Config::problems`]; a single odd value is named there and replaced by its default, and everything else
//! holds. So a conversation always starts, and whoever starts it shows the problems (CFG-6, SEL-5).
//!
//! [`edit`] is the other half: it changes the bytes of one value, or refuses.

mod agent;
#[cfg(test)]
mod agreement;
mod check;
mod compression;
mod document;
pub mod edit;
mod home;
mod json;
mod key;
mod known;
mod load;
mod model;
mod places;
mod plugins;
mod problem;
mod providers;
mod read;
mod resolve;
mod text;
mod timeouts;
mod value;

pub use agent::AgentSection;
pub use check::{Serves, check};
pub use compression::{Compression, TailMode};
pub use home::HermesHome;
pub use key::{KeyError, KeyPath};
pub use known::known_keys;
pub use model::{AuxiliaryCompression, Fallback, Model, Secret};
pub use plugins::{PluginEntry, Plugins};
pub use problem::{Problem, ProblemKind, Severity};
pub use providers::NamedProvider;
pub use timeouts::Timeouts;

use load::{engine_name, parse, read_bounded};
use places::Places;
use read::Reader;
use serde_json::Value as Json;
use serde_yaml::{Mapping, Value};
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

/// The keys that say who is asked, and with whose key.
const MODEL_PLACE: &[&str] = &[
    "model",
    "model.provider",
    "model.base_url",
    "model.api_key",
    "model.api_key_env",
    "model.key_env",
];

/// A configuration as it holds: the resolved tree, the typed sections, and what was wrong.
#[derive(Clone)]
pub struct Config {
    path: PathBuf,
    exists: bool,
    root: Option<Mapping>,
    places: Places,
    problems: Vec<Problem>,
    broken: bool,
    /// Nothing of the file could be used, and it may have said where a model is.
    hides_model: bool,
    engine: String,
    compression: Compression,
    model: Model,
    auxiliary_compression: AuxiliaryCompression,
    fallback_providers: Vec<Fallback>,
    providers: Vec<NamedProvider>,
    plugins: Plugins,
    timeouts: Timeouts,
    agent: AgentSection,
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
                    config.hides_model = true;
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
            Ok((root, places, problems)) => {
                let mut config = Self::build(root, places, path, problems);
                // A list or a text where sections should be.
                let of_nothing = |problem: &Problem| {
                    problem.severity == Severity::Error && problem.key.is_none()
                };
                config.hides_model =
                    config.problems.iter().any(of_nothing) && load::names_a_model(text);
                config
            }
            Err(problem) => {
                let mut config = Self::unusable(*problem, path);
                config.hides_model = load::names_a_model(text);
                config
            }
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
        config.hides_model = true;
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
        let providers = providers::read(&mut reader);
        let plugins = Plugins::read(&mut reader);
        let timeouts = Timeouts::read(&mut reader);
        let agent = AgentSection::read(&mut reader);
        Self {
            path: path.to_owned(),
            exists: true,
            root,
            places,
            problems,
            broken: false,
            hides_model: false,
            engine,
            compression,
            model,
            auxiliary_compression,
            fallback_providers,
            providers,
            plugins,
            timeouts,
            agent,
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

    /// True when the file may say which model is to be asked, where, and with whose key, and it is not known what it
    /// says: nothing of it could be used, or one of these values is none. Nobody else may be asked instead.
    pub fn hides_model(&self) -> Option<&Problem> {
        let misread = |problem: &&Problem| {
            let key = problem.key.as_deref().unwrap_or_default();
            matches!(problem.kind, ProblemKind::Shape | ProblemKind::Value)
                && MODEL_PLACE.contains(&key)
        };
        let unread = |problem: &&Problem| problem.severity == Severity::Error;
        if self.hides_model {
            return self.problems.iter().find(unread);
        }
        self.problems.iter().find(misread)
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

    /// `providers` and `custom_providers`.
    pub fn providers(&self) -> &[NamedProvider] {
        &self.providers
    }

    /// The place that the user has given this name.
    pub fn named_provider(&self, name: &str) -> Option<&NamedProvider> {
        providers::named(&self.providers, name)
    }

    /// The place that the user has given a name and this address.
    pub fn provider_at(&self, base_url: &str) -> Option<&NamedProvider> {
        providers::at_address(&self.providers, base_url)
    }

    /// The window that the file gives a model of the main provider: `model.context_length` for `model.default`, and
    /// for every model what its place in `providers` or `custom_providers` says of it.
    pub fn window_of(&self, model: &str) -> Option<u64> {
        let main = &self.model;
        let place = match (&main.base_url, &main.provider) {
            (Some(url), _) => self.provider_at(url),
            (None, Some(name)) => self.named_provider(name),
            (None, None) => None,
        };
        let default = main
            .default
            .as_deref()
            .or_else(|| place.and_then(|place| place.model.as_deref()));
        let own = main
            .context_length
            .filter(|_| default.is_none_or(|name| name.trim() == model));
        own.or_else(|| place?.window_of(model))
    }

    /// The `plugins` section.
    pub fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// `context.timeouts`.
    pub fn context_timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// The `agent` section.
    pub fn agent(&self) -> &AgentSection {
        &self.agent
    }

    /// A value of the file by its dotted key, aliases and merge keys resolved; list items go by number.
    pub fn get(&self, key: &str) -> Option<Json> {
        let key = KeyPath::parse(key).ok()?;
        self.find(&key.parts()).map(json::to_json)
    }

    /// Does this key hold something that must not be shown without being asked for?
    pub fn is_secret(key: &KeyPath) -> bool {
        key.names()
            .last()
            .is_some_and(|name| value::is_secret(name))
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
            ["agent", "max_turns"] => Some(Json::from(self.agent.max_turns)),
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
        let start = value::child_of(root, first)?;
        rest.iter()
            .try_fold(start, |value, name| value::child(value, name))
    }
}

/// Without the content: files hold keys of providers.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("path", &self.path)
            .field("engine", &self.engine)
            .field("broken", &self.broken)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}
