//! A model that says what the test tells it to, and keeps every body.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes::engine::Usage;
use hermes::provider::{Cancel, Delta, Failure, FailureKind, Finish, Provider, Reply};
use hermes_message::{Message, build};

/// One answer.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    Text(String),
    /// Calls of tools: id, name, arguments.
    Calls(Vec<(&'static str, &'static str, &'static str)>),
    /// Some of an answer, then nothing until the turn is interrupted.
    Hang(&'static str),
    /// A text that the provider's policy cut off.
    Filtered(&'static str),
    /// Exactly this message.
    Message(Message),
    Fail(FailureKind),
    Panic,
}

/// The model.
#[derive(Debug, Default)]
pub(crate) struct Script {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Say>,
    bodies: Vec<Body>,
    segment: usize,
    /// Each request may begin differently.
    free: bool,
    said: usize,
    /// Requests with more tokens than this are refused as too long.
    limit: Option<u64>,
    /// What each request is said to have used; `None`: a quarter of its bytes.
    prompt_tokens: Option<u64>,
    windows: HashMap<String, u64>,
}

/// A body, and which others it must begin like.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) text: String,
    pub(crate) segment: usize,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn say(&self, answers: impl IntoIterator<Item = Say>) {
        self.state().queue.extend(answers);
    }

    pub(crate) fn bodies(&self) -> Vec<Body> {
        self.state().bodies.clone()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.bodies().into_iter().map(|body| body.text).collect()
    }

    pub(crate) fn last(&self) -> String {
        self.texts().pop().expect("a request was sent")
    }

    /// From here on requests may begin differently.
    pub(crate) fn cut(&self) {
        self.state().segment += 1;
    }

    /// From here on each request may begin differently.
    pub(crate) fn free(&self) {
        self.state().free = true;
    }

    pub(crate) fn limit(&self, tokens: Option<u64>) {
        self.state().limit = tokens;
    }

    pub(crate) fn prompt_tokens(&self, tokens: Option<u64>) {
        self.state().prompt_tokens = tokens;
    }

    pub(crate) fn window(&self, model: &str, tokens: u64) {
        self.state().windows.insert(model.to_owned(), tokens);
    }
}

pub(crate) fn tokens_of(body: &str) -> u64 {
    body.len() as u64 / 4
}

fn failure(kind: FailureKind, partial: Option<&str>) -> Box<Failure> {
    Box::new(Failure {
        message: format!("the script fails: {kind:?}"),
        kind,
        status: None,
        retry_after: Some(Duration::from_millis(1)),
        partial: partial.map(build::assistant),
        usage: None,
    })
}

impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn parameters(&self) -> &str {
        r#""stream":true"#
    }

    fn send(
        &self,
        body: &str,
        cancel: &Cancel,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let (say, usage) = {
            let mut state = self.state();
            state.segment += usize::from(state.free);
            let segment = state.segment;
            state.bodies.push(Body {
                text: body.to_owned(),
                segment,
            });
            let tokens = tokens_of(body);
            if state.limit.is_some_and(|limit| tokens > limit) {
                let kind = FailureKind::Overflow {
                    limit: state.limit,
                    requested: Some(tokens),
                    payload: false,
                };
                return Err(failure(kind, None));
            }
            state.said += 1;
            let text = format!("answer {}", state.said);
            let say = state.queue.pop_front().unwrap_or(Say::Text(text));
            let prompt = i64::try_from(state.prompt_tokens.unwrap_or(tokens)).expect("small");
            let usage = Usage {
                prompt_tokens: Some(prompt),
                completion_tokens: Some(7),
                total_tokens: Some(prompt + 7),
                ..Usage::default()
            };
            (say, usage)
        };
        let (message, finish) = match say {
            Say::Text(text) => {
                on(Delta::Text(&text));
                (build::assistant(&text), Finish::Stop)
            }
            Say::Calls(calls) => (build::calling(None, &calls), Finish::ToolCalls),
            Say::Filtered(text) => (build::assistant(text), Finish::Filter),
            Say::Message(message) => (message, Finish::Stop),
            Say::Hang(text) => {
                on(Delta::Text(text));
                while !cancel.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(2));
                }
                return Err(failure(FailureKind::Cancelled, Some(text)));
            }
            Say::Fail(kind) => return Err(failure(kind, None)),
            Say::Panic => panic!("the provider panics as it was told"),
        };
        Ok(Reply {
            message,
            finish,
            usage: Some(usage),
            notes: Vec::new(),
        })
    }

    fn context_length(&self, model: &str) -> Option<u64> {
        self.state().windows.get(model).copied()
    }
}
