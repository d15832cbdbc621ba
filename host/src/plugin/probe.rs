//! Tries a library in a child process, so that one that crashes, exits or hangs costs nothing but that.
//!
//! The child is a program of ours in another role (`helper`). It opens the private copy, checks the module, creates an
//! instance for a moment, and writes what it found to a file (`child`). Good verdicts are kept (`verdict`).

pub(crate) mod child;
pub(crate) mod helper;
pub(crate) mod verdict;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::report::Status;
pub(crate) use verdict::Verdict;

/// How long a child may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The word by which a program knows that it is called as a helper.
pub(crate) const ROLE: &str = "__hermes-helper";

/// What a child is to try.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The private copy.
    pub(crate) library: PathBuf,
    /// It exports the entry of a directory engine.
    pub(crate) has_entry: bool,
    /// The plugin's folder.
    pub(crate) plugin_dir: PathBuf,
    /// The version of the host that asks.
    pub(crate) host_version: String,
    /// The engine's section of `config.yaml`, to create it as a conversation would; without it the engine is told that
    /// this is a trial without settings.
    pub(crate) settings: Option<String>,
}

/// Why a trial failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// There is no program to try it with.
    #[error(
        "a plugin is tried in a child process first, and there is no program for it: HERMES_HELPER is not set, there is no `hermes` beside this program, and this program does not call `hermes::helper_main()`"
    )]
    NoHelper,
    /// The program that should try it does not work.
    #[error("the helper program {helper} does not work: {reason}")]
    Helper {
        /// The program.
        helper: PathBuf,
        /// What happened.
        reason: String,
    },
    /// The child process ended.
    #[error("it ended a trial process ({how}) {stage}{}", with_output(output))]
    Died {
        /// Exit status or signal.
        how: String,
        /// Where.
        stage: String,
        /// What it printed last.
        output: String,
    },
    /// The child process hung.
    #[error("it did not finish within {} seconds {stage}", LIMIT.as_secs())]
    TimedOut {
        /// Where.
        stage: String,
    },
    /// The trial says no.
    #[error("{reason}")]
    Refused {
        /// What is wrong, in one line.
        reason: String,
        /// What to do about it.
        fix: String,
        /// How a list shows it.
        status: Status,
    },
}

fn with_output(output: &str) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; it printed: {output}")
    }
}

impl ProbeError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NoHelper => "set HERMES_HELPER to the path of the `hermes` program".to_owned(),
            Self::Helper { .. } => {
                "let HERMES_HELPER name the `hermes` program of this version, or install both again"
                    .to_owned()
            }
            Self::Died { .. } | Self::TimedOut { .. } => {
                "this is a fault of the engine: report it to its author".to_owned()
            }
            Self::Refused { fix, .. } => fix.clone(),
        }
    }

    pub(crate) fn status(&self) -> Status {
        match self {
            Self::NoHelper | Self::Helper { .. } => Status::Unavailable,
            Self::Died { .. } | Self::TimedOut { .. } => Status::Broken,
            Self::Refused { status, .. } => *status,
        }
    }
}

/// Tries a library in a child of `helper`.
pub(crate) fn run(job: &Job, helper: &Path) -> Result<Verdict, ProbeError> {
    let broken = |reason: String| ProbeError::Helper {
        helper: helper.to_owned(),
        reason,
    };
    let scratch = scratch_folder().map_err(|error| broken(error.to_string()))?;
    let mut child =
        start(job, helper, scratch.path()).map_err(|error| broken(error.to_string()))?;
    let Some(status) = wait(&mut child) else {
        return Err(ProbeError::TimedOut {
            stage: child::read_stage(scratch.path()),
        });
    };
    let verdict = child::read_verdict(scratch.path());
    match verdict {
        Some(verdict) if verdict.host_version != job.host_version => Err(broken(format!(
            "it is version {}, this program is version {}",
            verdict.host_version, job.host_version
        ))),
        // One that fails while it ends would do the same to the host.
        Some(verdict) if status.success() || !verdict.ok => Ok(verdict),
        verdict => {
            let stage = child::read_stage(scratch.path());
            let output = last_output(scratch.path());
            if verdict.is_none() && stage.is_empty() {
                return Err(broken(format!(
                    "it ended ({}){}",
                    describe(status),
                    with_output(&output)
                )));
            }
            Err(ProbeError::Died {
                how: describe(status),
                stage,
                output,
            })
        }
    }
}

fn scratch_folder() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("hermes-trial-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir()
}

fn start(job: &Job, helper: &Path, scratch: &Path) -> std::io::Result<Child> {
    child::write_job(scratch, job)?;
    let output = File::create(scratch.join("output"))?;
    let mut command = Command::new(helper);
    command
        .args([ROLE, "probe"])
        .arg(scratch)
        .current_dir(scratch)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // A group of its own, so that whatever it starts ends with it.
        command.process_group(0);
    }
    command.spawn()
}

/// Waits for the child; at the limit it is killed with its group and reaped.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + LIMIT;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= deadline {
            kill(child);
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn kill(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    let _ = child.kill();
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            let name = match signal {
                4 => " SIGILL",
                6 => " SIGABRT",
                7 => " SIGBUS",
                8 => " SIGFPE",
                9 => " SIGKILL",
                11 => " SIGSEGV",
                _ => "",
            };
            return format!("signal {signal}{name}");
        }
    }
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => status.to_string(),
    }
}

/// The last line that the child printed, shortened.
fn last_output(scratch: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(scratch.join("output")) {
        let _ = file.take(64 * 1024).read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect()
}
