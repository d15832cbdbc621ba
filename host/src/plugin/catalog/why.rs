//! Walks one plugin through every step, and says at each what was found.

use super::Catalog;
use crate::plugin::copies::PrivateCopy;
use crate::plugin::entry::{Entry, Kind};
use crate::plugin::load::Refusal;
use crate::plugin::module::half_of_the_tools;
use crate::plugin::name::BUILT_IN;
use crate::plugin::probe::{ProbeError, Verdict};
use crate::plugin::report::{Step, Why};

impl Catalog {
    /// Why the engine of this name serves or does not. The name may also be a plugin's or a directory's, which selects
    /// nothing but shows what is wrong with it. The library is tried in a child process, never loaded here.
    #[must_use]
    pub fn why(&self, name: &str) -> Why {
        let mut why = Why::new(name);
        if name.is_empty() || name == BUILT_IN {
            why.good(Step::Select, "it is part of the program and always serves");
            why.serves = true;
            return why;
        }
        match self.find(name) {
            Some(entry) => self.walk(entry, name, &mut why),
            None => self.explain_missing(name, &mut why),
        }
        why
    }

    /// The plugin that a person means: by its engine, else its directory, else its name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let engine = |entry: &&Entry| entry.engine.as_deref() == Some(name);
        self.engines()
            .find(|entry| engine(entry) && entry.refusal.is_none())
            .or_else(|| self.engines().find(engine))
            .or_else(|| {
                self.entries
                    .iter()
                    .find(|entry| entry.directory_name == name)
            })
            .or_else(|| self.entries.iter().find(|entry| entry.name == name))
            .or_else(|| self.entries.iter().find(engine))
    }

    fn explain_missing(&self, name: &str, why: &mut Why) {
        match self.select(name) {
            // A general plugin registers an engine of that name.
            Ok(candidate) => match candidate.entry() {
                Some(entry) => self.walk(entry, name, why),
                None => why.serves = true,
            },
            Err(error) => why.bad(Step::Select, error.to_string(), error.fix()),
        }
    }

    fn walk(&self, entry: &Entry, name: &str, why: &mut Why) {
        let refusal = entry.refusal.as_ref();
        let refused_at = refusal.map(Refusal::step);
        let place = entry.directory.as_ref().or(entry.listed.as_ref());
        let place = place.map_or_else(String::new, |path| path.display().to_string());

        // What listing knows, in the order of its steps.
        let told = [
            (
                Step::Discover,
                format!("{} plugin in {place}", entry.source),
            ),
            (Step::Manifest, manifest_detail(entry)),
            (Step::Trust, "only you and root can change it".to_owned()),
            (Step::Inspect, inspect_detail(entry)),
        ];
        for (step, detail) in told {
            match refusal {
                Some(error) if refused_at == Some(step) => {
                    why.bad(step, error.to_string(), error.fix());
                }
                Some(_) if refused_at < Some(step) => why.skipped(step, "not reached"),
                _ => why.good(step, detail),
            }
        }
        let tried = match refusal {
            Some(_) => {
                for step in [Step::Probe, Step::Load, Step::Settings] {
                    why.skipped(step, "not reached");
                }
                None
            }
            None => self.walk_code(entry, why),
        };
        let engine = match (entry.kind, tried) {
            (Kind::General, tried) => tried.and_then(|verdict| verdict.name),
            (Kind::Engine, _) => entry.engine.clone(),
        };
        self.walk_name(entry, engine, name, why);
        why.serves = why.failed().is_none();
    }

    /// The steps in which code runs, in a child. Returns what it found.
    fn walk_code(&self, entry: &Entry, why: &mut Why) -> Option<Verdict> {
        let copy = match self.copy(entry) {
            Ok(copy) => copy,
            Err(refusal) => {
                why.skipped(Step::Probe, "not reached");
                // Trust and inspection were good when the folder was listed, so this is newer.
                why.bad(Step::Load, refusal.to_string(), refusal.fix());
                why.skipped(Step::Settings, "not reached");
                return None;
            }
        };
        let aside = self.check_marker(&copy);
        let folder = copy.library.parent().map(|path| path.display().to_string());
        match self.try_copy(entry, copy) {
            Ok(tried) => {
                let copy = &tried.copy;
                match &tried.verdict {
                    Some(verdict) => match oddity(verdict) {
                        None => why.good(Step::Probe, probe_detail(verdict)),
                        Some((what, fix)) => {
                            let detail = format!("{}; warning: it {what}", probe_detail(verdict));
                            why.noted(Step::Probe, detail, fix);
                        }
                    },
                    None => why.skipped(
                        Step::Probe,
                        "bundled, and there is no helper program to try it with",
                    ),
                }
                match aside {
                    Ok(()) => {
                        why.good(
                            Step::Load,
                            load_detail(copy, tried.verdict.as_ref(), folder.as_deref()),
                        );
                        self.walk_settings(entry, copy, tried.verdict.as_ref(), why);
                    }
                    Err(error) => {
                        why.bad(Step::Load, error.to_string(), error.fix());
                        why.skipped(Step::Settings, "not reached");
                    }
                }
                tried.verdict
            }
            Err(refusal) => {
                why.bad(
                    refusal.step().min(Step::Load),
                    refusal.to_string(),
                    refusal.fix(),
                );
                if refusal.step() < Step::Load {
                    why.skipped(Step::Load, "not reached");
                }
                why.skipped(Step::Settings, "not reached");
                None
            }
        }
    }

    /// Whether the engine takes what stands in its section: it is told only when a conversation begins.
    fn walk_settings(
        &self,
        entry: &Entry,
        copy: &PrivateCopy,
        verdict: Option<&Verdict>,
        why: &mut Why,
    ) {
        const STEP: Step = Step::Settings;
        let known = verdict.and_then(|verdict| verdict.name.as_ref());
        let Some(engine) = known.or(entry.engine.as_ref()) else {
            why.skipped(STEP, "it provides no engine that could have settings");
            return;
        };
        let config = &self.options.config;
        let path = config.path().display();
        let has_section = config.engine_section(engine) != serde_json::json!({});
        let what = if has_section {
            format!("its section of {path}")
        } else {
            format!("no settings ({path} has none for it)")
        };
        match self.try_settings(entry, copy, engine) {
            None => why.skipped(STEP, "there is no helper program to try them with"),
            Some(Ok(())) => why.good(STEP, format!("it can be created with {what}")),
            // The trial above has told of this.
            Some(Err(error @ (ProbeError::NoHelper | ProbeError::Helper { .. }))) => {
                why.skipped(STEP, error.to_string());
            }
            Some(Err(error)) => why.bad(
                STEP,
                format!("it cannot be created with {what}: {error}"),
                format!(
                    "change the settings of '{engine}' in {path}; the engine's own documentation says what it takes"
                ),
            ),
        }
    }

    fn walk_name(&self, entry: &Entry, engine: Option<String>, name: &str, why: &mut Why) {
        match engine {
            _ if matches!(entry.refusal, Some(Refusal::Discover(_))) => {
                why.skipped(Step::Select, "not reached");
            }
            Some(engine) if engine == name => {
                let active = self.options.config.engine_name() == name;
                why.good(
                    Step::Select,
                    if active {
                        format!("`context.engine` is {name:?}")
                    } else {
                        format!("it serves when `context.engine` is {name:?}")
                    },
                );
            }
            Some(engine) => why.bad(
                Step::Select,
                format!("its engine is called {engine:?}; {name:?} selects nothing"),
                format!("write `context.engine: {engine}`"),
            ),
            None => why.bad(
                Step::Select,
                "it provides no context engine that could be named",
                "name another engine in `context.engine`",
            ),
        }
    }
}

