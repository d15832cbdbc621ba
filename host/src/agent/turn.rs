//! A turn from the user's message to its one end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use hermes_message::{Message, build};

use super::Agent;
use super::event::{Event, Sink, TurnReport};
use super::exchange::{NoAnswer, is_cut};
use super::toolbox::{self, Call};
use crate::engine::{Trigger, TurnInfo, TurnOutcome, Usage};
use crate::provider::{Cancel, Finish};

/// The turn under way.
pub(super) struct Running {
    pub(super) cancel: Cancel,
    pub(super) api_calls: u32,
    pub(super) compressions: u32,
    pub(super) warnings: Vec<String>,
    /// Of the last answer: what the engine gets at the end of the turn.
    last_usage: Option<Usage>,
    /// Of all answers together.
    usage: Option<Usage>,
    answer: String,
}

/// How the turn came to its end.
struct End {
    outcome: TurnOutcome,
    error: Option<String>,
}

impl Agent {
    /// One turn: what the user says, and everything until the model has answered.
    ///
    /// Whatever goes wrong is in the report; the transcript is valid and saved, or on its way to be, when this returns.
    pub fn turn(&mut self, text: &str, on: &mut Sink<'_>) -> TurnReport {
        let mut running = Running {
            cancel: self.interrupt.begin_turn(),
            api_calls: 0,
            compressions: 0,
            warnings: Vec::new(),
            last_usage: None,
            usage: None,
            answer: String::new(),
        };
        self.place.cancel = running.cancel.clone();
        // A fault of our own ends this turn, not the session.
        let end = catch_unwind(AssertUnwindSafe(|| self.run(&mut running, text, on)));
        let end = end.unwrap_or_else(|panic| {
            // It may have been in the middle of a pass.
            self.record.end_pass();
            self.conversation.break_off();
            End {
                outcome: TurnOutcome::Failed,
                error: Some(format!(
                    "the turn broke off because of a fault in hermes itself: {}. Please report it; the conversation is saved up to here",
                    panic_text(&*panic)
                )),
            }
        });
        self.end_turn(running, end, on)
    }

    fn run(&mut self, running: &mut Running, text: &str, on: &mut Sink<'_>) -> End {
        if text.trim().is_empty() {
            return End {
                outcome: TurnOutcome::Failed,
                error: Some("there is nothing to answer: the message is empty".to_owned()),
            };
        }
        self.sync_tools();
        self.follow_model();
        self.compact_after_pause(running, on);
        self.write(running, vec![build::user(text)], on);
        if self.record.is_stale() {
            self.adopt();
        }
        let most = self.host.config().agent().max_turns;
        let mut trigger = Trigger::Preflight;
        for _ in 0..most {
            self.follow_model();
            self.prepare(running, trigger, on);
            trigger = Trigger::Tools;
            match self.exchange(running, on) {
                Err(no_answer) => return self.keep_partial(running, no_answer, on),
                Ok(reply) => {
                    for note in &reply.notes {
                        self.tell_later([note.clone()]);
                    }
                    running.answer = reply.message.text().into_owned();
                    let calls = !reply.message.tool_calls().is_empty();
                    let message = reply.message.clone();
                    self.write(running, vec![message.clone()], on);
                    if calls {
                        let results = self.call_tools(running, &message, on);
                        self.write(running, results, on);
                        if running.cancel.is_cancelled() {
                            return End::interrupted();
                        }
                        continue;
                    }
                    if is_cut(&reply) {
                        self.tell_later([
                            "the answer was cut off at its longest length; `model.max_tokens` sets it".to_owned(),
                        ]);
                    }
                    if reply.finish == Finish::Filter {
                        return End {
                            outcome: TurnOutcome::Blocked,
                            error: Some(
                                "the provider's content policy cut the answer off".to_owned(),
                            ),
                        };
                    }
                    return End {
                        outcome: TurnOutcome::Completed,
                        error: None,
                    };
                }
            }
        }
        End {
            outcome: TurnOutcome::Failed,
            error: Some(format!(
                "the model has called tools {most} times in this turn without an answer; `agent.max_turns` sets how often it may"
            )),
        }
    }

    /// Carries out the calls of one answer, in their order. Each gets a result, also in a turn that was interrupted:
    /// a call without one would make the next request invalid.
    fn call_tools(
        &mut self,
        running: &mut Running,
        message: &Message,
        on: &mut Sink<'_>,
    ) -> Vec<Message> {
        let mut results = Vec::with_capacity(message.tool_calls().len());
        for call in message.tool_calls() {
            let (id, arguments) = (&*call.id, call.arguments());
            let call = Call {
                id,
                name: &call.name,
                arguments: &arguments,
            };
            let result = if running.cancel.is_cancelled() {
                toolbox::error("not run: the user interrupted the turn")
            } else {
                on(Event::ToolBegins {
                    name: call.name,
                    arguments: call.arguments,
                });
                let messages = self.conversation.transcript().stored().clone();
                let result = self
                    .toolbox
                    .call(call, &mut self.engine, &messages, &self.place);
                on(Event::ToolEnds {
                    name: call.name,
                    result: &result,
                });
                result
            };
            results.push(build::tool(id, &result));
            // The call may have been what took the engine out.
            self.sync_tools();
        }
        results
    }

