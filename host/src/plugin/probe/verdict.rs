//! What a trial found, and where it is kept.
//!
//! A verdict belongs to a library's content and to the build of the host that tried it. Only a good one spares a new
//! trial; a bad one is kept so that a list can show it. A second, smaller file says which content a path had when it
//! was last read, so that a list need not read libraries to find their verdicts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ProbeError;
use crate::plugin::load::Refusal;
use crate::plugin::load::raw::ModuleCopy;
use crate::plugin::report::Status;

/// What a trial found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// The host that tried it.
    pub(crate) host_version: String,
    /// It works.
    pub(crate) ok: bool,
    /// The engine's name; a general plugin may register none.
    pub(crate) name: Option<String>,
    /// The engine's version.
    pub(crate) version: String,
    /// How it was built.
    pub(crate) build: String,
    /// The border's version that it was built for.
    pub(crate) abi: Option<(u16, u16)>,
    /// It catches panics and exceptions inside.
    pub(crate) unwinds: bool,
    /// Whether the layout was compared.
    pub(crate) layout: String,
    /// Optional slots that it fills.
    pub(crate) slots: Vec<String>,
    /// Engines that it wanted to register beyond the first.
    pub(crate) refused: Vec<String>,
    /// If it does not work: why.
    pub(crate) reason: String,
    /// If it does not work: what to do.
    pub(crate) fix: String,
    /// If it does not work: how a list shows it.
    pub(crate) status: Option<Status>,
}

impl Verdict {
    /// A general plugin that registers no engine.
    pub(super) fn without_engine() -> Self {
        Self {
            host_version: env!("CARGO_PKG_VERSION").to_owned(),
            ok: true,
            name: None,
            version: String::new(),
            build: String::new(),
            abi: None,
            unwinds: false,
            layout: String::new(),
            slots: Vec::new(),
            refused: Vec::new(),
            reason: String::new(),
            fix: String::new(),
            status: None,
        }
    }

    pub(super) fn good(module: &ModuleCopy, layout: &str, refused: Vec<String>) -> Self {
        Self {
            name: Some(module.name.clone()),
            version: module.version.clone(),
            build: module.build.clone(),
            abi: Some(module.abi),
            unwinds: module.flags & hermes_engine_abi::MODULE_UNWINDS != 0,
            layout: layout.to_owned(),
            slots: optional_slots(&module.vtable),
            refused,
            ..Self::without_engine()
        }
    }

    pub(super) fn bad(refusal: &Refusal) -> Self {
        let mut verdict = Self::without_engine();
        verdict.refuse(refusal);
        verdict
    }

    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        self.ok = false;
        self.reason = refusal.to_string();
        self.fix = refusal.fix();
        self.status = Some(refusal.status());
    }

    /// The same as an error, if it is bad.
    pub(crate) fn check(&self) -> Result<(), ProbeError> {
        if self.ok {
            return Ok(());
        }
        Err(ProbeError::Refused {
            reason: self.reason.clone(),
            fix: self.fix.clone(),
            status: self.status.unwrap_or(Status::Broken),
        })
    }

    /// A trial that ended without a verdict, for lists.
    pub(crate) fn of_error(error: &ProbeError) -> Self {
        Self::bad(&Refusal::Probe(error.clone()))
    }
}

fn optional_slots(vtable: &hermes_engine_abi::EngineVtable) -> Vec<String> {
    macro_rules! present {
        ($($slot:ident),+) => { [$((stringify!($slot), vtable.$slot.is_some())),+] };
    }
    present![
        clone,
        session_start,
        session_end,
        pass_result,
        preflight,
        select_context,
        turn_complete,
        tool_schemas,
        tool_call,
        status,
        command,
        idle
    ]
    .into_iter()
    .filter(|(_, present)| *present)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// Verdicts on disk. Nothing depends on them being there: what cannot be written is tried again.
#[derive(Clone, Debug)]
pub(crate) struct Verdicts {
    folder: PathBuf,
}

impl Verdicts {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            folder: home.join("cache/verdicts"),
        }
    }

    /// Whether anything was ever tried for this home.
    pub(crate) fn exist(&self) -> bool {
        self.folder.is_dir()
    }

    /// The verdict on a content, by a build of the host.
    pub(crate) fn get(&self, sha256: &str, helper: &Path) -> Option<Verdict> {
        read(&self.folder.join(verdict_name(sha256, helper)))
    }

    /// Keeps a verdict, good or bad.
    pub(crate) fn put(&self, sha256: &str, helper: &Path, verdict: &Verdict) {
        let name = verdict_name(sha256, helper);
        if let Err(error) = write(&self.folder, &name, verdict) {
            tracing::debug!("the verdict on a library cannot be kept: {error}");
        }
    }

    /// Removes every verdict on a content, so that it is tried again.
    pub(crate) fn forget(&self, sha256: &str, helper: &Path) {
        let _ = fs::remove_file(self.folder.join(verdict_name(sha256, helper)));
    }

    /// The content that a library had when it was last read, if the file has not changed since.
    pub(crate) fn seen(&self, library: &Path) -> Option<String> {
        read(&self.folder.join(seen_name(library)?))
    }

    /// Remembers a library's content.
    pub(crate) fn see(&self, library: &Path, sha256: &str) {
        if let Some(name) = seen_name(library) {
            let _ = write(&self.folder, &name, &sha256);
        }
    }
}

/// A rebuilt helper tries everything again.
fn verdict_name(sha256: &str, helper: &Path) -> String {
    let build = stamp(helper).unwrap_or_default();
    let build = short_hash(&format!("{} {build}", env!("CARGO_PKG_VERSION")));
    format!("{sha256}-{build}.json")
}

fn seen_name(library: &Path) -> Option<String> {
    let stamp = stamp(library)?;
    Some(format!(
        "seen-{}.json",
        short_hash(&format!("{} {stamp}", library.display()))
    ))
}

/// What changes when a file is replaced or written to.
fn stamp(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some(format!(
            "{} {} {} {}.{} {}.{}",
            metadata.dev(),
            metadata.ino(),
            metadata.size(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec()
        ))
    }
    #[cfg(not(unix))]
    {
        Some(format!("{} {:?}", metadata.len(), metadata.modified().ok()))
    }
}

fn short_hash(text: &str) -> String {
    use std::fmt::Write;
    let mut short = String::new();
    for byte in &Sha256::digest(text.as_bytes())[..12] {
        let _ = write!(short, "{byte:02x}");
    }
    short
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write(folder: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    crate::plugin::copies::private_folder(folder)?;
    let draft = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(draft.path(), serde_json::to_vec(value)?)?;
    draft
        .persist(folder.join(name))
        .map_err(|error| error.error)?;
    Ok(())
}
