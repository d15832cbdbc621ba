//! The compression pass as a state machine: events in, actions out, no I/O and no engine.
//!
//! ```text
//! Idle ─Begin→ Running ─Returned→ checked ─ok→ Committing ─Stored→ Idle (committed, then the boundary)
//!                 │                  └─refused, unchanged, failed→ Idle (discarded)
//!                 └─GaveUp→ Idle; whatever returns later finds its generation gone and is discarded
//! ```
//!
//! Whoever drives it (a replay, an agent with a store and a clock) does what the actions say, in their order, and
//! reports what came of it. A pass works on a snapshot; the transcript changes by [`Action::Adopt`] and by nothing
//! else.

use hermes_message::Message;

use super::checks::{self, Violation};
use super::transcript::{self, Transcript};
use crate::engine::Trigger;

/// What a pass is asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// The id under which the engine prepares its work and later hears what became of it.
    pub pass_id: String,
    /// Why the pass runs.
    pub trigger: Trigger,
    /// Asked for by the user: goes through every cool-down.
    pub force: bool,
    /// The text of `/compress <focus>`.
    pub focus: Option<String>,
    /// What memory providers want to be kept.
    pub memory_context: Option<String>,
    /// The whole request, as far as known.
    pub current_tokens: Option<u64>,
    /// Get below this; `None` leaves it to the engine.
    pub target_tokens: Option<u64>,
}

impl Order {
    /// A pass with nothing but its id and its reason.
    #[must_use]
    pub fn new(pass_id: impl Into<String>, trigger: Trigger) -> Self {
        Order {
            pass_id: pass_id.into(),
            trigger,
            force: trigger == Trigger::Manual,
            focus: None,
            memory_context: None,
            current_tokens: None,
            target_tokens: None,
        }
    }
}

/// What the engine gave back.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Nothing to do, with the engine's reason.
    Unchanged(String),
    /// A new list.
    Messages(Vec<Message>),
}

/// Something happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A pass is wanted.
    Begin {
        /// What it is asked for.
        order: Order,
        /// The transcript of this moment.
        transcript: &'a Transcript,
    },
    /// The engine's `compress` has returned; `Err` carries the fault's sentence.
    Returned {
        /// The generation of the [`Action::Compress`] that it belongs to.
        generation: u64,
        /// What it returned.
        answer: Result<Answer, String>,
    },
    /// The driver does not wait any longer.
    GaveUp {
        /// The generation of the pass.
        generation: u64,
        /// Why.
        reason: String,
    },
    /// The candidate is safe in the store; the messages are the candidate's with every uid.
    Stored {
        /// The generation of the pass.
        generation: u64,
        /// The new transcript.
        messages: Vec<Message>,
    },
    /// The store did not take the candidate.
    NotStored {
        /// The generation of the pass.
        generation: u64,
        /// Why.
        reason: String,
    },
}

/// What is to be done, in this order.
#[derive(Debug)]
pub enum Action {
    /// Call the engine's `compress` with this snapshot.
    Compress {
        /// Belongs to the events that answer this.
        generation: u64,
        /// The arguments.
        order: Order,
        /// A private snapshot (PASS-3).
        snapshot: Transcript,
    },
    /// Write the candidate in one transaction, minting what has no uid.
    Store {
        /// Belongs to the events that answer this.
        generation: u64,
        /// The pass, to be written in the same transaction.
        pass_id: String,
        /// The new list.
        messages: Vec<Message>,
    },
    /// The transcript's first `taken` messages become these.
    Adopt {
        /// How many messages the snapshot had.
        taken: usize,
        /// What takes their place.
        messages: Vec<Message>,
    },
    /// Tell the engine what became of its result (PASS-11).
    Tell {
        /// The pass.
        pass_id: String,
        /// Whether the transcript is the pass's result now.
        committed: bool,
        /// Why it was discarded.
        reason: String,
    },
    /// Tell the engine of the boundary: `session_start` with the reason "compression" (LIFE-5).
    Boundary {
        /// The newest committed pass.
        pass_id: String,
    },
    /// The pass is over.
    End(Outcome),
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The transcript is a new one.
    Committed {
        /// The estimate of the messages before.
        tokens_before: u64,
        /// The estimate of the messages after.
        tokens_after: u64,
    },
    /// There was nothing to do.
    Unchanged {
        /// Why, in the engine's words.
        reason: String,
    },
    /// The result breaks rules; the transcript stays as it was.
    Refused {
        /// Which ones.
        violations: Vec<Violation>,
    },
    /// The engine or the store failed, or the pass was given up.
    Failed {
        /// Why.
        reason: String,
    },
    /// A pass of this conversation is running already.
    Busy,
    /// The session could not be had for a pass; no engine was asked.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// The machine of one conversation.
#[derive(Debug, Default)]
pub struct PassMachine {
    generation: u64,
    phase: Phase,
    /// Passes that nobody waits for, and whose engines may still be at work.
    given_up: Vec<(u64, String)>,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Running {
        pass_id: String,
        snapshot: Transcript,
    },
    Committing {
        pass_id: String,
        snapshot: Transcript,
    },
}

impl PassMachine {
    /// Whether a pass is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Takes an event, and says what to do.
    pub fn step(&mut self, event: Event<'_>) -> Vec<Action> {
        match event {
            Event::Begin { order, transcript } => self.begin(order, transcript),
            Event::Returned { generation, answer } => self.returned(generation, answer),
            Event::GaveUp { generation, reason } => self.gave_up(generation, reason),
            Event::Stored {
                generation,
                messages,
            } => self.stored(generation, messages),
            Event::NotStored { generation, reason } => self.not_stored(generation, reason),
        }
    }

