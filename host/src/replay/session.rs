//! One recorded conversation through one engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_message::sequence::{self, Policy, Rule};
use hermes_message::{Identity, Message, Role};

use super::count::{Counter, Tokens};
use super::report::{EngineReport, Fallback, Percentiles, ViolationLine};
use super::watch::{At, Watched};
use crate::context::request::{Body, Frame};
use crate::context::{Conversation, Engine, Outcome, PassStore, Request, Settings, checks};
use crate::engine::{StartReason, Trigger, TurnInfo, TurnOutcome, Usage};

/// Plays one conversation.
pub struct Player<'a, E> {
    engine: Watched<E>,
    conversation: Conversation,
    counter: Counter,
    fixed: u64,
    window: u64,
    uids: Uids,
    request: usize,
    turn: Turn,
    last_list: Option<Body>,
    reuse: (u64, u64),
    host_times: Vec<Duration>,
    engine_times: Vec<Duration>,
    report: EngineReport,
    sent: &'a mut dyn FnMut(SentRequest<'_>) -> std::io::Result<()>,
}

/// A request as it went out.
#[derive(Clone, Copy, Debug)]
pub struct SentRequest<'a> {
    /// Its number, from 0.
    pub request: usize,
    /// The engine that served.
    pub engine: &'a str,
    /// The body.
    pub body: &'a str,
}

/// The turn under way.
#[derive(Default)]
struct Turn {
    number: u32,
    calls: u32,
    usage: Option<Usage>,
}

/// Uids in the order of need: the same recording gets the same ones.
#[derive(Default)]
struct Uids(u64);

impl Uids {
    fn mint(&mut self) -> String {
        self.0 += 1;
        format!("{:032x}", self.0)
    }

    /// A message as it would be once its row exists; what it has already stays.
    fn stamp(&mut self, message: &Message) -> Message {
        let has_all = message.identity().uid.is_some() && message.tool_calls().is_empty();
        if has_all {
            return message.clone();
        }
        let mut identity: Identity = message.identity().clone();
        if identity.uid.is_none() {
            identity.uid = Some(self.mint().into());
        }
        identity.mint_calls(message.tool_calls(), || self.mint());
        message.replaced_identity(identity)
    }
}

