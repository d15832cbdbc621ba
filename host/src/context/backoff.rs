//! No pass runs again and again without effect.
//!
//! Counted in opportunities (requests at which a pass could run), not in seconds, so that it needs no clock and a
//! replay repeats itself. An engine's own cool-downs are its own business; this is the host's guard over any engine.

/// A pass that saves less than this share of its input is useless.
const USEFUL_PERCENT: u64 = 5;
/// So many useless passes in a row are tried before automatic ones pause.
const USELESS_ALLOWED: u32 = 2;
/// A pause ends with one probe after so many opportunities, doubled each time it proves useless again.
const FIRST_PAUSE: u32 = 16;
/// Failing passes wait 1, 2, 4, … opportunities, at most so many.
const LONGEST_WAIT: u32 = 64;

/// Why no automatic pass runs now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The last passes freed (almost) nothing.
    Useless,
    /// The last passes failed or were refused.
    Failing,
}

/// The guard of one session.
#[derive(Clone, Debug, Default)]
pub struct BackOff {
    useless: u32,
    failures: u32,
    pauses: u32,
    wait: u32,
    hold: Option<Hold>,
    told: bool,
}

impl BackOff {
    /// A pass could run now. `Err` says why none does.
    pub fn opportunity(&mut self) -> Result<(), Hold> {
        let Some(hold) = self.hold else { return Ok(()) };
        if self.wait > 0 {
            self.wait -= 1;
            return Err(hold);
        }
        // One probe; what comes of it decides.
        self.hold = None;
        Ok(())
    }

    /// What holds automatic passes back at the moment.
    #[must_use]
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// True once per pause: the user is to be told now.
    pub fn take_notice(&mut self) -> bool {
        let now = self.hold.is_some() && !self.told;
        self.told |= now;
        now
    }

    /// A pass was committed; the figures are the whole request's. Returns whether it was of use.
    pub fn committed(&mut self, before: u64, after: u64) -> bool {
        self.failures = 0;
        let saved = before.saturating_sub(after);
        let useful =
            saved.saturating_mul(100) >= before.saturating_mul(USEFUL_PERCENT) && saved > 0;
        if useful {
            self.clear();
        } else {
            self.useless();
        }
        useful
    }

    /// The engine had nothing to do, although it (or an overflow) had asked for a pass.
    pub fn unchanged(&mut self) {
        self.failures = 0;
        self.useless();
    }

    /// The pass failed, was refused or was given up.
    pub fn failed(&mut self) {
        self.wait = 1_u32
            .checked_shl(self.failures)
            .unwrap_or(LONGEST_WAIT)
            .min(LONGEST_WAIT);
        self.failures = self.failures.saturating_add(1);
        self.hold = Some(Hold::Failing);
    }

    /// Real usage fell below the trigger, the model changed, or the user forced a pass: a new start.
    pub fn clear(&mut self) {
        *self = BackOff::default();
    }

    fn useless(&mut self) {
        self.useless = self.useless.saturating_add(1);
        if self.useless >= USELESS_ALLOWED {
            self.hold = Some(Hold::Useless);
            self.wait = FIRST_PAUSE
                .checked_shl(self.pauses)
                .unwrap_or(u32::MAX)
                .min(FIRST_PAUSE * 16);
            self.pauses += 1;
            // The probe that ends a pause is one pass, not two.
            self.useless = USELESS_ALLOWED - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes that ran in so many opportunities, each with this end.
    fn passes(back: &mut BackOff, opportunities: u32, end: impl Fn(&mut BackOff)) -> u32 {
        let mut ran = 0;
        for _ in 0..opportunities {
            if back.opportunity().is_ok() {
                ran += 1;
                end(back);
            }
        }
        ran
    }

    // contract: PASS-8
    // case: 27
    #[test]
    fn two_useless_passes_then_a_pause_that_ends() {
        let mut back = BackOff::default();
        let shorter_by_one = |back: &mut BackOff| {
            back.committed(10_000, 9_950);
        };
        assert_eq!(passes(&mut back, 10, shorter_by_one), 2);
        assert!(back.take_notice(), "the user is told");
        assert!(!back.take_notice(), "once");
        assert_eq!(passes(&mut back, 10, shorter_by_one), 1, "one probe");
        assert_eq!(
            passes(&mut back, 20, shorter_by_one),
            0,
            "and a longer pause"
        );
        back.clear();
        assert_eq!(back.opportunity(), Ok(()), "it is not for ever");
        assert!(back.committed(10_000, 4_000));
        assert_eq!(back.hold(), None);
    }

    // contract: PASS-8
    // case: 33
    #[test]
    fn failing_passes_wait_longer_each_time() {
        let mut back = BackOff::default();
        assert_eq!(passes(&mut back, 1000, BackOff::failed), 21);
        assert_eq!(back.hold(), Some(Hold::Failing));
        assert!(back.committed(100, 50) && back.hold().is_none());
    }

    #[test]
    fn nothing_to_do_counts_as_useless_and_is_no_failure() {
        let mut back = BackOff::default();
        assert_eq!(passes(&mut back, 10, BackOff::unchanged), 2);
        assert_eq!(back.hold(), Some(Hold::Useless));
    }
}
