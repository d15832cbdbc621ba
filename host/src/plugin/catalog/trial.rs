//! From an entry to a private copy that has been tried.

use std::path::Path;

use super::Catalog;
use crate::plugin::copies::{self, PrivateCopy};
use crate::plugin::entry::Entry;
use crate::plugin::error::ModuleError;
use crate::plugin::load::{OpenError, Refusal};
use crate::plugin::module::Source;
use crate::plugin::probe::{self, Job, ProbeError, Verdict};
use crate::plugin::trust::{TrustCheck, TrustError};

/// A library that may be opened.
pub(super) struct Tried {
    pub(super) copy: PrivateCopy,
    /// What the trial found. A bundled library goes without one where there is nothing to try it with.
    pub(super) verdict: Option<Verdict>,
}

impl Catalog {
    /// Checks and copies an entry's library.
    pub(super) fn copy(&self, entry: &Entry) -> Result<PrivateCopy, Refusal> {
        if let Some(refusal) = &entry.refusal {
            return Err(refusal.clone());
        }
        let (Some(directory), Some(library)) = (&entry.directory, &entry.library) else {
            // Without a library there was a refusal above.
            return Err(OpenError::RegisteredNothing.into());
        };
        let cache = self.options.home.engine_cache_dir();
        let copy = copies::place(library, directory, &cache, &mut TrustCheck::new())?;
        self.verdicts().see(library, &copy.sha256);

        self.check_pin(entry, library, &copy.library_sha256)?;
        // The file may have changed since it was listed; these are the bytes that count.
        copy.facts.check()?;
        Ok(copy)
    }

    /// Refuses a library whose content is not the pinned one.
    pub(super) fn check_pin(
        &self,
        entry: &Entry,
        library: &Path,
        found: &str,
    ) -> Result<(), TrustError> {
        let pins = &self.options.config.plugins().entries;
        let names = [
            entry.engine.as_deref(),
            Some(&entry.name),
            Some(&entry.directory_name),
        ];
        let mut pinned = names
            .into_iter()
            .flatten()
            .filter_map(|name| pins.get(name)?.sha256.as_ref());
        match pinned.find(|pinned| *pinned != found) {
            Some(pinned) => Err(TrustError::Pinned {
                path: library.to_owned(),
                found: found.to_owned(),
                pinned: pinned.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Refuses a library that the host did not come back from.
    pub(super) fn check_marker(&self, copy: &PrivateCopy) -> Result<(), OpenError> {
        match self.markers().check(&copy.sha256) {
            Some(crash) => Err(OpenError::SetAside {
                slot: crash.slot,
                when: crash.when,
            }),
            None => Ok(()),
        }
    }

    /// Tries a copy in a child process, unless that went well before.
    pub(super) fn try_copy(&self, entry: &Entry, copy: PrivateCopy) -> Result<Tried, Refusal> {
        let Some(helper) = self.helper() else {
            if entry.source == Source::Bundled {
                return Ok(Tried {
                    copy,
                    verdict: None,
                });
            }
            return Err(ProbeError::NoHelper.into());
        };
        let verdicts = self.verdicts();
        let known = verdicts
            .get(&copy.sha256, &helper)
            .filter(|verdict| verdict.ok);
        let verdict = if let Some(known) = known {
            known
        } else {
            match probe::run(&job(entry, &copy, None), &helper) {
                Ok(verdict) => {
                    verdicts.put(&copy.sha256, &helper, &verdict);
                    verdict
                }
                Err(error) => {
                    // What is the helper's fault says nothing about the library.
                    if matches!(error, ProbeError::Died { .. } | ProbeError::TimedOut { .. }) {
                        verdicts.put(&copy.sha256, &helper, &Verdict::of_error(&error));
                    }
                    return Err(error.into());
                }
            }
        };
        verdict.check()?;
        check_name(entry, &verdict)?;
        Ok(Tried {
            copy,
            verdict: Some(verdict),
        })
    }

    /// Creates the engine in a child process with its section of the configuration, as a conversation would. Nothing of
    /// it is kept: settings change more often than libraries. `None`: there is nothing to try it with.
    pub(super) fn try_settings(
        &self,
        entry: &Entry,
        copy: &PrivateCopy,
        engine: &str,
    ) -> Option<Result<(), ProbeError>> {
        let helper = self.helper()?;
        let section = self.options.config.engine_section(engine).to_string();
        let verdict = probe::run(&job(entry, copy, Some(section)), &helper);
        Some(verdict.and_then(|verdict| verdict.check()))
    }

    /// All of it.
    pub(super) fn tried(&self, entry: &Entry) -> Result<Tried, Refusal> {
        let copy = self.copy(entry)?;
        self.check_marker(&copy)?;
        self.try_copy(entry, copy)
    }

    /// Gives an engine another chance: forgets that the host did not come back from it, and what trials found.
    pub fn forgive(&self, name: &str) {
        let copy = self.find(name).map(|entry| self.copy(entry));
        if let Some(Ok(copy)) = copy {
            self.markers().clear(&copy.sha256);
            if let Some(helper) = self.helper() {
                self.verdicts().forget(&copy.sha256, &helper);
            }
        }
    }
}

fn job(entry: &Entry, copy: &PrivateCopy, settings: Option<String>) -> Job {
    Job {
        library: copy.library.clone(),
        has_entry: copy.facts.has_entry,
        plugin_dir: entry.directory.clone().unwrap_or_default(),
        host_version: env!("CARGO_PKG_VERSION").to_owned(),
        settings,
    }
}

/// An engine directory must hold the engine that it promises.
fn check_name(entry: &Entry, verdict: &Verdict) -> Result<(), Refusal> {
    let promised = match (&entry.engine, entry.kind) {
        (Some(promised), crate::plugin::entry::Kind::Engine) => promised,
        _ => return Ok(()),
    };
    match &verdict.name {
        Some(found) if found == promised => Ok(()),
        Some(found) => Err(Refusal::Module(ModuleError::NameMismatch {
            found: found.clone(),
            promised: promised.clone(),
            promised_by: entry.promised_by,
        })),
        None => Err(OpenError::RegisteredNothing.into()),
    }
}