fn manifest_detail(entry: &Entry) -> String {
    let mut detail = format!("name {}", entry.name);
    if let Some(version) = &entry.version {
        detail += &format!(", version {version}");
    }
    for note in &entry.notes {
        detail += &format!("; note: {note}");
    }
    detail
}

fn inspect_detail(entry: &Entry) -> String {
    let library = entry
        .library
        .as_ref()
        .map(|path| path.display().to_string());
    let mut detail = library.unwrap_or_default();
    if let Some(facts) = &entry.facts {
        if let Some(engine) = &facts.engine_name {
            detail += &format!(" carries the engine name {engine:?}");
        }
        if !facts.needed.is_empty() {
            detail += &format!(", needs {}", facts.needed.join(", "));
        }
    }
    detail
}

fn oddity(verdict: &Verdict) -> Option<(&'static str, &'static str)> {
    let has = |slot: &str| verdict.slots.iter().any(|found| found == slot);
    half_of_the_tools(has("tool_schemas"), has("tool_call"))
}

fn probe_detail(verdict: &Verdict) -> String {
    let Some(name) = &verdict.name else {
        return "works in a trial process; it registers no engine".to_owned();
    };
    let (major, minor) = verdict.abi.unwrap_or_default();
    let mut detail = format!(
        "works in a trial process: {name} {}, engine ABI {major}.{minor}",
        verdict.version
    );
    if !verdict.slots.is_empty() {
        detail += &format!(", optional slots: {}", verdict.slots.join(", "));
    }
    if !verdict.unwinds {
        detail += ", does not say that it catches panics";
    }
    for refused in &verdict.refused {
        detail += &format!(
            "; a second engine {refused:?} is refused, only one can be registered through plugins"
        );
    }
    detail
}

fn load_detail(copy: &PrivateCopy, verdict: Option<&Verdict>, folder: Option<&str>) -> String {
    let mut detail = format!(
        "loads from the private copy in {}, sha256 {}",
        folder.unwrap_or_default(),
        copy.library_sha256
    );
    if let Some(layout) = verdict
        .map(|verdict| &verdict.layout)
        .filter(|layout| !layout.is_empty())
    {
        detail += &format!("; {layout}");
    }
    detail
}
