//! Where compression triggers.
//!
//! `w` is the window without what is reserved for the answer (at most half of the window). The trigger is the smallest
//! of `threshold_tokens`, 85 % of `w`, and the larger of `ratio · w` and the smaller of 75 % of `w` and 384,000 tokens.
//! There is no minimum window and no other floor.

/// Which part of the rule decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The window is not known, so nothing triggers.
    Unknown,
    /// `ratio · w`.
    Ratio,
    /// 75 % of `w`, or 384,000 tokens: a smaller ratio would compress too early.
    Floor,
    /// 85 % of `w`: a larger trigger would leave no room for the pass itself.
    Ceiling,
    /// `threshold_tokens`.
    Cap,
}

impl Term {
    /// The word that the status shows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown window",
            Self::Ratio => "ratio",
            Self::Floor => "floor",
            Self::Ceiling => "ceiling",
            Self::Cap => "threshold_tokens",
        }
    }
}

/// The trigger and why it is that number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Compression triggers at this many prompt tokens.
    pub tokens: u64,
    /// What decided.
    pub term: Term,
    /// The share of the window that was asked for.
    pub ratio: f64,
    /// The window without the output reserve.
    pub usable: u64,
}

impl Threshold {
    /// One sentence for a person.
    #[must_use]
    pub fn explain(&self) -> String {
        let Self {
            tokens,
            ratio,
            usable,
            ..
        } = self;
        match self.term {
            Term::Unknown => "the model's window is not known yet".to_owned(),
            Term::Ratio => format!("{tokens} = {ratio} of the usable window ({usable})"),
            Term::Floor => format!(
                "{tokens}: the asked share {ratio} of the usable window ({usable}) is below the floor of 75 % (384000 at most)"
            ),
            Term::Ceiling => {
                format!(
                    "{tokens} = 85 % of the usable window ({usable}); the asked share {ratio} would leave no room"
                )
            }
            Term::Cap => {
                format!(
                    "{tokens} by threshold_tokens; the share {ratio} of the usable window ({usable}) alone would give more"
                )
            }
        }
    }
}

/// Largest value of the floor.
const FLOOR_LIMIT: u64 = 384_000;

/// Applies the rule.
#[must_use]
pub fn resolve(window: u64, output_reserve: u64, ratio: f64, cap: Option<u64>) -> Threshold {
    let usable = window - output_reserve.min(window / 2);
    if window == 0 {
        return Threshold {
            tokens: 0,
            term: Term::Unknown,
            ratio,
            usable,
        };
    }
    let wanted = share(usable, ratio);
    let floor = share(usable, 0.75).min(FLOOR_LIMIT);
    let (mut tokens, mut term) = if wanted >= floor {
        (wanted, Term::Ratio)
    } else {
        (floor, Term::Floor)
    };
    let ceiling = share(usable, 0.85);
    if tokens > ceiling {
        (tokens, term) = (ceiling, Term::Ceiling);
    }
    if let Some(cap) = cap.filter(|cap| *cap < tokens) {
        (tokens, term) = (cap, Term::Cap);
    }
    Threshold {
        tokens: tokens.max(1),
        term,
        ratio,
        usable,
    }
}

/// `ratio` of `tokens`, rounded down. A ratio that is no number counts as 0.
#[must_use]
pub fn share(tokens: u64, ratio: f64) -> u64 {
    // A window is far below 2^53, where every whole number is exact.
    whole(tokens as f64 * ratio)
}

/// The whole number below `n`; 0 for what is negative or no number.
#[must_use]
pub fn whole(n: f64) -> u64 {
    // A cast from float saturates, and NaN becomes 0: exactly what is wanted here.
    n.max(0.0).floor() as u64
}
