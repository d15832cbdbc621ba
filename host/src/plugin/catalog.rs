//! All plugins of one user, and the way from a name to an engine.

mod loaded;
mod select;
mod trial;
mod why;

use std::path::{Path, PathBuf};

pub use select::{Candidate, SelectError};

use super::discover::{self, BundledRoot, DiscoverError, Found};
use super::entry::{Entry, Kind};
use super::load::{LoadError, OpenError};
use super::marker::Markers;
use super::module::{EngineModule, Source};
use super::name::BUILT_IN;
use super::probe::helper;
use super::probe::verdict::Verdicts;
use super::report::Status;
use super::trust::TrustCheck;
use crate::config::{Config, HermesHome};

/// Where to look, and what the user wants.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// The user's folder.
    pub home: HermesHome,
    /// Where the engines lie that come with the program.
    pub bundled: BundledRoot,
    /// Which engine is named, which plugins are enabled, which libraries are pinned.
    pub config: Config,
    /// The program that tries libraries; `None` looks for it.
    pub helper: Option<PathBuf>,
}

impl ScanOptions {
    /// The usual places, and the configuration of that home.
    #[must_use]
    pub fn new(home: HermesHome, config: Config) -> Self {
        Self {
            home,
            bundled: BundledRoot::find(),
            config,
            helper: None,
        }
    }
}

/// The plugins as they were found. Nothing of them has run.
#[derive(Debug)]
pub struct Catalog {
    options: ScanOptions,
    entries: Vec<Entry>,
    problems: Vec<String>,
}

impl Catalog {
    /// Looks at every plugin directory. One that cannot be used is an entry with its reason, never an error.
    #[must_use]
    pub fn scan(options: ScanOptions) -> Self {
        let mut catalog = Self {
            entries: vec![Entry::built_in()],
            problems: Vec::new(),
            options,
        };
        let bundled = catalog.options.bundled.clone();
        if let Some(folder) = &bundled.folder {
            catalog.scan_root(folder, Source::Bundled, bundled.build.as_deref());
        }
        let user = catalog.options.home.plugins_dir();
        catalog.scan_root(&user, Source::User, None);

        catalog.refuse_disabled();
        catalog.take_verdicts();
        catalog.shadow();
        catalog.set_aside();
        catalog.mark_active();
        catalog
    }

    fn scan_root(&mut self, root: &Path, source: Source, build: Option<&Path>) {
        match discover::list(root) {
            Ok(found) => self.entries.extend(examine_all(&found, source, build)),
            Err(error) => self.problems.push(format!(
                "the {source} plugins in {} cannot be listed: {error}",
                root.display()
            )),
        }
    }

    /// General plugins run only if the user has switched them on.
    fn refuse_disabled(&mut self) {
        let plugins = self.options.config.plugins();
        for entry in &mut self.entries {
            let enabled =
                plugins.is_enabled(&entry.name) || plugins.is_enabled(&entry.directory_name);
            if entry.kind == Kind::General && entry.refusal.is_none() && !enabled {
                entry.refuse(DiscoverError::NotEnabled);
            }
        }
    }

    /// Shows what earlier trials of the same files found.
    fn take_verdicts(&mut self) {
        let Some(helper) = self.helper() else { return };
        let verdicts = self.verdicts();
        if !verdicts.exist() {
            return;
        }
        for entry in &mut self.entries {
            let (Some(library), None) = (&entry.library, &entry.refusal) else {
                continue;
            };
            let sha256 = verdicts.seen(library);
            let verdict = sha256.and_then(|sha256| verdicts.get(&sha256, &helper));
            if let Some(verdict) = verdict {
                entry.take_verdict(&verdict);
            }
        }
    }

