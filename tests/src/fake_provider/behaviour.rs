//! What is done with one request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::answer::{Answer, Figures, Form, Half};
use super::{OverflowError, Request};

/// What is done with one request. Made by the functions below and refined by the methods.
#[derive(Clone)]
pub struct Behaviour {
    pub(super) plan: Plan,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delay: Duration,
}

#[derive(Clone)]
pub(super) enum Plan {
    Answer(Box<Answer>),
    Raw(Vec<u8>),
    Events(Vec<String>),
    By(Arc<dyn Fn(&Request) -> Behaviour + Send + Sync>),
    /// Nothing at all, until the server is dropped or the client goes.
    Silence,
    /// Nothing but these bytes, again and again, until the server is dropped or the client goes.
    Alive(Vec<u8>),
    /// The connection is reset before any answer.
    Refuse,
}

impl Behaviour {
    fn of(plan: Plan) -> Self {
        Self {
            plan,
            status: 200,
            headers: Vec::new(),
            delay: Duration::ZERO,
        }
    }

    /// A complete answer: streamed if the request asks for that.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::of(Plan::Answer(Box::new(Answer {
            text: text.to_owned(),
            ..Answer::default()
        })))
    }

    /// An answer that calls tools, each as `(id, name, arguments)`. An empty id is left out.
    #[must_use]
    pub fn calls(calls: &[(&str, &str, &str)]) -> Self {
        Self::text("").and_calls(calls)
    }

    /// An answer without text, calls or anything else.
    #[must_use]
    pub fn empty() -> Self {
        Self::text("")
    }

    /// An error of this status, with this body.
    #[must_use]
    pub fn status(status: u16, body: &str) -> Self {
        Self {
            status,
            ..Self::of(Plan::Raw(body.into()))
        }
    }

    /// Status 200 with this JSON, whatever was asked.
    #[must_use]
    pub fn body(json: &str) -> Self {
        Self::of(Plan::Raw(json.into())).header("Content-Type", "application/json")
    }

    /// A stream of exactly these data, and nothing behind them.
    #[must_use]
    pub fn events(data: &[&str]) -> Self {
        Self::of(Plan::Events(
            data.iter().map(|data| (*data).to_owned()).collect(),
        ))
    }

    /// Exactly these bytes as the body, sent as a stream.
    #[must_use]
    pub fn raw(bytes: &[u8]) -> Self {
        Self::of(Plan::Raw(bytes.to_owned())).header("Content-Type", "text/event-stream")
    }

    /// The request is too long, in the words of one kind of server.
    #[must_use]
    pub fn overflow(kind: OverflowError, limit: u64, requested: u64) -> Self {
        kind.behaviour(limit, requested)
    }

    /// Nothing is sent at all until the server is dropped.
    #[must_use]
    pub fn stall() -> Self {
        Self::of(Plan::Silence)
    }

    /// A stream of nothing but these bytes every few milliseconds, until the server is dropped.
    #[must_use]
    pub fn alive(bytes: &[u8]) -> Self {
        Self::of(Plan::Alive(bytes.to_owned()))
    }

    /// The connection is reset before any answer.
    #[must_use]
    pub fn refuse() -> Self {
        Self::of(Plan::Refuse)
    }

    /// The text has bytes that are no UTF-8.
    #[must_use]
    pub fn invalid_utf8() -> Self {
        let mut bytes =
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"caf\xe9\xff!\"},".to_vec();
        bytes.extend_from_slice(b"\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        Self::raw(&bytes)
    }

    /// What is done is found out from the request.
    #[must_use]
    pub fn by(answer: impl Fn(&Request) -> Behaviour + Send + Sync + 'static) -> Self {
        Self::of(Plan::By(Arc::new(answer)))
    }

    fn change(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        if let Plan::Answer(answer) = &mut self.plan {
            change(answer);
        }
        self
    }

    /// Adds tool calls, each as `(id, name, arguments)`.
    #[must_use]
    pub fn and_calls(self, calls: &[(&str, &str, &str)]) -> Self {
        let own = calls
            .iter()
            .map(|(id, name, arguments)| [*id, *name, *arguments].map(str::to_owned));
        self.change(|answer| answer.calls.extend(own))
    }

    /// Adds thoughts, under `reasoning_content`.
    #[must_use]
    pub fn thinking(self, text: &str) -> Self {
        self.change(|answer| text.clone_into(&mut answer.reasoning))
    }

    /// Gives this reason for the end.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.change(|answer| answer.finish = Some(reason.to_owned()))
    }

    /// Answers in one piece even if a stream was asked for.
    #[must_use]
    pub fn in_one_piece(self) -> Self {
        self.change(|answer| answer.form = Form::Json)
    }

    /// Says this about the use, at the end, instead of a guess from the lengths.
    #[must_use]
    pub fn usage(self, usage: Value) -> Self {
        self.change(|answer| answer.usage = Figures::AtEnd(Some(usage)))
    }

    /// Says nothing about the use.
    #[must_use]
    pub fn without_usage(self) -> Self {
        self.change(|answer| answer.usage = Figures::Never)
    }

    /// Says the use with every event.
    #[must_use]
    pub fn usage_in_every_event(self) -> Self {
        self.change(|answer| answer.usage = Figures::Always)
    }

    /// Writes so many bytes at a time, wherever that cuts an event.
    #[must_use]
    pub fn in_portions(self, bytes: usize) -> Self {
        self.change(|answer| answer.portion = bytes.max(1))
    }

    /// Waits between two writes.
    #[must_use]
    pub fn slowly(self, pause: Duration) -> Self {
        self.change(|answer| answer.pause = pause)
    }

    /// Ends the stream without `[DONE]`.
    #[must_use]
    pub fn without_done(self) -> Self {
        self.change(|answer| answer.done = false)
    }

    /// Sends comments between the events, as servers do to keep a connection alive.
    #[must_use]
    pub fn with_comments(self) -> Self {
        self.change(|answer| answer.comments = true)
    }

    /// Resets the connection after so many pieces of the answer.
    #[must_use]
    pub fn reset_after(self, pieces: usize) -> Self {
        self.change(|answer| answer.half = Some((pieces, Half::Reset)))
    }

    /// Closes the connection in good order after so many pieces.
    #[must_use]
    pub fn close_after(self, pieces: usize) -> Self {
        self.change(|answer| answer.half = Some((pieces, Half::Close)))
    }

    /// Sends half of the event after so many pieces, and closes the connection.
    #[must_use]
    pub fn half_event_after(self, pieces: usize) -> Self {
        self.change(|answer| answer.half = Some((pieces, Half::Torn)))
    }

    /// Goes silent after so many pieces, until the server is dropped.
    #[must_use]
    pub fn stall_after(self, pieces: usize) -> Self {
        self.change(|answer| answer.half = Some((pieces, Half::Stall)))
    }

    /// Sends everything, and then goes silent instead of ending the body.
    #[must_use]
    pub fn stall_at_end(self) -> Self {
        self.stall_after(usize::MAX)
    }

    /// Sends this as an error event after so many pieces.
    #[must_use]
    pub fn error_after(self, pieces: usize, error: &str) -> Self {
        self.change(|answer| answer.half = Some((pieces, Half::Error(error.to_owned()))))
    }

    /// Waits before the answer begins.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = match &self.plan {
            Plan::Answer(answer) => format!("{answer:?}"),
            Plan::Raw(bytes) => format!("{} bytes", bytes.len()),
            Plan::Events(events) => format!("{} events", events.len()),
            Plan::By(_) => "by a function".to_owned(),
            Plan::Silence => "silence".to_owned(),
            Plan::Alive(_) => "signs of life".to_owned(),
            Plan::Refuse => "a reset".to_owned(),
        };
        write!(f, "Behaviour({}, {plan})", self.status)
    }
}
