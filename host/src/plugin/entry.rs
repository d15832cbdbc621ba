//! One plugin directory, as far as it can be known without running it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::discover::library::{self, Choice};
use super::discover::{DiscoverError, Found};
use super::inspect::{Facts, InspectError};
use super::load::{LoadError, Refusal};
use super::manifest::Manifest;
use super::module::Source;
use super::probe::Verdict;
use super::report::{Status, Step};
use super::trust::{TrustCheck, TrustError};

/// What a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It provides a context engine.
    Engine,
    /// It provides something else, or asks to register an engine at run time.
    General,
}

impl Kind {
    /// Its word in lists.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::General => "general",
        }
    }
}

/// A plugin, or the built-in engine. Serialised, it is an element of `hermes plugins list --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The plugin's name: from the manifest, else the directory's.
    pub name: String,
    /// Its directory, the real path; `None` for the built-in.
    pub directory: Option<PathBuf>,
    /// What it is.
    pub kind: Kind,
    /// Who put it there.
    pub source: Source,
    /// How a list shows it.
    pub status: Status,
    /// From the library if it was tried, else from the manifest.
    pub version: Option<String>,
    /// From the manifest.
    pub description: Option<String>,
    /// The engine's own name, which `context.engine` must be.
    pub engine: Option<String>,
    /// The library, the real path.
    pub library: Option<PathBuf>,
    /// The border's version, if the library was tried: `1.0`.
    pub abi: Option<String>,
    /// The step that failed.
    pub step: Option<Step>,
    /// Why it does not serve, in one line.
    pub reason: Option<String>,
    /// What to do about it.
    pub fix: Option<String>,
    /// What is odd and does no harm.
    pub notes: Vec<String>,

    #[serde(skip)]
    pub(crate) directory_name: String,
    #[serde(skip)]
    pub(crate) listed: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) promised_by: &'static str,
    #[serde(skip)]
    pub(crate) facts: Option<Facts>,
    #[serde(skip)]
    pub(crate) refusal: Option<Refusal>,
}

impl Entry {
    /// The built-in engine.
    pub(crate) fn built_in() -> Self {
        Self {
            name: super::name::BUILT_IN.to_owned(),
            directory: None,
            kind: Kind::Engine,
            source: Source::BuiltIn,
            status: Status::Available,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            description: Some(
                "Keeps both ends and replaces the middle of a conversation by a summary".to_owned(),
            ),
            engine: Some(super::name::BUILT_IN.to_owned()),
            library: None,
            abi: Some(format!(
                "{}.{}",
                hermes_engine_abi::ABI_MAJOR,
                hermes_engine_abi::ABI_MINOR
            )),
            step: None,
            reason: None,
            fix: None,
            notes: Vec::new(),
            directory_name: String::new(),
            listed: None,
            promised_by: "the program",
            facts: None,
            refusal: None,
        }
    }

    /// Looks at a directory. Nothing of it runs.
    pub(crate) fn examine(
        found: &Found,
        source: Source,
        build: Option<&Path>,
        trust: &mut TrustCheck,
    ) -> Self {
        let mut entry = Self {
            name: found.name.clone(),
            directory: None,
            kind: Kind::General,
            source,
            status: Status::NotChecked,
            version: None,
            description: None,
            engine: None,
            library: None,
            abi: None,
            directory_name: found.name.clone(),
            listed: Some(found.listed.clone()),
            ..Self::built_in()
        };
        if source == Source::Bundled {
            entry.kind = Kind::Engine;
            entry.status = Status::Available;
        }
        let directory = match &found.real {
            Ok(directory) => directory,
            Err(error) => {
                entry.refuse(error.clone());
                return entry;
            }
        };
        entry.directory = Some(directory.clone());
        entry.look_inside(directory, build, trust);
        entry
    }

