//! Where lines come from: an editor on a terminal, or the standard input as it is.

use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;

use super::super::CliError;
use super::LONGEST;
use super::desk::Desk;
use super::editor::Editor;

/// What was read.
pub(super) enum Taken {
    /// A line.
    Line(String),
    /// There is nothing more.
    End,
}

/// The source of lines.
pub(super) enum Input {
    /// A person at a terminal.
    Editor(Box<Editor>),
    /// Anything else; nobody is prompted.
    Lines,
}

impl Input {
    /// An editor if there is a terminal to draw on and to read from.
    pub(super) fn open(desk: &Desk, home: &Path) -> Result<Self, CliError> {
        let can_draw = std::env::var_os("TERM").is_none_or(|kind| kind != "dumb");
        if can_draw && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            Ok(Self::Editor(Box::new(Editor::open(desk, home))))
        } else {
            Ok(Self::Lines)
        }
    }

    pub(super) fn is_editor(&self) -> bool {
        matches!(self, Self::Editor(_))
    }

    /// What stands above the next line.
    pub(super) fn show(&mut self, status: &str) {
        if let Self::Editor(editor) = self {
            editor.show(status);
        }
    }

    /// What the next line begins with.
    pub(super) fn prefill(&mut self, text: &str) {
        if let Self::Editor(editor) = self {
            editor.prefill(text);
        }
    }

    /// Waits for a line. The engine may work meanwhile.
    pub(super) fn take(&mut self, desk: &Desk) -> Result<Taken, CliError> {
        desk.while_idle(|| match self {
            Self::Editor(editor) => editor.take(),
            Self::Lines => line(),
        })
    }
}

fn line() -> Result<Taken, CliError> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(LONGEST + 1);
    let read = stdin.read_until(b'\n', &mut bytes);
    read.map_err(|error| CliError::input(format!("cannot read the standard input: {error}")))?;
    if bytes.is_empty() {
        return Ok(Taken::End);
    }
    if bytes.len() as u64 > LONGEST {
        return Err(CliError::input(format!(
            "a line of the standard input has more than {} MiB",
            LONGEST >> 20
        ))
        .hint("each line is a message of its own"));
    }
    Ok(Taken::Line(String::from_utf8_lossy(&bytes).into_owned()))
}