    /// The given-up pass never entered an engine, so nothing will come of it.
    pub fn forget(&mut self, generation: u64) {
        self.given_up.retain(|(late, _)| *late != generation);
    }

    fn begin(&mut self, order: Order, transcript: &Transcript) -> Vec<Action> {
        if !self.is_idle() {
            return vec![Action::End(Outcome::Busy)];
        }
        self.generation += 1;
        let snapshot = transcript.clone();
        self.phase = Phase::Running {
            pass_id: order.pass_id.clone(),
            snapshot: snapshot.clone(),
        };
        vec![Action::Compress {
            generation: self.generation,
            order,
            snapshot,
        }]
    }

    fn returned(&mut self, generation: u64, answer: Result<Answer, String>) -> Vec<Action> {
        if let Some(at) = self
            .given_up
            .iter()
            .position(|(late, _)| *late == generation)
        {
            return late(self.given_up.swap_remove(at).1, answer);
        }
        if generation != self.generation {
            return Vec::new();
        }
        let (pass_id, snapshot) = match std::mem::take(&mut self.phase) {
            Phase::Running { pass_id, snapshot } => (pass_id, snapshot),
            other => {
                self.phase = other;
                return Vec::new();
            }
        };
        match answer {
            Err(reason) => vec![Action::End(Outcome::Failed { reason })],
            Ok(Answer::Unchanged(reason)) => vec![Action::End(Outcome::Unchanged { reason })],
            Ok(Answer::Messages(messages)) => self.check(pass_id, snapshot, messages),
        }
    }

    fn check(
        &mut self,
        pass_id: String,
        snapshot: Transcript,
        messages: Vec<Message>,
    ) -> Vec<Action> {
        if messages == snapshot.messages() {
            let reason = "the engine returned the same list".to_owned();
            return vec![
                Action::Tell {
                    pass_id,
                    committed: false,
                    reason: reason.clone(),
                },
                Action::End(Outcome::Unchanged { reason }),
            ];
        }
        let violations = checks::check(snapshot.messages(), &messages);
        if let Some(first) = violations.first() {
            return vec![
                Action::Tell {
                    pass_id,
                    committed: false,
                    reason: first.to_string(),
                },
                Action::End(Outcome::Refused { violations }),
            ];
        }
        self.phase = Phase::Committing {
            pass_id: pass_id.clone(),
            snapshot,
        };
        vec![Action::Store {
            generation: self.generation,
            pass_id,
            messages,
        }]
    }

    fn gave_up(&mut self, generation: u64, reason: String) -> Vec<Action> {
        // A commit that has begun is never abandoned: its end decides.
        let Phase::Running { pass_id, .. } = &mut self.phase else {
            return Vec::new();
        };
        if generation != self.generation {
            return Vec::new();
        }
        self.given_up.push((generation, std::mem::take(pass_id)));
        self.phase = Phase::Idle;
        vec![Action::End(Outcome::Failed { reason })]
    }

    fn stored(&mut self, generation: u64, messages: Vec<Message>) -> Vec<Action> {
        let Some((pass_id, snapshot)) = self.commit_ended(generation) else {
            return Vec::new();
        };
        let tokens_after = transcript::tokens(&messages);
        vec![
            Action::Adopt {
                taken: snapshot.len(),
                messages,
            },
            Action::Tell {
                pass_id: pass_id.clone(),
                committed: true,
                reason: String::new(),
            },
            Action::Boundary { pass_id },
            Action::End(Outcome::Committed {
                tokens_before: snapshot.tokens(),
                tokens_after,
            }),
        ]
    }

    fn not_stored(&mut self, generation: u64, reason: String) -> Vec<Action> {
        let Some((pass_id, _)) = self.commit_ended(generation) else {
            return Vec::new();
        };
        vec![
            Action::Tell {
                pass_id,
                committed: false,
                reason: reason.clone(),
            },
            Action::End(Outcome::Failed { reason }),
        ]
    }

    fn commit_ended(&mut self, generation: u64) -> Option<(String, Transcript)> {
        if generation != self.generation {
            return None;
        }
        match std::mem::take(&mut self.phase) {
            Phase::Committing { pass_id, snapshot } => Some((pass_id, snapshot)),
            other => {
                self.phase = other;
                None
            }
        }
    }
}

/// What came too late is void, and the engine that prepared it is told so.
fn late(pass_id: String, answer: Result<Answer, String>) -> Vec<Action> {
    match answer {
        Ok(Answer::Messages(_)) => vec![Action::Tell {
            pass_id,
            committed: false,
            reason: "it came after the pass had been given up".to_owned(),
        }],
        Ok(Answer::Unchanged(_)) | Err(_) => Vec::new(),
    }
}