    /// What had arrived of an answer is kept, marked as broken off.
    fn keep_partial(
        &mut self,
        running: &mut Running,
        no_answer: NoAnswer,
        on: &mut Sink<'_>,
    ) -> End {
        let NoAnswer {
            outcome,
            error,
            partial,
        } = no_answer;
        if let Some(partial) = partial {
            running.answer = partial.text().into_owned();
            let reason = if outcome == TurnOutcome::Interrupted {
                "\"interrupted\""
            } else {
                "\"error\""
            };
            let partial = build::with_member(&partial, "finish_reason", reason).unwrap_or(partial);
            let results: Vec<Message> = partial
                .tool_calls()
                .iter()
                .map(|call| {
                    let why = "not run: the answer broke off";
                    build::tool(&call.id, &toolbox::error(why))
                })
                .collect();
            let batch = std::iter::once(partial).chain(results).collect();
            self.write(running, batch, on);
        }
        End { outcome, error }
    }

    /// The one place where every turn ends (HOOK-10).
    fn end_turn(&mut self, mut running: Running, end: End, on: &mut Sink<'_>) -> TurnReport {
        let warning = self.record.flush(&mut self.conversation);
        self.tell_later(warning);
        self.turns += 1;
        self.last_active = Some(SystemTime::now());
        let turn = TurnInfo {
            usage: running.last_usage.take(),
            turn_id: format!("{}-{}", self.id, self.turns),
            outcome: end.outcome,
            api_calls: running.api_calls,
            ..TurnInfo::default()
        };
        // The turn has its outcome. Whoever interrupts from here on only ends the wait for the engine, and an engine
        // that is told of an interrupted turn has its time for that.
        let after = self.interrupt.begin_turn();
        if end.outcome == TurnOutcome::Completed && running.cancel.is_cancelled() {
            after.cancel();
        }
        self.conversation.turn_complete(&mut self.engine, turn);
        self.host.inner.indexer.nudge();
        self.interrupt.end_turn();
        let was_stopped = running.cancel.is_cancelled() || after.is_cancelled();
        self.gather_warnings();
        self.flush_warnings(&mut running, on);
        if let Some(error) = &end.error {
            tracing::warn!(session = self.record.session(), outcome = ?end.outcome, "{error}");
        }
        TurnReport {
            answer: running.answer,
            outcome: end.outcome,
            error: end.error,
            usage: running.usage,
            api_calls: running.api_calls,
            compressions: running.compressions,
            warnings: running.warnings,
            was_stopped,
        }
    }

    fn write(&mut self, running: &mut Running, messages: Vec<Message>, on: &mut Sink<'_>) {
        let warning = self.record.write(&mut self.conversation, messages);
        self.tell_later(warning);
        self.flush_warnings(running, on);
    }

    /// Shows what there is to tell, and keeps it for the report.
    pub(super) fn flush_warnings(&mut self, running: &mut Running, on: &mut Sink<'_>) {
        self.gather_warnings();
        for warning in std::mem::take(&mut self.pending) {
            on(Event::Warning(&warning));
            running.warnings.push(warning);
        }
    }
}

impl Running {
    pub(super) fn add_usage(&mut self, usage: &Usage) {
        self.last_usage = Some(usage.clone());
        let Some(sum) = &mut self.usage else {
            self.usage = Some(usage.clone());
            return;
        };
        let fields = [
            (&mut sum.prompt_tokens, usage.prompt_tokens),
            (&mut sum.completion_tokens, usage.completion_tokens),
            (&mut sum.total_tokens, usage.total_tokens),
            (&mut sum.input_tokens, usage.input_tokens),
            (&mut sum.output_tokens, usage.output_tokens),
            (&mut sum.cache_read_tokens, usage.cache_read_tokens),
            (&mut sum.cache_write_tokens, usage.cache_write_tokens),
            (&mut sum.reasoning_tokens, usage.reasoning_tokens),
        ];
        for (sum, more) in fields {
            *sum = match (*sum, more) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (sum, more) => sum.or(more),
            };
        }
        // One call's object says nothing about several.
        sum.json.clear();
    }
}

impl End {
    fn interrupted() -> Self {
        End {
            outcome: TurnOutcome::Interrupted,
            error: None,
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}
