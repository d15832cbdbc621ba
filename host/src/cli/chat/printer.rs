//! Shows a turn while it runs: the answer on stdout as it arrives, all else on stderr.

use std::io::IsTerminal;
use std::time::Duration;

use serde_json::Value;

use super::super::{CliError, output};
use crate::agent::{Event, Interrupt, TurnReport};
use crate::engine::TurnOutcome;

/// Characters of a tool's arguments that are shown.
const ARGUMENTS: usize = 100;
/// A pause of so long wants an explanation, also where nobody sees progress.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// One turn's display.
pub(super) struct Printer {
    interrupt: Interrupt,
    /// The answer is shown as it arrives; otherwise it is printed by somebody else.
    streams: bool,
    /// A person reads the answer.
    to_person: bool,
    /// A person may see what is under way.
    progress: bool,
    /// Something of the answer under way is on stdout.
    has_text: bool,
    /// Something of an answer that broke off is on stdout.
    has_part: bool,
    /// Something of this turn is on stdout, and the last of it was a line's end.
    in_line: bool,
    /// Nobody reads stdout any more.
    is_closed: bool,
    /// Why, to be told once.
    failure: Option<CliError>,
}

impl Printer {
    pub(super) fn new(interrupt: Interrupt, streams: bool) -> Self {
        Self {
            interrupt,
            streams,
            to_person: std::io::stdout().is_terminal(),
            progress: output::shows_progress(),
            has_text: false,
            has_part: false,
            in_line: false,
            is_closed: false,
            failure: None,
        }
    }

    /// Whether the reader of stdout has gone.
    /// Why nothing can be written any more; a pipe whose other side has closed is no failure.
    pub(super) fn take_failure(&mut self) -> CliError {
        self.failure.take().unwrap_or_else(CliError::closed_pipe)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.text(text),
            Event::Instead {
                model,
                is_main,
                reason,
                other,
                at,
            } => {
                let began = self.begins_anew();
                if self.progress {
                    let what = if is_main { "main model " } else { "" };
                    output::progress(format!(
                        "{what}{model} is not available ({reason}); asking {other} at {at}"
                    ));
                } else if began {
                    output::warning(format!(
                        "the answer broke off and begins anew, from {other}: {reason}"
                    ));
                }
            }
            Event::Again { reason, wait } => {
                let began = self.begins_anew();
                let seconds = wait.as_secs_f32();
                if self.progress {
                    output::progress(format!("{reason}; asking again in {seconds:.1} s"));
                } else if began {
                    output::warning(format!("the answer broke off and begins anew: {reason}"));
                } else if wait >= LONG_WAIT {
                    output::warning(format!("{reason}; asking again in {seconds:.0} s"));
                }
            }
            Event::ToolBegins { name, arguments } => {
                self.end_line();
                self.has_text = false;
                if self.progress {
                    output::progress(format!("→ {name} {}", clipped(arguments)));
                }
            }
            Event::ToolEnds { result, .. } => {
                if self.progress
                    && let Ok(result) = serde_json::from_str::<Value>(result)
                    && let Some(error) = result.get("error").and_then(Value::as_str)
                {
                    output::progress(format!("  {}", clipped(error)));
                }
            }
            Event::Status(text) => {
                if self.progress {
                    self.end_persons_line();
                    output::progress(text);
                }
            }
            Event::Warning(text) => {
                self.end_persons_line();
                output::warning(text);
            }
            Event::Reasoning(_) => {}
        }
    }

    /// What was shown of an answer is void; whether there was something.
    fn begins_anew(&mut self) -> bool {
        let began = std::mem::take(&mut self.has_text);
        self.has_part |= began;
        self.end_line();
        began
    }

    /// The turn is over: what has not been shown of the answer is shown now.
    pub(super) fn finish(&mut self, report: &TurnReport) {
        let broke_off = report.outcome != TurnOutcome::Completed && self.has_part;
        if !self.has_text && !broke_off {
            self.text(&report.answer);
        }
        self.end_line();
    }

    fn text(&mut self, text: &str) {
        if !self.streams || text.is_empty() {
            return;
        }
        self.has_text = true;
        self.in_line = !text.ends_with('\n');
        let shown;
        let text = if self.to_person {
            shown = harmless(text);
            &shown
        } else {
            text
        };
        self.put(text);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.in_line) {
            self.put("\n");
        }
    }

    /// A line on stderr is to stand on a line of its own, where both are one terminal.
    fn end_persons_line(&mut self) {
        if self.to_person {
            self.end_line();
        }
    }

    fn put(&mut self, text: &str) {
        if self.is_closed {
            return;
        }
        if let Err(error) = output::raw(text) {
            // Nobody is there to read the rest, or it cannot be written.
            self.is_closed = true;
            self.failure = Some(error);
            self.interrupt.interrupt();
        }
    }
}

/// A text without what would steer the terminal.
pub(super) fn harmless(text: &str) -> String {
    text.chars()
        .filter(|c| *c != '\r')
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                '\u{FFFD}'
            } else {
                c
            }
        })
        .collect()
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(ARGUMENTS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn a_model_does_not_steer_the_terminal() {
        assert_eq!(
            harmless("a\tb\r\nc\u{1b}[2Jd\u{9b}1m\u{7}"),
            "a\tb\nc\u{fffd}[2Jd\u{fffd}1m\u{fffd}"
        );
    }
}
