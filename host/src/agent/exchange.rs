//! One request and its answer, with everything that is tried until there is one.

use std::time::{Duration, Instant};

use super::Agent;
use super::event::{Event, Sink};
use super::turn::Running;
use crate::context::Request;
use crate::engine::{TurnOutcome, Usage};
use crate::provider::{self, Delta, Failure, FailureKind, Finish, Reply};

/// How often a wait looks whether the turn was interrupted.
const LOOK: Duration = Duration::from_millis(20);

/// Why there is no answer.
pub(super) struct NoAnswer {
    pub(super) outcome: TurnOutcome,
    /// For the user; `None` where they know it themselves.
    pub(super) error: Option<String>,
    /// What had arrived of an answer.
    pub(super) partial: Option<hermes_message::Message>,
}

/// What has been tried for one request.
#[derive(Default)]
pub(super) struct Tries {
    /// Requests of these messages so far: engines choose anew for each (HOOK-7).
    attempt: u32,
    /// Failures that may pass by themselves.
    pub(super) transient: u32,
    /// Passes because it did not fit.
    pub(super) shrinks: u32,
    /// Who has failed for good: 0 the main model, 1 the first stand-in, and so on.
    pub(super) gave_way: Vec<usize>,
    /// The longest part of an answer that broke off.
    partial: Option<hermes_message::Message>,
}

impl Agent {
    /// Sends the next request until it is answered, or cannot be.
    pub(super) fn exchange(
        &mut self,
        running: &mut Running,
        on: &mut Sink<'_>,
    ) -> Result<Reply, NoAnswer> {
        let mut tries = Tries::default();
        loop {
            if running.cancel.is_cancelled() {
                return Err(tries.interrupted(None));
            }
            let request = self.fitting(running, &mut tries, on);
            self.flush_warnings(running, on);
            running.api_calls += 1;
            let result = self.send(&request, running, on);
            tries.attempt += 1;
            let failure = match result {
                Ok(mut reply) => {
                    reply.notes.extend(self.answers_instead());
                    let usage = reply.usage.clone();
                    let usage = usage.unwrap_or_else(|| estimated(&request, &reply));
                    running.add_usage(&usage);
                    self.conversation
                        .answered(&mut self.engine, &request, usage);
                    return Ok(reply);
                }
                Err(failure) => *failure,
            };
            if let Some(usage) = &failure.usage {
                running.add_usage(usage);
            }
            tries.keep(failure.partial.clone());
            match &failure.kind {
                FailureKind::Cancelled => return Err(tries.interrupted(None)),
                FailureKind::Overflow {
                    limit,
                    requested,
                    payload,
                } => {
                    let most = self.learn_limit(*limit, *requested, *payload, request.tokens);
                    let tokens = requested.unwrap_or(request.tokens).max(most + 1);
                    if !self.ask_larger(&mut tries, &failure, tokens, on)
                        && !self.may_shrink(running, tokens, most, &mut tries, on)
                    {
                        return Err(self.exhausted(tries, &failure));
                    }
                }
                kind if kind.is_transient() => {
                    let Some(wait) = provider::retry::wait(tries.transient, &failure) else {
                        self.ask_another(&mut tries, failure, request.tokens, on)?;
                        continue;
                    };
                    tries.transient += 1;
                    on(Event::Again {
                        reason: &failure.message,
                        wait,
                    });
                    tracing::info!(attempt = tries.transient, ?wait, error = %failure, "asking again");
                    if !slept(wait, running) {
                        return Err(tries.interrupted(None));
                    }
                }
                FailureKind::Blocked => {
                    return Err(NoAnswer {
                        outcome: TurnOutcome::Blocked,
                        error: Some(self.blamed(&failure)),
                        partial: tries.partial,
                    });
                }
                _ => self.ask_another(&mut tries, failure, request.tokens, on)?,
            }
        }
    }

