//! One question of an engine's: its body, its time, and who may stop it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use hermes_message::Message;
use serde_json::{Map, Value};

use crate::provider::{Cancel, Delta, Failure, FailureKind, Provider, Reply};

/// How often the engine's call is asked whether it still wants an answer.
const LOOK: Duration = Duration::from_millis(20);

/// The time that a question has: so much without progress, and so much in all.
#[derive(Debug)]
pub(super) struct Clock {
    silence: Duration,
    last: Instant,
    end: Option<Instant>,
}

impl Clock {
    pub(super) fn new(now: Instant, silence: Duration, all: Duration) -> Self {
        Self {
            silence,
            last: now,
            end: now.checked_add(all),
        }
    }

    fn progress(&mut self) {
        self.last = Instant::now();
    }

    fn left(&self) -> Duration {
        let silence = self.silence.saturating_sub(self.last.elapsed());
        let all = self.end.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        });
        silence.min(all)
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Whether there is time after such a wait.
    pub(super) fn leaves(&self, wait: Duration) -> bool {
        self.left() > wait
    }
}

/// One question.
pub(super) struct Ask<'a> {
    /// The messages, joined, without brackets.
    messages: String,
    max_tokens: Option<u64>,
    pub(super) clock: Clock,
    cancelled: &'a dyn Fn() -> bool,
    on_text: &'a mut dyn FnMut(&str),
}

impl<'a> Ask<'a> {
    /// Reads an engine's request.
    ///
    /// # Errors
    /// What is wrong with it, for the engine's author.
    pub(super) fn read(
        request: &str,
        clock: Clock,
        cancelled: &'a dyn Fn() -> bool,
        on_text: &'a mut dyn FnMut(&str),
    ) -> Result<Self, String> {
        let request: Value = serde_json::from_str(request)
            .map_err(|error| format!("the request to `complete` is no JSON: {error}"))?;
        let list = request.get("messages").and_then(Value::as_array);
        let list = list.ok_or("the request to `complete` has no list of messages")?;
        let mut messages = String::new();
        for (at, message) in list.iter().enumerate() {
            let message = Message::parse(&message.to_string())
                .map_err(|error| format!("message {at} of the request to `complete`: {error}"))?;
            if !messages.is_empty() {
                messages.push(',');
            }
            // What belongs to the store only does not go out, in no request (UID-9).
            messages.push_str(message.wire());
        }
        if messages.is_empty() {
            return Err("the request to `complete` has no messages".to_owned());
        }
        Ok(Self {
            messages,
            max_tokens: request.get("max_tokens").and_then(Value::as_u64),
            clock,
            cancelled,
            on_text,
        })
    }

    /// The body for one model.
    pub(super) fn body(&self, model: &str, extra: &Map<String, Value>, parameters: &str) -> String {
        let mut body = format!(
            "{{\"model\":{},\"messages\":[{}]",
            Value::from(model),
            self.messages
        );
        let mut parameters = parameters.to_owned();
        let mut own: Map<String, Value> =
            serde_json::from_str(&format!("{{{parameters}}}")).unwrap_or_default();
        let limits = ["max_tokens", "max_completion_tokens"];
        if let Some(limit) = self.max_tokens {
            let name = limits.iter().find(|name| own.contains_key(**name));
            own.insert((*name.unwrap_or(&limits[0])).to_owned(), limit.into());
        }
        let mut changed = self.max_tokens.is_some();
        for (key, value) in extra {
            if key == "messages" || key == "model" {
                continue;
            }
            if let Some(old) = own.get_mut(key) {
                old.clone_from(value);
                changed = true;
            } else {
                body.push_str(&format!(",{}:{value}", Value::from(key.as_str())));
            }
        }
        if changed {
            let text = Value::Object(own).to_string();
            text[1..text.len() - 1].clone_into(&mut parameters);
        }
        if !parameters.is_empty() {
            body.push(',');
            body.push_str(&parameters);
        }
        body.push('}');
        body
    }

    /// Sends it once. The answer is waited for on a thread of its own, so that this one can look at the time and at the
    /// engine's call.
    pub(super) fn send(
        &mut self,
        provider: &dyn Provider,
        body: &str,
    ) -> Result<Reply, Box<Failure>> {
        if (self.cancelled)() {
            return Err(self.cancelled());
        }
        let cancel = Cancel::new();
        let (parts, arriving) = channel::<String>();
        let mut given_up = None;
        let result = thread::scope(|scope| {
            let sending = thread::Builder::new()
                .name("hermes-complete".into())
                .spawn_scoped(scope, || {
                    let parts = parts;
                    provider.send(body, &cancel, &mut |delta| {
                        // Thoughts are progress too.
                        let part = match delta {
                            Delta::Text(text) => text.to_owned(),
                            Delta::Reasoning(_) | Delta::ToolCall(_) => String::new(),
                        };
                        let _ = parts.send(part);
                    })
                });
            let sending = sending.map_err(|error| {
                let message = format!("the system gives no thread for a request: {error}");
                Failure::new(FailureKind::Connection, message)
            })?;
            loop {
                match arriving.recv_timeout(LOOK) {
                    Ok(part) => {
                        self.clock.progress();
                        if !part.is_empty() && given_up.is_none() {
                            (self.on_text)(&part);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if given_up.is_none() && ((self.cancelled)() || self.clock.is_over()) {
                    given_up = Some(if self.clock.is_over() {
                        let name = provider.name();
                        let message = format!("{name} did not answer within the time of the call");
                        Failure::new(FailureKind::Stalled, message)
                    } else {
                        self.cancelled()
                    });
                    cancel.cancel();
                }
            }
            sending.join().unwrap_or_else(|_| {
                Err(Failure::new(
                    FailureKind::BadAnswer,
                    "the request failed inside the host",
                ))
            })
        });
        match (result, given_up) {
            // It came just in time.
            (Ok(reply), _) => Ok(reply),
            (Err(_), Some(failure)) => Err(failure),
            (Err(failure), None) => Err(failure),
        }
    }

    /// Sleeps; whether the engine still wants an answer.
    pub(super) fn sleep(&self, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        loop {
            if (self.cancelled)() {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// Nobody waits for the answer any more.
    pub(super) fn cancelled(&self) -> Box<Failure> {
        Failure::new(FailureKind::Cancelled, "the engine's call was cancelled")
    }
}