    fn look_inside(&mut self, directory: &Path, build: Option<&Path>, trust: &mut TrustCheck) {
        let (manifest, bad_manifest) = match Manifest::read(directory) {
            Ok(manifest) => (manifest, None),
            Err(error) => (Manifest::default(), Some(error)),
        };
        let names = [
            manifest.engine.as_deref(),
            manifest.name.as_deref(),
            Some(self.directory_name.as_str()),
        ];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let Choice { library, facts } = library::choose(directory, &manifest, &names, build);
        let has_entry = facts.as_ref().is_ok_and(|facts| facts.has_entry);
        if has_entry || manifest.engine.is_some() {
            self.kind = Kind::Engine;
        }
        self.take_manifest(manifest, facts.as_ref().ok());
        self.library = library;

        // The earliest step that fails is the one to talk about.
        if let Some(error) = bad_manifest {
            self.refuse(error);
        } else if let Err(error) = self.check_trust(directory, facts.is_ok(), trust) {
            self.refuse(error);
        } else if let Err(error) = facts.as_ref().map_err(Clone::clone).and_then(Facts::check) {
            self.refuse(error);
        } else if self.engine.is_none() && self.kind == Kind::Engine {
            self.refuse(DiscoverError::Nameless);
        } else if self.engine.as_deref() == Some(super::name::BUILT_IN) && self.kind == Kind::Engine
        {
            self.refuse(DiscoverError::Reserved);
        }
        if let Ok(facts) = facts {
            if facts.built_to_abort {
                self.notes.push(
                    "its library was built with panic = \"abort\": a panic in it ends the host"
                        .to_owned(),
                );
            }
            self.facts = Some(facts);
        }
    }

    fn take_manifest(&mut self, manifest: Manifest, facts: Option<&Facts>) {
        let as_data = facts.and_then(|facts| facts.engine_name.clone());
        (self.engine, self.promised_by) = match (manifest.engine, as_data) {
            (Some(name), _) => (Some(name), "`engine` in plugin.yaml"),
            (None, Some(name)) => (Some(name), "its `hermes_engine_name`"),
            (None, None) => (manifest.name.clone(), "`name` in plugin.yaml"),
        };
        if let Some(name) = manifest.name {
            self.name = name;
        }
        self.version = manifest.version;
        self.description = manifest.description;
        self.notes = manifest.notes;
    }

    fn check_trust(
        &self,
        directory: &Path,
        is_library: bool,
        trust: &mut TrustCheck,
    ) -> Result<(), TrustError> {
        // Whoever can change the place where the folder, or a link to it, lies can change which library is loaded.
        if let Some(root) = self.listed.as_deref().and_then(Path::parent) {
            trust.folder(root)?;
        }
        trust.folder(directory)?;
        match &self.library {
            Some(library) if is_library || library.is_file() => trust.file(library),
            _ => Ok(()),
        }
    }

    pub(crate) fn refuse(&mut self, refusal: impl Into<Refusal>) {
        let refusal = refusal.into();
        self.status = match &refusal {
            // There is nothing in it for this host to run, such as a plugin in Python.
            Refusal::Inspect(InspectError::NoLibrary { .. }) if self.kind == Kind::General => {
                Status::Incompatible
            }
            refusal => refusal.status(),
        };
        self.step = Some(refusal.step());
        self.reason = Some(one_line(&refusal.to_string()));
        self.fix = Some(refusal.fix());
        self.refusal = Some(refusal);
    }

    /// What an earlier trial of the same content found.
    pub(crate) fn take_verdict(&mut self, verdict: &Verdict) {
        if !verdict.version.is_empty() {
            self.version = Some(verdict.version.clone());
        }
        self.abi = verdict.abi.map(|(major, minor)| format!("{major}.{minor}"));
        match verdict.check() {
            Ok(()) => self.status = Status::Available,
            Err(error) => {
                self.refuse(error);
                // It is tried again when it is wanted.
                self.refusal = None;
            }
        }
    }

    /// The name of its directory, as it was listed: a link's own name.
    #[must_use]
    pub fn folder_name(&self) -> &str {
        &self.directory_name
    }

    /// Where it lies, for people.
    pub(crate) fn place(&self) -> String {
        let path = self
            .library
            .as_ref()
            .or(self.directory.as_ref())
            .or(self.listed.as_ref());
        match path {
            Some(path) => path.display().to_string(),
            None => self.name.clone(),
        }
    }

    pub(crate) fn error(&self, cause: impl Into<Refusal>) -> LoadError {
        LoadError::new(self.place(), cause)
    }

    /// The names under which a person may know it.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.engine.as_deref() == Some(name) || self.name == name || self.directory_name == name
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
