//! Why a tool did not do what the model asked for, in sentences for the model.

use std::io;

use serde_json::{Value, json};

/// A call that failed. Each text says what to send instead, where there is something.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    /// The model's arguments are not what the tool takes.
    #[error("{problem}; expected {expected}")]
    Arguments {
        problem: String,
        expected: &'static str,
    },
    /// A path that leads, or would lead, out of the working directory.
    #[error(
        "'{path}' lies outside the working directory, which is all that can be read; use a path relative to it"
    )]
    Outside { path: String },
    /// A path into the host's own folder.
    #[error("'{path}' belongs to hermes itself (its keys and conversations), and is not read")]
    KeptBack { path: String },
    /// Nothing has this name.
    #[error("there is no '{path}'{}", did_you_mean(similar))]
    Missing { path: String, similar: Vec<String> },
    /// A directory, where a file is needed.
    #[error("'{path}' is a directory; name one of its files")]
    IsDirectory {
        path: String,
        entries: Vec<String>,
        more: bool,
    },
    /// A FIFO, a device, a socket: opening or reading it could block, or do something.
    #[error("'{path}' is {kind}, and only regular files are read")]
    Special { path: String, kind: &'static str },
    /// A file whose bytes are no text.
    #[error("'{path}' is no text but {what} ({size} bytes), and is not shown")]
    Binary {
        path: String,
        what: &'static str,
        size: u64,
    },
    /// The window begins behind the last line.
    #[error("'{path}' has {lines} lines; `offset` {offset} is behind the last one")]
    PastEnd {
        path: String,
        lines: u64,
        offset: u64,
    },
    /// Getting to the wanted line would mean reading too much.
    #[error(
        "line {offset} of '{path}' lies more than {reach} MiB into the file, further than this tool reads; look for a text in it with search_files"
    )]
    TooFar {
        path: String,
        offset: u64,
        reach: u64,
    },
    /// The pattern or the glob cannot be used.
    #[error("{problem}")]
    Pattern { problem: String },
    /// The user interrupted the turn.
    #[error("the call was interrupted by the user")]
    Interrupted,
    /// The system refused.
    #[error("'{path}' cannot be read: {}", reason(source))]
    Io { path: String, source: io::Error },
}

impl ToolError {
    /// Wraps what the system said about a path.
    pub(super) fn io(path: &str, source: io::Error) -> Self {
        Self::Io {
            path: shown(path),
            source,
        }
    }

    /// `{"error": …}`, with what a directory holds where one was named.
    pub(super) fn to_json(&self) -> Value {
        let mut value = json!({"error": self.to_string()});
        if let Self::IsDirectory { entries, more, .. } = self {
            value["entries"] = json!(entries);
            if *more {
                value["more_entries"] = json!(true);
            }
        }
        value
    }
}

/// A text of the model's, short enough to be quoted back, and on one line.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == LONGEST {
            shown.push('…');
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn did_you_mean(similar: &[String]) -> String {
    if similar.is_empty() {
        return "; search_files with kind \"name\" finds files by name".to_owned();
    }
    let names: Vec<String> = similar.iter().map(|name| format!("'{name}'")).collect();
    format!("; similar: {}", names.join(", "))
}

fn reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "no permission".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is no directory".to_owned(),
        io::ErrorKind::InvalidFilename => "the name is too long".to_owned(),
        io::ErrorKind::WouldBlock => "it has nothing to read at the moment".to_owned(),
        // Links were resolved before: one here is new.
        _ if is_loop(source) => "it is a link in a circle, or was changed meanwhile".to_owned(),
        _ => source.to_string(),
    }
}

#[cfg(unix)]
fn is_loop(source: &io::Error) -> bool {
    source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_loop(_: &io::Error) -> bool {
    false
}
