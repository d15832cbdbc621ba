//! What keeps passes from running again and again without effect.
//!
//! Three things stand against an automatic pass: a cool-down after the helper model failed, two passes in a row that
//! freed too little (or two in a row that had to do without the helper), and a pass that found nothing to do. None of
//! them is for ever, and a forced pass clears them all.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::helper::{Class, Failure};

/// Waiting times after failures that repeat.
const LADDER: [u64; 3] = [60, 300, 900];
/// After two passes without effect, one more is tried when so much time has gone by.
const RECOVERY: Duration = Duration::from_secs(900);
/// After a pass that found nothing to do.
const NOTHING_TO_DO: Duration = Duration::from_secs(60);
/// A pass that frees less than this share (in percent) was of no use.
const LEAST_GAIN_PERCENT: u64 = 5;
/// So many passes of no use in a row make a pause.
const STRIKES: u32 = 2;

/// The state of all guards of one conversation.
#[derive(Clone, Debug)]
pub struct Guards {
    clock: Arc<dyn Clock>,
    cooldown: Option<(Duration, String)>,
    stalls: u32,
    truncations: u32,
    ineffective: u32,
    fallbacks: u32,
    /// When the pause after [`STRIKES`] ends.
    recovery: Option<Duration>,
    /// Until when nothing is tried, and how many tokens there were when nothing could be done.
    structural: Option<(Duration, u64)>,
    awaiting_usage: bool,
    /// What a pass cannot touch, as the last pass saw it.
    fixed_tokens: u64,
}

impl Default for Guards {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::default()))
    }
}

impl Guards {
    /// Guards that read this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            cooldown: None,
            stalls: 0,
            truncations: 0,
            ineffective: 0,
            fallbacks: 0,
            recovery: None,
            structural: None,
            awaiting_usage: false,
            fixed_tokens: 0,
        }
    }

    /// The same clock, and nothing that stands against a pass.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self::new(Arc::clone(&self.clock))
    }

    /// Why an automatic pass over so many tokens must wait. The sentence does not change while the cause lasts, so that
    /// it is shown once.
    #[must_use]
    pub fn blocked(&self, tokens: u64) -> Option<String> {
        let now = self.clock.now();
        if let Some((until, why)) = self.cooldown.as_ref().filter(|(until, _)| *until > now) {
            let _ = until;
            return Some(format!("cooldown: {why}"));
        }
        if self.recovery.is_some_and(|until| until > now) {
            let cause = if self.ineffective >= STRIKES {
                format!(
                    "ineffective: {STRIKES} passes in a row freed too little; about {} tokens are fixed (system prompt, tool schemas and what must stay)",
                    self.fixed_tokens
                )
            } else {
                format!(
                    "ineffective: {STRIKES} summaries in a row had to be made without the helper model"
                )
            };
            return Some(format!(
                "{cause}. Automatic compression pauses; /compress tries at once, /new starts fresh"
            ));
        }
        let grown = |at: u64| tokens > at.saturating_add(at / 20);
        if self
            .structural
            .is_some_and(|(until, at)| until > now && !grown(at))
        {
            return Some(
                "structural_backoff: the last pass found nothing that could be compressed"
                    .to_owned(),
            );
        }
        None
    }

    /// How long the cool-down still lasts.
    #[must_use]
    pub fn cooldown_left(&self) -> Option<Duration> {
        let (until, _) = self.cooldown.as_ref()?;
        until
            .checked_sub(self.clock.now())
            .filter(|left| !left.is_zero())
    }

    /// Whether the last pass was of no use.
    #[must_use]
    pub fn has_strike(&self) -> bool {
        self.ineffective > 0
    }

    /// The helper failed and the list stays as it was.
    pub fn helper_failed(&mut self, failure: &Failure) {
        let rung = |count: u32| {
            LADDER[usize::try_from(count)
                .unwrap_or(usize::MAX)
                .min(LADDER.len() - 1)]
        };
        let seconds = match failure.class {
            Class::Network if is_timeout(&failure.message) => {
                self.stalls += 1;
                rung(self.stalls - 1)
            }
            Class::Truncated => {
                self.truncations += 1;
                rung(self.truncations - 1)
            }
            Class::Network | Class::Empty => 30,
            Class::Auth | Class::Quota | Class::Missing => 600,
            Class::Overload | Class::Context | Class::Unusable | Class::Other => 60,
            // The host gave the pass up, or it is a question of size: no fault of the helper's.
            Class::Cancelled | Class::TooLong => return,
        };
        let wait = Duration::from_secs(seconds).max(failure.retry_after.unwrap_or_default());
        let why = format!("{} (waits {} s)", failure.message, wait.as_secs());
        self.cooldown = Some((self.clock.now() + wait, why));
    }

    /// A pass found nothing to do at this size.
    pub fn no_op(&mut self, tokens: u64) {
        self.structural = Some((self.clock.now() + NOTHING_TO_DO, tokens));
    }

    /// A pass has made a new list. `fallback`: the helper failed and the extractive summary took its place. `fixed`: what
    /// the pass could not touch.
    pub fn pass_done(&mut self, before: u64, after: u64, fallback: bool, fixed: u64) {
        self.cooldown = None;
        self.structural = None;
        self.awaiting_usage = true;
        self.fixed_tokens = fixed;
        if !fallback {
            (self.stalls, self.truncations, self.fallbacks) = (0, 0, 0);
        } else {
            self.fallbacks += 1;
        }
        let gain = before.saturating_sub(after);
        if gain.saturating_mul(100) < before.saturating_mul(LEAST_GAIN_PERCENT) {
            self.ineffective += 1;
            // Judged already; the next response must not count the same pass again.
            self.awaiting_usage = false;
        }
        self.pause_after_strikes();
    }

    /// The list of the last pass was not committed.
    pub fn pass_discarded(&mut self) {
        self.awaiting_usage = false;
    }

    /// A response has told the real size of the request.
    pub fn usage(&mut self, prompt_tokens: u64, threshold: u64) {
        if prompt_tokens == 0 || threshold == 0 {
            return;
        }
        if prompt_tokens < threshold {
            self.ineffective = 0;
            self.fallbacks = 0;
            self.recovery = None;
            self.structural = None;
        } else if self.awaiting_usage {
            self.ineffective += 1;
            self.pause_after_strikes();
        }
        self.awaiting_usage = false;
    }

    /// Another model, a new conversation or a person who insists: nothing stands against a pass any more.
    pub fn clear(&mut self) {
        *self = self.fresh();
    }

    fn pause_after_strikes(&mut self) {
        if self.ineffective >= STRIKES || self.fallbacks >= STRIKES {
            self.recovery = Some(self.clock.now() + RECOVERY);
        }
    }
}

fn is_timeout(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["time", "stall", "deadline"]
        .iter()
        .any(|word| message.contains(word))
}