    /// Of engines with one name the first one counts: bundled before user, then by directory.
    fn shadow(&mut self) {
        let mut first = std::collections::HashMap::<String, usize>::new();
        for at in 0..self.entries.len() {
            let entry = &self.entries[at];
            let Some(engine) = entry.engine.clone().filter(|_| entry.kind == Kind::Engine) else {
                continue;
            };
            // A bad plugin hides no other.
            if entry.refusal.is_some() {
                continue;
            }
            match first.get(&engine) {
                None => {
                    first.insert(engine, at);
                }
                Some(&by) => {
                    let winner = &self.entries[by];
                    let error = DiscoverError::Shadowed {
                        engine,
                        source_kind: match winner.source {
                            Source::BuiltIn => "built-in",
                            Source::Bundled => "bundled",
                            Source::User => "user",
                        },
                        by: winner.directory.clone().unwrap_or_default(),
                    };
                    self.entries[at].refuse(error);
                }
            }
        }
    }

    /// Shows engines that the host did not come back from.
    fn set_aside(&mut self) {
        let crashes = self.markers().crashes();
        if crashes.is_empty() {
            return;
        }
        let verdicts = self.verdicts();
        for entry in &mut self.entries {
            let (Some(library), None) = (&entry.library, &entry.refusal) else {
                continue;
            };
            let sha256 = verdicts.seen(library);
            let crash = crashes
                .iter()
                .find(|(crashed, _)| Some(crashed) == sha256.as_ref());
            if let Some((_, crash)) = crash {
                entry.refuse(OpenError::SetAside {
                    slot: crash.slot.clone(),
                    when: crash.when.clone(),
                });
                // Loading finds out by itself, and `use` lifts it.
                entry.refusal = None;
            }
        }
    }

    fn mark_active(&mut self) {
        let wanted = self.options.config.engine_name().to_owned();
        let serving = self.entries.iter_mut().find(|entry| {
            entry.kind == Kind::Engine
                && entry.engine.as_deref() == Some(wanted.as_str())
                && matches!(entry.status, Status::Available | Status::NotChecked)
        });
        if let Some(entry) = serving {
            entry.status = Status::Active;
        } else if let Some(built_in) = self.entries.first_mut() {
            built_in.status = Status::Active;
            built_in.notes.push(format!(
                "it serves because `context.engine` names {wanted:?}, which does not"
            ));
        }
    }

    /// Every plugin, the built-in engine first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What kept a whole folder of plugins from being listed.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The configuration that it was scanned with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.options.config
    }

    /// Loads what was selected. Nobody is told but the caller; a failure is SEL-5's business.
    ///
    /// The same directory is loaded once in a process, by whichever thread comes first.
    ///
    /// # Errors
    /// The step that refused it, with what to do about it.
    pub fn load(&self, candidate: &Candidate) -> Result<EngineModule, LoadError> {
        match candidate.entry() {
            None => built_in(),
            Some(entry) => loaded::load(self, entry),
        }
    }

    fn engines(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(|entry| entry.kind == Kind::Engine)
    }

    fn helper(&self) -> Option<PathBuf> {
        helper::find(self.options.helper.as_deref())
    }

    fn verdicts(&self) -> Verdicts {
        Verdicts::new(self.options.home.path())
    }

    /// The markers of this home.
    #[must_use]
    pub fn markers(&self) -> Markers {
        Markers::new(self.options.home.path())
    }
}

/// Few directories are looked at one after the other: threads would cost more than they save.
const ENOUGH_FOR_THREADS: usize = 64;

fn examine_all(found: &[Found], source: Source, build: Option<&Path>) -> Vec<Entry> {
    let examine = |found: &[Found]| {
        let mut trust = TrustCheck::new();
        let entries = found.iter();
        let entries = entries.map(|found| Entry::examine(found, source, build, &mut trust));
        entries.collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    if found.len() < ENOUGH_FOR_THREADS || threads == 1 {
        return examine(found);
    }
    std::thread::scope(|scope| {
        let parts: Vec<_> = found
            .chunks(found.len().div_ceil(threads))
            .map(|part| scope.spawn(move || examine(part)))
            .collect();
        let parts = parts.into_iter().map(|part| match part.join() {
            Ok(entries) => entries,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        parts.flatten().collect()
    })
}

/// The built-in engine's module.
fn built_in() -> Result<EngineModule, LoadError> {
    debug_assert_eq!(BUILT_IN, crate::config::BUILT_IN_ENGINE);
    EngineModule::from_static(hermes_compressor::module())
}
