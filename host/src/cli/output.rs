//! Where results and complaints go: stdout carries the result only, stderr one line each.
//!
//! Nothing here panics when the other side has closed its end, which `println!` and `eprintln!` would.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::{CliError, Exit};

/// Prints one line (or a block) of text to stdout.
pub fn text(text: impl Display) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Prints one JSON value and a line feed to stdout.
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Prints text as it is.
pub fn raw(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints `error: …` on one line of stderr, with what to do next.
pub fn error(error: &CliError) {
    if error.hint.is_empty() {
        complain("error", &error.message);
    } else {
        complain(
            "error",
            &format!("{} (hint: {})", error.message, error.hint),
        );
    }
}

/// Prints `warning: …` on one line of stderr.
pub fn warning(message: impl Display) {
    complain("warning", &message.to_string());
}

/// True if progress may be drawn: a person is watching stderr.
pub fn shows_progress() -> bool {
    io::stderr().is_terminal()
}

fn complain(word: &str, message: &str) {
    // A closed stderr leaves nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{word}: {}", one_line(message));
}

/// A message on one line: line breaks become blanks, other control characters are shown, not sent to the terminal.
pub fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for c in message.trim().chars() {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}

/// Turns what a command returned into the last output and the status of the process.
pub(super) fn finish(json_wanted: bool, outcome: Result<Exit, CliError>) -> ExitCode {
    let error = match outcome {
        Ok(exit) => return exit.into(),
        Err(error) if error.is_closed_pipe() => return error.exit.into(),
        Err(error) => error,
    };
    if json_wanted {
        // If stdout is gone too, the status still tells.
        let _ = json(&serde_json::json!({"error": error.to_json()}));
    }
    self::error(&error);
    error.exit.into()
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_message_stays_on_one_line_and_sends_no_control_characters() {
        assert_eq!(one_line("a\nb\tc\u{1b}[31m"), "a b c\\u{1b}[31m");
    }
}
