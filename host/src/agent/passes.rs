//! The passes of an agent: what the user hears of them, and what is done when a request does not fit.

use super::Agent;
use super::event::{Event, Sink};
use super::record::Record;
use super::turn::Running;
use crate::context::{Conversation, Engine, Outcome, PassStore, Stored, checks};
use crate::engine::Trigger;

/// A pass for a request that still does not fit aims at this share of what the last one aimed at.
const NEXT_TARGET_PERCENT: u64 = 60;
/// The share of the window that a pass for a request that does not fit gets below.
const FITS_PERCENT: u64 = 85;

/// The record as a pass store, with a line for the user when an engine begins.
struct Announced<'a, 'b> {
    record: &'a mut Record,
    /// `None`: nothing is said.
    line: Option<String>,
    on: &'a mut Sink<'b>,
}

impl PassStore for Announced<'_, '_> {
    fn begin(&mut self) -> Result<(), String> {
        self.record.begin()?;
        if let Some(line) = &self.line {
            (self.on)(Event::Status(line));
        }
        Ok(())
    }

    fn commit(
        &mut self,
        pass_id: &str,
        messages: Vec<hermes_message::Message>,
    ) -> Result<Stored, String> {
        self.record.commit(pass_id, messages)
    }

    fn end(&mut self) {
        self.record.end();
    }
}

impl Agent {
    /// The passes that the engine asks for before a request.
    pub(super) fn prepare(&mut self, running: &mut Running, trigger: Trigger, on: &mut Sink<'_>) {
        let outcomes = self.with_store(trigger, on, |conversation, engine, store| {
            conversation.prepare(engine, trigger, store)
        });
        for outcome in &outcomes {
            self.note(running, outcome, on);
        }
        self.after_passes();
    }

    /// The conversation goes on after a pause: opt-in, and only where there is something to win.
    pub(super) fn compact_after_pause(&mut self, running: &mut Running, on: &mut Sink<'_>) {
        let compression = self.host.config().compression();
        let pause = self.idle_for().unwrap_or_default();
        if compression
            .idle_compact_after()
            .is_none_or(|after| pause < after)
        {
            return;
        }
        // Token counts are far below 2^52; the ratio is positive.
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let floor = (self.engine.state().threshold_tokens as f64 * compression.target_ratio) as u64;
        let outcome = self.with_store(Trigger::Idle, on, |conversation, engine, store| {
            conversation.idle(engine, floor.max(1), store)
        });
        if let Some(outcome) = outcome {
            self.note(running, &outcome, on);
        }
        self.after_passes();
    }

    /// The request does not fit: one pass. `tokens` is its size as far as known, `tries` how many such passes were run
    /// for this request. `false`: nothing more can be done.
    pub(super) fn shrink(
        &mut self,
        running: &mut Running,
        tokens: u64,
        most: u64,
        tries: u32,
        on: &mut Sink<'_>,
    ) -> bool {
        let mut target = most / 100 * FITS_PERCENT;
        let trigger = self.engine.state().threshold_tokens;
        if trigger > 0 {
            target = target.min(trigger);
        }
        for _ in 0..tries {
            target = target / 100 * NEXT_TARGET_PERCENT;
        }
        let target = target.max(1);
        let outcome = self.with_store(Trigger::Overflow, on, |conversation, engine, store| {
            // The engine's own pass comes first; if it does not help, the built-in's.
            let own = match tries {
                0 => conversation.overflow(engine, tokens, target, store),
                _ => None,
            };
            own.or_else(|| conversation.rescue(engine, tokens, target, store))
                .or_else(|| match tries {
                    0 => None,
                    _ => conversation.overflow(engine, tokens, target, store),
                })
        });
        let Some(outcome) = outcome else {
            return false;
        };
        self.note(running, &outcome, on);
        self.after_passes();
        true
    }

    /// `/compress [focus]`: one pass that goes through every back-off.
    pub fn compress(&mut self, focus: Option<&str>, on: &mut Sink<'_>) -> Outcome {
        let warning = self.record.flush(&mut self.conversation);
        self.tell_later(warning);
        if self.record.is_stale() {
            self.adopt();
        }
        self.follow_model();
        let focus = focus.map(str::trim).filter(|focus| !focus.is_empty());
        let focus = focus.map(str::to_owned);
        // The interrupt watches this as it watches a turn.
        let cancel = self.interrupt.begin_turn();
        let outcome = self.with_store(Trigger::Manual, on, |conversation, engine, store| {
            conversation.force(engine, focus, None, store)
        });
        drop(cancel);
        self.interrupt.end_turn();
        if matches!(outcome, Outcome::Committed { .. }) {
            self.compressions += 1;
        }
        self.after_passes();
        self.gather_warnings();
        outcome
    }

    fn with_store<T>(
        &mut self,
        trigger: Trigger,
        on: &mut Sink<'_>,
        run: impl FnOnce(&mut Conversation, &mut dyn Engine, &mut dyn PassStore) -> T,
    ) -> T {
        let tokens = self.conversation.next_tokens();
        let line = self
            .announces()
            .then(|| line(trigger, tokens, self.engine.state().threshold_tokens));
        let mut store = Announced {
            record: &mut self.record,
            line,
            on,
        };
        run(&mut self.conversation, &mut self.engine, &mut store)
    }

    fn announces(&self) -> bool {
        !self.options.quiet && self.engine.state().emit_automatic_compaction_status
    }

    /// What came of a pass, for the report and the user. Failures always show; what an engine did wrong is told by
    /// its handle, each kind once.
    fn note(&mut self, running: &mut Running, outcome: &Outcome, on: &mut Sink<'_>) {
        match outcome {
            Outcome::Committed {
                tokens_before,
                tokens_after,
            } => {
                self.compressions += 1;
                running.compressions += 1;
                if self.announces() {
                    on(Event::Status(&format!(
                        "✓ Context compacted: ~{tokens_before} → ~{tokens_after} tokens of messages"
                    )));
                }
            }
            Outcome::Failed { reason } if !running.cancel.is_cancelled() => {
                self.gather_warnings();
                let said = self.pending.iter().chain(&running.warnings);
                if !said.clone().any(|said| said.contains(reason.as_str())) {
                    self.tell_later([format!(
                        "compression failed: {reason}. No messages were dropped; the conversation goes on unchanged"
                    )]);
                }
            }
            Outcome::Refused { violations } => {
                tracing::info!(why = checks::summary(violations), "a pass was refused");
            }
            Outcome::Failed { .. }
            | Outcome::Unchanged { .. }
            | Outcome::Skipped { .. }
            | Outcome::Busy => {}
        }
        self.flush_warnings(running, on);
    }

    /// A pass may have found that others changed the session, or have been the end of the engine.
    fn after_passes(&mut self) {
        if self.record.is_stale() {
            self.adopt();
        }
        // A rotation goes on in another session.
        self.follow_session();
        self.sync_tools();
    }
}

/// What is said when a pass begins.
fn line(trigger: Trigger, tokens: u64, threshold: u64) -> String {
    match trigger {
        Trigger::Preflight => format!(
            "📦 Preflight compression: ~{tokens} tokens, threshold {threshold}. This may take a moment."
        ),
        Trigger::Overflow => format!("🗜️ Context too large (~{tokens} tokens) — compressing..."),
        Trigger::Idle => {
            format!("💤 Resumed after a pause — compacting ~{tokens} tokens before continuing.")
        }
        Trigger::Manual | Trigger::Tools | Trigger::Prune => {
            "🗜️ Compacting context — summarizing earlier conversation...".to_owned()
        }
    }
}