impl<'a, E: Engine> Player<'a, E> {
    /// Sets up a replay. `report` names the engine and where it came from; the rest of it is filled in here.
    pub fn new(
        engine: E,
        settings: Settings,
        model: &str,
        tools: &[Arc<str>],
        tokens: Tokens,
        report: EngineReport,
        sent: &'a mut dyn FnMut(SentRequest<'_>) -> std::io::Result<()>,
    ) -> Self {
        let counter = Counter::new(tokens);
        Player {
            engine: Watched::new(engine),
            window: settings.context_length,
            conversation: Conversation::new(settings, Frame::new(model, tools)),
            fixed: counter.tools(tools),
            counter,
            uids: Uids::default(),
            request: 0,
            turn: Turn::default(),
            last_list: None,
            reuse: (0, 0),
            host_times: Vec::new(),
            engine_times: Vec::new(),
            report,
            sent,
        }
    }

    /// Plays the recording to its end. `tick` is called after each request.
    ///
    /// # Errors
    /// Only those of `sent`.
    pub fn play(
        mut self,
        recording: &[Message],
        tick: &mut dyn FnMut(),
    ) -> std::io::Result<EngineReport> {
        self.conversation.start(&mut self.engine, StartReason::New);
        for message in recording {
            match message.role() {
                Role::Assistant => {
                    self.exchange(Some(message))?;
                    tick();
                }
                Role::User => self.end_turn(),
                _ => {}
            }
            let stamped = self.uids.stamp(message);
            self.conversation.push(stamped);
        }
        // Somebody still waits for an answer.
        if recording
            .last()
            .is_some_and(|last| matches!(last.role(), Role::User | Role::Tool))
        {
            self.exchange(None)?;
            tick();
        }
        self.end_turn();
        self.conversation.end(&mut self.engine);
        Ok(self.finish())
    }

    /// One request, and the recorded answer's usage.
    fn exchange(&mut self, answer: Option<&Message>) -> std::io::Result<()> {
        self.engine.take_spent();
        let begun = Instant::now();
        let mut aside = Duration::ZERO;
        let trigger = match self
            .conversation
            .transcript()
            .messages()
            .last()
            .map(Message::role)
        {
            Some(Role::User) => Trigger::Preflight,
            _ => Trigger::Tools,
        };
        let outcomes = self.with_commit(|conversation, engine, commit| {
            conversation.prepare(engine, trigger, commit)
        });
        self.note_passes(&outcomes);
        let (request, tokens) = self.fitting_request(&mut aside);
        let completion = answer.map_or(0, |answer| {
            self.counter.messages(std::slice::from_ref(answer))
        });
        let usage = Usage::counted(tokens, completion);
        self.conversation
            .answered(&mut self.engine, &request, usage.clone());
        let spent = self.engine.take_spent();
        self.host_times
            .push(begun.elapsed().saturating_sub(spent + aside));
        self.engine_times.push(spent);
        self.turn.calls += 1;
        self.turn.usage = Some(usage);
        self.note_request(&request, tokens)
    }

    /// The request as a provider would take it: if it is too long, one pass of the engine's is tried, and then one of
    /// the built-in's.
    fn fitting_request(&mut self, aside: &mut Duration) -> (Request, u64) {
        let (mut request, mut tokens) = self.counted_request(0, aside);
        for (attempt, rescue) in [(1, false), (2, true)] {
            if self.fits(tokens) {
                break;
            }
            let target = self.target();
            let outcome = self.with_commit(|conversation, engine, commit| {
                if rescue {
                    conversation.rescue(engine, tokens, target, commit)
                } else {
                    conversation.overflow(engine, tokens, target, commit)
                }
            });
            match &outcome {
                None => break,
                Some(Outcome::Committed { .. }) if rescue => self.report.rescued += 1,
                Some(outcome) => self.note_passes(std::slice::from_ref(outcome)),
            }
            (request, tokens) = self.counted_request(attempt, aside);
        }
        self.report.over_window += usize::from(!self.fits(tokens));
        (request, tokens)
    }

    fn counted_request(&mut self, attempt: u32, aside: &mut Duration) -> (Request, u64) {
        let request = self.conversation.request(&mut self.engine, attempt);
        let counting = Instant::now();
        let tokens = self.counter.messages(&request.messages) + self.fixed;
        *aside += counting.elapsed();
        (request, tokens)
    }

    fn fits(&self, tokens: u64) -> bool {
        self.window == 0 || tokens <= self.window
    }

    /// What a pass for a request that does not fit is to get below.
    fn target(&self) -> u64 {
        let most = self.window / 100 * 85;
        match self.engine.state().threshold_tokens {
            0 => most,
            trigger => trigger.min(most),
        }
        .max(1)
    }

    fn with_commit<T>(
        &mut self,
        run: impl FnOnce(&mut Conversation, &mut Watched<E>, &mut dyn PassStore) -> T,
    ) -> T {
        let uids = &mut self.uids;
        let mut commit = |_pass: &str, messages: Vec<Message>| -> Result<Vec<Message>, String> {
            Ok(messages.iter().map(|message| uids.stamp(message)).collect())
        };
        run(&mut self.conversation, &mut self.engine, &mut commit)
    }

    fn note_passes(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            match outcome {
                Outcome::Committed { .. } => self.report.compressions += 1,
                Outcome::Refused { violations } => {
                    self.report.refused += 1;
                    self.note_violations(At::Compress, violations);
                }
                Outcome::Failed { .. } => self.report.refused += 1,
                Outcome::Unchanged { .. } | Outcome::Busy | Outcome::Skipped { .. } => {}
            }
        }
    }

    fn note_violations(&mut self, at: At, violations: &[checks::Violation]) {
        let request = self.request;
        self.report
            .violations
            .extend(violations.iter().map(|violation| ViolationLine {
                at: at.name(),
                request,
                rule: violation.broken.name().to_owned(),
                message: violation.message,
                detail: violation.broken.to_string(),
            }));
    }

    fn note_request(&mut self, request: &Request, tokens: u64) -> std::io::Result<()> {
        for (at, why) in self.engine.take_invalid() {
            self.report.violations.push(ViolationLine {
                at: at.name(),
                request: self.request,
                rule: "invalid-output".to_owned(),
                message: None,
                detail: why,
            });
        }
        if request.selected.is_some() {
            self.report.selections += 1;
        }
        if let Some(selected) = request.selected.as_ref().or(request.unusable.as_ref()) {
            let broken = checks::introduced(self.conversation.transcript().messages(), selected);
            self.note_violations(At::SelectContext, &broken);
        }
        self.note_final(&request.messages);
        self.report.requests += 1;
        self.report.prompt_tokens += tokens;
        self.report.peak_tokens = self.report.peak_tokens.max(tokens);
        if let Some(last) = &self.last_list {
            let all = request.body.list().len();
            let same = common_prefix(last.list().as_bytes(), request.body.list().as_bytes());
            self.reuse.0 += u64::try_from(same).unwrap_or(u64::MAX);
            self.reuse.1 += u64::try_from(all).unwrap_or(u64::MAX);
        }
        let name = self.report.engine.clone();
        (self.sent)(SentRequest {
            request: self.request,
            engine: &name,
            body: request.body.text(),
        })?;
        self.last_list = Some(request.body.clone());
        self.request += 1;
        Ok(())
    }

    /// The final request after all repairs must break no rule at all, whatever the recording was like. Only that
    /// nobody has said anything yet is the recording's own affair.
    fn note_final(&mut self, messages: &[Message]) {
        let nobody = !self
            .conversation
            .transcript()
            .messages()
            .iter()
            .any(|message| message.role() == Role::User);
        let broken: Vec<checks::Violation> = sequence::check(messages, Policy::Request)
            .into_iter()
            .filter(|violation| !(nobody && violation.rule == Rule::NoUser))
            .map(|violation| checks::Violation {
                message: Some(violation.message),
                broken: checks::Broken::Sequence(violation.rule),
            })
            .collect();
        self.note_violations(At::Request, &broken);
    }

    /// The turn's one end, if a turn is under way.
    fn end_turn(&mut self) {
        if self.turn.calls == 0 {
            return;
        }
        let last = self.conversation.transcript().messages().last();
        let answered =
            last.is_some_and(|last| last.role() == Role::Assistant && last.tool_calls().is_empty());
        let turn = TurnInfo {
            usage: self.turn.usage.take(),
            turn_id: format!("turn-{}", self.turn.number),
            outcome: if answered {
                TurnOutcome::Completed
            } else {
                TurnOutcome::Interrupted
            },
            api_calls: self.turn.calls,
            ..TurnInfo::default()
        };
        self.turn = Turn {
            number: self.turn.number + 1,
            ..Turn::default()
        };
        self.conversation.turn_complete(&mut self.engine, turn);
    }

    fn finish(mut self) -> EngineReport {
        self.report.fallback = self
            .engine
            .fallen_back()
            .map(|(wanted, reason)| Fallback { wanted, reason });
        self.report.warnings.extend(self.engine.take_notices());
        self.report
            .warnings
            .extend(self.conversation.take_warnings());
        self.report.final_messages = self.conversation.transcript().len();
        self.report.host_us = Percentiles::of(self.host_times);
        self.report.engine_us = Percentiles::of(self.engine_times);
        self.report.prefix_reuse = share(self.reuse.0, self.reuse.1);
        self.report
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    // Byte counts are far below 2^52.
    #[allow(clippy::cast_precision_loss)]
    let share = part as f64 / whole as f64;
    share
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Whole blocks first: equal prefixes are long.
    const BLOCK: usize = 4096;
    let blocks = a
        .chunks(BLOCK)
        .zip(b.chunks(BLOCK))
        .take_while(|(a, b)| a == b);
    let equal: usize = blocks.map(|(block, _)| block.len()).sum();
    equal
        + a[equal..]
            .iter()
            .zip(&b[equal..])
            .take_while(|(a, b)| a == b)
            .count()
}

#[cfg(test)]
mod tests {
    use super::common_prefix;

    #[test]
    fn the_common_prefix_is_exact_around_blocks() {
        for length in [0, 1, 4095, 4096, 4097, 9000] {
            let a = vec![b'a'; length];
            let mut b = a.clone();
            b.push(b'b');
            assert_eq!(common_prefix(&a, &b), length);
            assert_eq!(common_prefix(&b, &a), length);
            b[length / 2] = b'c';
            assert_eq!(common_prefix(&a, &b), length / 2);
        }
    }
}