    fn send(
        &self,
        request: &Request,
        running: &Running,
        on: &mut Sink<'_>,
    ) -> Result<Reply, Box<Failure>> {
        self.asked_provider().send(
            request.body.text(),
            &running.cancel,
            &mut |delta| match delta {
                Delta::Text(text) => on(Event::Text(text)),
                Delta::Reasoning(text) => on(Event::Reasoning(text)),
                Delta::ToolCall(_) => {}
            },
        )
    }

    /// The request, after as many passes as it takes for it to fit by our own figures. If they do not help it is sent
    /// all the same: the provider knows better.
    fn fitting(&mut self, running: &mut Running, tries: &mut Tries, on: &mut Sink<'_>) -> Request {
        let mut request = self.conversation.request(&mut self.engine, tries.attempt);
        let most = self.asked_window();
        while most > 0 && request.tokens > most && tries.shrinks < 2 {
            if !self.may_shrink(running, request.tokens, most, tries, on) {
                break;
            }
            request = self.conversation.request(&mut self.engine, tries.attempt);
        }
        request
    }

    fn may_shrink(
        &mut self,
        running: &mut Running,
        tokens: u64,
        most: u64,
        tries: &mut Tries,
        on: &mut Sink<'_>,
    ) -> bool {
        let allowed = self.conversation.settings().max_attempts.saturating_add(1);
        if tries.shrinks >= allowed || running.cancel.is_cancelled() {
            return false;
        }
        let done = self.shrink(running, tokens, most, tries.shrinks, on);
        tries.shrinks += 1;
        done
    }

    /// The most that a request may have, as far as the provider has said; a smaller window than was thought is the
    /// window from now on.
    fn learn_limit(
        &mut self,
        limit: Option<u64>,
        requested: Option<u64>,
        payload: bool,
        estimate: u64,
    ) -> u64 {
        match limit {
            Some(limit) if limit > 0 && !payload => {
                let window = self.asked_window();
                if window == 0 || limit < window {
                    self.narrow(limit);
                }
                limit
            }
            // Nobody says how much less is needed.
            _ => (requested.unwrap_or(estimate) / 4 * 3).max(1),
        }
    }

    fn exhausted(&self, tries: Tries, failure: &Failure) -> NoAnswer {
        let why = if self.conversation.settings().automatic {
            "no pass could make it fit. `/compress` tries once more, `/rewind` takes the last turn back, `/new` begins afresh"
        } else {
            "compression is off (`compression.enabled`). `/compress` runs one pass, `/new` begins afresh"
        };
        let what = self.blamed(failure);
        tries.failed(format!("{}; {why}", what.trim_end_matches('.')))
    }
}

impl Tries {
    /// Of answers that broke off, the longest is worth keeping if no whole one comes.
    fn keep(&mut self, partial: Option<hermes_message::Message>) {
        let length = |message: &hermes_message::Message| message.stored().len();
        if let Some(partial) = partial
            && self
                .partial
                .as_ref()
                .is_none_or(|kept| length(kept) <= length(&partial))
        {
            self.partial = Some(partial);
        }
    }

    fn interrupted(self, error: Option<String>) -> NoAnswer {
        NoAnswer {
            outcome: TurnOutcome::Interrupted,
            error,
            partial: self.partial,
        }
    }

    pub(super) fn failed(self, error: String) -> NoAnswer {
        NoAnswer {
            outcome: TurnOutcome::Failed,
            error: Some(error),
            partial: self.partial,
        }
    }
}

/// Waits, unless the turn is interrupted.
fn slept(wait: Duration, running: &Running) -> bool {
    let until = Instant::now() + wait;
    loop {
        if running.cancel.is_cancelled() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// What a call must have used, where the provider does not say.
fn estimated(request: &Request, reply: &Reply) -> Usage {
    let mut usage = Usage::counted(request.tokens, reply.message.tokens().into());
    let end = usage.json.len() - 1;
    usage.json.insert_str(end, ",\"estimated\":true");
    usage
}

/// Whether the answer has reached its longest length.
pub(super) fn is_cut(reply: &Reply) -> bool {
    reply.finish == Finish::Length
}
