//! One pass, carried out: what the machine orders, with a real engine and a real store.

use super::checks;
use super::pass::{Action, Answer, Event, Order, Outcome};
use super::port::{Engine, PassStore, Stored};
use super::{Conversation, Told, Transcript};
use crate::engine::{CompressRequest, Emission, MessageList, PassOutcome, StartReason};

impl Conversation {
    /// Runs the machine with this engine, to its end.
    pub(super) fn pass(
        &mut self,
        engine: &mut dyn Engine,
        order: Order,
        by: By,
        store: &mut dyn PassStore,
    ) -> Outcome {
        let mut begun = false;
        let mut old_session = String::new();
        let mut todo = self.machine.step(Event::Begin {
            order,
            transcript: &self.transcript,
        });
        while !todo.is_empty() {
            let mut next = Vec::new();
            for action in todo {
                match action {
                    Action::Compress {
                        generation,
                        order,
                        snapshot,
                    } => {
                        if let Err(reason) = store.begin() {
                            // Nothing has run, so nothing is to be told to the engine.
                            self.machine.step(Event::GaveUp {
                                generation,
                                reason: reason.clone(),
                            });
                            self.machine.forget(generation);
                            self.tell_once(Told::Skipped, || {
                                format!("compression skipped: {reason}")
                            });
                            return Outcome::Skipped { reason };
                        }
                        begun = true;
                        let answer = compress(engine, order, &snapshot, by);
                        // The snapshot goes before anything is appended, so that appending stays cheap.
                        drop(snapshot);
                        next = self.machine.step(Event::Returned { generation, answer });
                    }
                    Action::Store {
                        generation,
                        pass_id,
                        messages,
                    } => {
                        let event = match store.commit(&pass_id, messages) {
                            Ok(Stored {
                                messages,
                                session_id,
                            }) => {
                                old_session.clone_from(&self.settings.session_id);
                                if let Some(new) = session_id {
                                    self.move_to(&new);
                                }
                                Event::Stored {
                                    generation,
                                    messages,
                                }
                            }
                            Err(reason) => Event::NotStored { generation, reason },
                        };
                        next = self.machine.step(event);
                    }
                    Action::Adopt { taken, messages } => {
                        self.transcript.commit(taken, &messages);
                        self.account.forget_anchor();
                    }
                    Action::Tell {
                        pass_id,
                        committed,
                        reason,
                    } => {
                        let outcome = if committed {
                            PassOutcome::Committed(self.transcript.stored().clone())
                        } else {
                            PassOutcome::Discarded(reason)
                        };
                        engine.pass_result(&pass_id, outcome);
                    }
                    Action::Boundary { pass_id } => {
                        self.last_pass_id = pass_id;
                        self.start_after(engine, StartReason::Compression, &old_session);
                    }
                    Action::End(outcome) => {
                        if begun {
                            store.end();
                        }
                        self.tell_of(engine.name(), &outcome);
                        return outcome;
                    }
                }
            }
            todo = next;
        }
        // The machine ends every pass with `End`; this is for the compiler.
        Outcome::Busy
    }

    fn tell_of(&mut self, engine: &str, outcome: &Outcome) {
        if let Outcome::Refused { violations } = outcome {
            let why = checks::summary(violations);
            self.tell_once(Told::Refused, || {
                format!("context engine '{engine}': the result of compress was refused: {why}; the transcript stays as it was")
            });
        }
    }
}

/// Who runs a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The conversation's engine.
    Engine,
    /// The built-in, in its place.
    BuiltIn,
}

fn compress(
    engine: &mut dyn Engine,
    order: Order,
    snapshot: &Transcript,
    by: By,
) -> Result<Answer, String> {
    let list: MessageList = snapshot.stored().clone();
    let request = CompressRequest {
        messages: list.clone(),
        trigger: order.trigger,
        force: order.force,
        incoming: snapshot.incoming(),
        current_tokens: order
            .current_tokens
            .and_then(|tokens| i64::try_from(tokens).ok()),
        target_tokens: order.target_tokens,
        focus: order.focus,
        memory_context: order.memory_context,
        pass_id: order.pass_id,
    };
    let emission = match by {
        By::Engine => engine.compress(request),
        By::BuiltIn => engine.compress_with_builtin(request),
    };
    Ok(match emission.map_err(|fault| fault.to_string())? {
        Emission::Unchanged { reason } => Answer::Unchanged(reason),
        Emission::Messages(items) => {
            let lists = [&list];
            Answer::Messages(
                items
                    .iter()
                    .filter_map(|item| item.message(&lists))
                    .cloned()
                    .collect(),
            )
        }
    })
}
