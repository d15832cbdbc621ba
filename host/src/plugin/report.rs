//! How far a plugin came, for people and for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A step on the way from a directory to an engine that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The directory is found.
    Discover,
    /// `plugin.yaml` is read.
    Manifest,
    /// Nobody else can change the library.
    Trust,
    /// The library, as data, is one for this host.
    Inspect,
    /// It was tried in a child process.
    Probe,
    /// It is opened here.
    Load,
    /// It takes its section of `config.yaml`; only asked by who wants to know why.
    Settings,
    /// `context.engine` can name it.
    Select,
}

impl Step {
    /// Its word in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::Manifest => "manifest",
            Self::Trust => "trust",
            Self::Inspect => "inspect",
            Self::Probe => "probe",
            Self::Load => "load",
            Self::Settings => "settings",
            Self::Select => "select",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a list shows a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It serves.
    Active,
    /// It would serve if it were named.
    Available,
    /// Nothing speaks against it, but its library has never been tried here.
    #[serde(rename = "not checked")]
    NotChecked,
    /// Another engine of the same name comes first.
    Shadowed,
    /// Somebody else could change it.
    Untrusted,
    /// It is not for this host or this machine.
    Incompatible,
    /// It does not work.
    Broken,
    /// It works, but not here or not now.
    Unavailable,
}

impl Status {
    /// Its word in lists.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Available => "available",
            Self::NotChecked => "not checked",
            Self::Shadowed => "shadowed",
            Self::Untrusted => "untrusted",
            Self::Incompatible => "incompatible",
            Self::Broken => "broken",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One step of a [`Why`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Which step.
    pub step: Step,
    /// It went well; it did not; or it was not reached or does not apply.
    pub ok: Option<bool>,
    /// What was found.
    pub detail: String,
    /// What to do about it; empty if nothing is wrong or odd.
    pub fix: String,
}

/// Why a plugin serves or does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    /// The name that was asked for.
    pub name: String,
    /// The steps in order.
    pub steps: Vec<StepReport>,
    /// Whether it serves, if `context.engine` is this name.
    pub serves: bool,
}

impl Why {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            steps: Vec::new(),
            serves: false,
        }
    }

    pub(super) fn good(&mut self, step: Step, detail: impl Into<String>) {
        self.push(step, Some(true), detail.into(), String::new());
    }

    /// It went well, and yet there is something that its author should look at.
    pub(super) fn noted(&mut self, step: Step, detail: impl Into<String>, fix: impl Into<String>) {
        self.push(step, Some(true), detail.into(), fix.into());
    }

    pub(super) fn bad(&mut self, step: Step, detail: impl Into<String>, fix: impl Into<String>) {
        self.push(step, Some(false), detail.into(), fix.into());
    }

    pub(super) fn skipped(&mut self, step: Step, detail: impl Into<String>) {
        self.push(step, None, detail.into(), String::new());
    }

    fn push(&mut self, step: Step, ok: Option<bool>, detail: String, fix: String) {
        self.steps.push(StepReport {
            step,
            ok,
            detail,
            fix,
        });
    }

    /// The step that decided it, if one failed: the first.
    #[must_use]
    pub fn failed(&self) -> Option<&StepReport> {
        self.steps.iter().find(|step| step.ok == Some(false))
    }
}
