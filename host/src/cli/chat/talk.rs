//! A conversation of many turns: a line in, an answer or a command's result out.

use super::super::{CliError, Exit, output};
use super::act::{self, Flow};
use super::command::{self, Line};
use super::desk::{Desk, tell_closed};
use super::input::{Input, Taken};
use super::printer::Printer;
use super::status;
use crate::agent::{Agent, Host};
use crate::engine::TurnOutcome;

/// Talks until the input ends.
pub(super) fn talk(desk: &Desk, host: &Host) -> Result<Exit, CliError> {
    let mut input = Input::open(desk, host.home())?;
    let mut talk = Talk {
        desk,
        host,
        failed: false,
        lines: 0,
    };
    if input.is_editor()
        && let Some(agent) = desk.hold().as_ref()
    {
        output::progress(greeting(agent));
    }
    let ended = talk.run(&mut input);
    // A signal's thread may have had it before.
    let agent = desk.hold().take();
    let saved = match agent {
        Some(agent) => tell_closed(&agent.close(if desk.is_leaving() {
            "terminated"
        } else {
            "cli_close"
        })),
        None => desk.wait_for_the_end(),
    };
    ended?;
    if talk.lines == 0 && !input.is_editor() && !desk.is_leaving() {
        return Err(CliError::usage(
            "nothing to answer: the standard input is empty and no terminal",
        )
        .hint("`hermes chat -q TEXT` answers once; each line of the standard input is a message"));
    }
    // On a terminal the person has seen what failed.
    Ok(if !saved || talk.failed && !input.is_editor() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

struct Talk<'a> {
    desk: &'a Desk,
    host: &'a Host,
    /// A turn or a command did not come to what it should.
    failed: bool,
    lines: u64,
}

impl Talk<'_> {
    fn run(&mut self, input: &mut Input) -> Result<(), CliError> {
        loop {
            {
                let mut held = self.desk.hold();
                let Some(agent) = held.as_mut() else {
                    return Ok(());
                };
                if self.desk.is_leaving() {
                    return Ok(());
                }
                warn(agent);
                input.show(&status::line(&agent.status()));
            }
            let line = match input.take(self.desk)? {
                Taken::Line(line) => line,
                Taken::End => return Ok(()),
            };
            let mut held = self.desk.hold();
            let Some(agent) = held.as_mut() else {
                return Ok(());
            };
            if self.desk.is_leaving() {
                return Ok(());
            }
            match command::parse(&line, agent.engine()) {
                Line::Empty => continue,
                Line::Message(text) => {
                    self.lines += 1;
                    self.turn(agent, &text)?;
                }
                Line::Command(command) => {
                    self.lines += 1;
                    self.desk.begin_turn();
                    match act::act(agent, self.host, command) {
                        Ok(Flow::On) => {}
                        Ok(Flow::Edit(text)) => input.prefill(&text),
                        Ok(Flow::Quit) => return Ok(()),
                        Err(error) if error.is_closed_pipe() => return Err(error),
                        Err(error) => self.complain(&error),
                    }
                }
                Line::Wrong(sentence) => {
                    self.lines += 1;
                    self.complain(&CliError::usage(sentence));
                }
            }
        }
    }

    fn turn(&mut self, agent: &mut Agent, text: &str) -> Result<(), CliError> {
        let mut printer = Printer::new(agent.interrupt(), true);
        self.desk.begin_turn();
        let report = agent.turn(text, &mut |event| printer.show(event));
        self.desk.end_turn();
        printer.finish(&report);
        if printer.is_closed() {
            return Err(printer.take_failure());
        }
        match (&report.error, report.outcome) {
            (Some(error), _) => self.complain(&CliError::new("failed", error)),
            (None, TurnOutcome::Interrupted) => {
                self.failed = true;
                output::warning("interrupted; what had arrived is kept");
            }
            _ => {}
        }
        Ok(())
    }

    fn complain(&mut self, error: &CliError) {
        self.failed = true;
        output::error(error);
    }
}

/// The first line on a terminal.
fn greeting(agent: &Agent) -> String {
    let status = agent.status();
    let begun = match status.messages {
        0 => String::new(),
        _ => format!(
            " · going on with session {}, {} messages",
            status.session_id, status.messages
        ),
    };
    format!(
        "Talking to {}{begun} · /help lists commands, Ctrl-D leaves",
        status.model
    )
}

/// What is to be told now.
fn warn(agent: &mut Agent) {
    for warning in agent.take_warnings() {
        output::warning(warning);
    }
}
