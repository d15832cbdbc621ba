//! Where results and complaints go: stdout carries the result only, stderr one line each.
//!
//! Nothing here panics when the other side has closed its end, which `println!` and `eprintln!` would.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::{CliError, Exit};

/// The real stdout, once [`keep_stdout`] has set it apart from what the name stands for.
static RESULTS: OnceLock<File> = OnceLock::new();

/// Keeps stdout for results. Called before an engine is loaded: from here on, what any other code in this process
/// prints there (an engine's `printf`) goes to stderr.
pub fn keep_stdout() {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        if RESULTS.get().is_some() {
            return;
        }
        crate::engine::watch_exit(ended_by_an_engine);
        // A process that has no descriptor left prints as before.
        if let Ok(own) = io::stdout().as_fd().try_clone_to_owned()
            && RESULTS.set(File::from(own)).is_ok()
        {
            let _ = rustix::stdio::dup2_stdout(io::stderr());
        }
    }
}

/// Whether the result that somebody waits for is one JSON value.
static JSON: AtomicBool = AtomicBool::new(false);

/// What is still said when an engine calls `exit`: without it the process would end with the engine's status, which may
/// be 0, and without a result.
fn ended_by_an_engine() -> u8 {
    let error = CliError::new("engine", "an engine ended the process; there is no result")
        .hint("`hermes plugins list` shows other engines");
    if JSON.load(Ordering::Acquire) {
        let _ = json(&serde_json::json!({"error": error.to_json()}));
    }
    self::error(&error);
    error.exit.code()
}

/// Whether somebody prints the result, or has.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// Takes the right to print the one result, before it is printed: `false` if somebody else has it.
pub(super) fn take_result() -> bool {
    !GIVEN.swap(true, Ordering::AcqRel)
}

/// What is said when the process is told to stop before there is a result.
pub(super) fn stopped() {
    if !take_result() {
        return;
    }
    let error = CliError::new(
        "interrupted",
        "stopped by a signal before there was a result",
    );
    if JSON.load(Ordering::Acquire) {
        let _ = json(&serde_json::json!({"error": error.to_json()}));
    }
    self::error(&error);
}

/// Says that this command's result is one JSON value, whatever happens.
pub(super) fn expect_json(wanted: bool) {
    JSON.store(wanted, Ordering::Release);
}

fn results() -> Box<dyn Write> {
    match RESULTS.get() {
        Some(own) => Box::new(own),
        None => Box::new(io::stdout().lock()),
    }
}

/// Prints one line (or a block) of text to stdout.
pub fn text(text: impl Display) -> Result<(), CliError> {
    let mut out = results();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Prints one JSON value and a line feed to stdout.
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    let mut out = BufWriter::new(results());
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Prints text as it is.
pub fn raw(text: &str) -> Result<(), CliError> {
    let mut out = results();
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

/// Prints what to do next on a line of its own, where an error needs two.
pub fn hint(message: impl Display) {
    complain("hint", &message.to_string());
}

/// Prints a line that only says what is under way. Ask [`shows_progress`] first.
pub fn progress(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", one_line(&message.to_string()));
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
pub(super) fn finish(json_wanted: bool, outcome: Result<Exit, CliError>) -> Exit {
    crate::engine::exit_is_expected();
    let error = match outcome {
        Ok(exit) => return exit,
        Err(error) if error.is_closed_pipe() => return error.exit,
        Err(error) => error,
    };
    if json_wanted {
        // If stdout is gone too, the status still tells.
        let _ = json(&serde_json::json!({"error": error.to_json()}));
    }
    self::error(&error);
    error.exit
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_message_stays_on_one_line_and_sends_no_control_characters() {
        assert_eq!(one_line("a\nb\tc\u{1b}[31m"), "a b c\\u{1b}[31m");
    }
}
