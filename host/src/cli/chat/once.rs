//! `-q`: one answer.

use serde_json::{Value, json};

use super::super::{CliError, Exit, output};
use super::desk::{Desk, tell_closed};
use super::printer::Printer;
use crate::agent::{AgentStatus, TurnReport};
use crate::engine::{TurnOutcome, Usage};

/// Answers one message.
pub(super) fn answer(
    desk: &Desk,
    question: &str,
    mut warnings: Vec<String>,
    json: bool,
) -> Result<Exit, CliError> {
    // In hand until everything is printed: a signal's thread waits for that.
    let mut held = desk.hold();
    // Who was told to stop while the agent was being made asks nobody any more.
    let Some(agent) = held.as_mut().filter(|_| !desk.is_leaving()) else {
        drop(held);
        desk.wait_for_the_end();
    };
    let mut printer = Printer::new(agent.interrupt(), !json);
    desk.begin_turn();
    let report = agent.turn(question, &mut |event| printer.show(event));
    printer.finish(&report);
    let status = agent.status();
    warnings.extend(report.warnings.iter().cloned());
    if !output::take_result() {
        // It took too long: the process is on its way out, and has said so.
        drop(held);
        desk.wait_for_the_end();
    }
    let printed = if json {
        output::json(&object(&report, &status, &warnings))
    } else {
        Ok(())
    };
    if !printer.is_closed() {
        say_how_it_ended(&report, json);
    }
    let saved = held.take().is_none_or(|agent| {
        tell_closed(&agent.close(if desk.is_leaving() {
            "terminated"
        } else {
            "cli_close"
        }))
    });
    printed?;
    if printer.is_closed() {
        return Err(printer.take_failure());
    }
    Ok(match ended(&report) {
        TurnOutcome::Completed if saved => Exit::Done,
        _ => Exit::Failed,
    })
}

/// How the run ended. An answer that was whole when somebody stopped the run is in the result, and the run was stopped.
fn ended(report: &TurnReport) -> TurnOutcome {
    match report.outcome {
        TurnOutcome::Completed if report.was_stopped => TurnOutcome::Interrupted,
        outcome => outcome,
    }
}

fn say_how_it_ended(report: &TurnReport, json: bool) {
    match (&report.error, report.outcome) {
        (Some(error), _) => output::error(&CliError::new("failed", error)),
        (None, TurnOutcome::Completed) if report.was_stopped && !json => {
            output::warning("interrupted after the answer, which is whole and kept in the session");
        }
        (None, TurnOutcome::Interrupted) if !json => {
            output::warning("interrupted; what had arrived is kept in the session");
        }
        _ => {}
    }
}

fn object(report: &TurnReport, status: &AgentStatus, warnings: &[String]) -> Value {
    let mut object = json!({
        "answer": report.answer,
        "session_id": status.session_id,
        "outcome": outcome(ended(report)),
        "usage": report.usage.as_ref().map(usage),
        "engine": status.engine,
        "fallback": status.fallback.as_ref().map(|(wanted, reason)| json!({
            "wanted": wanted,
            "reason": reason,
        })),
        "compressions": report.compressions,
        "model": status.model,
        "api_calls": report.api_calls,
        "warnings": warnings,
    });
    if let Some(error) = &report.error {
        object["error"] = CliError::new("failed", error).to_json();
    }
    object
}

fn outcome(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Completed => "completed",
        TurnOutcome::Interrupted => "interrupted",
        TurnOutcome::Blocked => "blocked",
        TurnOutcome::Failed => "failed",
    }
}

fn usage(usage: &Usage) -> Value {
    let mut object = serde_json::Map::new();
    for (name, value) in usage.buckets() {
        if let Some(value) = value {
            object.insert(name.to_owned(), value.into());
        }
    }
    Value::Object(object)
}
