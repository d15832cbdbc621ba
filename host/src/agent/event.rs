//! What a surface hears of a turn while it runs, and what it gets at its end.

use std::time::Duration;

use crate::engine::{TurnOutcome, Usage};

/// Something to show now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Text of the model's reasoning.
    Reasoning(&'a str),
    /// The answer under way broke off and is asked for again; what was shown of it is void.
    Again {
        /// Why.
        reason: &'a str,
        /// How long is waited before.
        wait: Duration,
    },
    /// The model has failed for good and another one is asked; what was shown of an answer under way is void.
    Instead {
        /// The model that was asked.
        model: &'a str,
        /// It is the conversation's own, not one that stood in for it.
        is_main: bool,
        /// What became of it.
        reason: &'a str,
        /// The model that is asked from now on.
        other: &'a str,
        /// Where that one is.
        at: &'a str,
    },
    /// A tool begins.
    ToolBegins {
        /// Its name.
        name: &'a str,
        /// What the model wrote as its arguments.
        arguments: &'a str,
    },
    /// A tool has ended.
    ToolEnds {
        /// Its name.
        name: &'a str,
        /// Its result, JSON.
        result: &'a str,
    },
    /// A routine line about the context. An engine that is quiet has none.
    Status(&'a str),
    /// Something that went wrong. Never left out.
    Warning(&'a str),
}

/// A finished turn.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// The text of the last answer; what had arrived of it, if the turn did not come to its end.
    pub answer: String,
    /// How the turn ended.
    pub outcome: TurnOutcome,
    /// Why it did not come to its end, and what to do.
    pub error: Option<String>,
    /// What all its model calls used together; `None` if no answer was reached.
    pub usage: Option<Usage>,
    /// How many requests were sent.
    pub api_calls: u32,
    /// How many passes were committed.
    pub compressions: u32,
    /// Every warning of the turn.
    pub warnings: Vec<String>,
    /// Somebody interrupted it, at whatever moment. The answer of a completed turn is whole all the same: then it was the
    /// engine, at work on the finished turn, that was not waited for any longer.
    pub was_stopped: bool,
}

/// Where a surface hears the events of a turn.
pub type Sink<'a> = dyn FnMut(Event<'_>) + 'a;
