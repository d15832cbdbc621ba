//! How many tokens the next request has, as far as anyone can know before it is sent.
//!
//! The estimate is made once with each message. What the provider said about the last request outranks it: that
//! figure plus the estimate of what came after is the *anchored* count, and the ratio of the two corrects estimates
//! of requests that have no anchor (after a commit, say) for the rest of the session.

/// The factor stays within these bounds: a figure further off is a provider that counts something else.
const FACTOR_BOUNDS: (f64, f64) = (0.25, 4.0);

/// The token account of one session.
#[derive(Clone, Debug)]
pub struct Accounting {
    fixed: u64,
    factor: f64,
    anchor: Option<Anchor>,
}

/// A request whose real size is known.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    real: u64,
    estimate: u64,
}

impl Accounting {
    /// An account whose requests carry `fixed` tokens of tool schemas and other overhead beside the messages.
    #[must_use]
    pub fn new(fixed: u64) -> Self {
        Accounting {
            fixed,
            factor: 1.0,
            anchor: None,
        }
    }

    /// Estimated tokens that every request has beside its messages.
    #[must_use]
    pub fn fixed(&self) -> u64 {
        self.fixed
    }

    /// Replaces the overhead; the tool list has changed.
    pub fn set_fixed(&mut self, fixed: u64) {
        if fixed != self.fixed {
            self.fixed = fixed;
            self.anchor = None;
        }
    }

    /// The best figure for a request whose messages are estimated at `messages` tokens.
    #[must_use]
    pub fn request(&self, messages: u64) -> u64 {
        let estimate = messages.saturating_add(self.fixed);
        match self.anchor {
            Some(anchor) if estimate >= anchor.estimate => anchor
                .real
                .saturating_add(self.corrected(estimate - anchor.estimate)),
            _ => self.corrected(estimate),
        }
    }

    /// The provider counted `real` prompt tokens in a request whose messages were estimated at `messages`.
    ///
    /// Only a request that carried the transcript as it is may anchor the next one; a selection is counted for the
    /// factor alone (`whole == false`). A provider that says nothing, or 0, teaches nothing.
    pub fn learn(&mut self, messages: u64, real: Option<u64>, whole: bool) {
        let Some(real) = real.filter(|real| *real > 0) else {
            return;
        };
        let estimate = messages.saturating_add(self.fixed);
        if estimate > 0 {
            // Token counts are far below 2^52.
            #[allow(clippy::cast_precision_loss)]
            let ratio = real as f64 / estimate as f64;
            self.factor = ratio.clamp(FACTOR_BOUNDS.0, FACTOR_BOUNDS.1);
        }
        self.anchor = whole.then_some(Anchor { real, estimate });
    }

    /// The transcript was rewritten, or the model changed: the last figure says nothing about the next request.
    pub fn forget_anchor(&mut self) {
        self.anchor = None;
    }

    /// What this session's provider makes of one estimated token.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    fn corrected(&self, tokens: u64) -> u64 {
        // Token counts are far below 2^52; the product is positive.
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let corrected = (tokens as f64 * self.factor).round() as u64;
        corrected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: 27
    #[test]
    fn real_usage_outranks_the_estimate_and_corrects_it_afterwards() {
        let mut account = Accounting::new(13_000);
        assert_eq!(account.request(100_000), 113_000, "schemas are part of it");
        account.learn(100_000, Some(58_000), true);
        assert_eq!(account.request(100_000), 58_000);
        let grown = account.request(110_000);
        assert!((63_000..64_000).contains(&grown), "{grown}");
        account.forget_anchor();
        assert_eq!(account.request(100_000), 58_000, "the factor stays");
    }

    #[test]
    fn a_silent_or_absurd_provider_does_not_spoil_the_account() {
        let mut account = Accounting::new(0);
        account.learn(1000, None, true);
        account.learn(1000, Some(0), true);
        assert_eq!(account.request(1000), 1000);
        account.learn(1000, Some(1_000_000), false);
        assert_eq!(account.request(1000), 4000);
    }
}
