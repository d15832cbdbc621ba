//! How a command ends: a process status, or an error that a person can act on.

use std::io;
use std::process::ExitCode;

/// The status of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done (0).
    Done,
    /// It ran, and what it found is a failure: violations, an engine that does not serve (1).
    Failed,
    /// Wrong use, or a configuration that cannot be followed (2).
    Usage,
}

impl Exit {
    /// The number the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// What a person reads when a command could not do its work.
///
/// `kind` is a stable word for programs, `message` says what, where and why, `hint` what to do next. All three are
/// printed on one line of stderr, and as `{"error": …}` on stdout with `--json`.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// A stable word: `usage`, `config`, `input`, `engine`, `io`, `failed`, …
    pub kind: &'static str,
    /// What went wrong, where and why.
    pub message: String,
    /// What to do next; empty if there is nothing sensible to say.
    pub hint: String,
    /// The status of the process.
    pub exit: Exit,
}

impl CliError {
    /// An error with exit status 1.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        CliError {
            kind,
            message: message.into(),
            hint: String::new(),
            exit: Exit::Failed,
        }
    }

    /// The command was called in a way it does not support (exit 2).
    pub fn usage(message: impl Into<String>) -> Self {
        CliError {
            exit: Exit::Usage,
            ..CliError::new("usage", message)
        }
    }

    /// The configuration cannot be followed (exit 2).
    pub fn config(message: impl Into<String>) -> Self {
        CliError {
            exit: Exit::Usage,
            ..CliError::new("config", message)
        }
    }

    /// A file or stream given by the user is not what the command reads (exit 1).
    pub fn input(message: impl Into<String>) -> Self {
        CliError::new("input", message)
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Replaces the exit status.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The object that stands under `error` in JSON output.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({"kind": self.kind, "message": self.message, "hint": self.hint})
    }

    /// The reader of our output went away: no failure, nothing to say.
    pub fn closed_pipe() -> Self {
        CliError {
            exit: Exit::Done,
            ..CliError::new("closed pipe", "the reader of the output has gone")
        }
    }

    /// True for [`CliError::closed_pipe`].
    pub fn is_closed_pipe(&self) -> bool {
        self.kind == "closed pipe"
    }
}

/// Errors of writing to stdout. Anything that knows a path should say it in an own message instead.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CliError::closed_pipe();
        }
        CliError::new("io", format!("cannot write the output: {error}"))
    }
}
