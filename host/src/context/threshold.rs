//! Where compression triggers: one number, and which term of the formula made it.
//!
//! There is no minimum window and no absolute floor: with a small window the numbers are small. `w` is the window
//! minus the room kept for the answer (never more than half the window):
//!
//! `min(cap, 0.85·w, max(ratio·w, min(0.75·w, 384 000)))`, at least 1.

use std::fmt;

/// Above this many tokens the three-quarter floor stops growing with the window.
const FLOOR_CAP: u64 = 384_000;

/// The term that won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The user's ratio of the window.
    Ratio,
    /// The ratio asked for less than three quarters of the window (or 384,000 tokens).
    Floor,
    /// Nothing triggers above 85 % of the window.
    Ceiling,
    /// `compression.threshold_tokens`.
    Cap,
    /// The window leaves no room at all.
    One,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Term::Ratio => "ratio of the window",
            Term::Floor => "three quarters of the window, at most 384000",
            Term::Ceiling => "85 % of the window",
            Term::Cap => "threshold_tokens",
            Term::One => "no room in the window",
        })
    }
}

/// A trigger with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Compression is asked for at this many tokens.
    pub tokens: u64,
    /// Which term of the formula that is.
    pub term: Term,
}

/// The trigger for a model's window. A `ratio` that is no number in 0..=1 counts as 1 or 0, whichever is nearer.
#[must_use]
pub fn threshold(window: u64, output_reserve: u64, ratio: f64, cap: Option<u64>) -> Threshold {
    let w = window - output_reserve.min(window / 2);
    let by_ratio = share(w, ratio);
    let floor = percent(w, 75).min(FLOOR_CAP);
    let mut best = if by_ratio >= floor {
        Threshold {
            tokens: by_ratio,
            term: Term::Ratio,
        }
    } else {
        Threshold {
            tokens: floor,
            term: Term::Floor,
        }
    };
    let ceiling = percent(w, 85);
    if ceiling < best.tokens {
        best = Threshold {
            tokens: ceiling,
            term: Term::Ceiling,
        };
    }
    if let Some(cap) = cap.filter(|cap| *cap < best.tokens) {
        best = Threshold {
            tokens: cap,
            term: Term::Cap,
        };
    }
    if best.tokens == 0 {
        best = Threshold {
            tokens: 1,
            term: Term::One,
        };
    }
    best
}

fn percent(w: u64, percent: u64) -> u64 {
    // Divided first, so that no window overflows.
    w / 100 * percent + w % 100 * percent / 100
}

/// `ratio` in millionths is exact enough for every ratio a person writes, and integer arithmetic is monotone.
fn share(w: u64, ratio: f64) -> u64 {
    let ratio = if ratio.is_nan() {
        0.0
    } else {
        ratio.clamp(0.0, 1.0)
    };
    // In range by the clamp above.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let millionths = (ratio * 1_000_000.0).round() as u64;
    let exact = u128::from(w) * u128::from(millionths) / 1_000_000;
    u64::try_from(exact).unwrap_or(w)
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: 20
    #[test]
    fn every_window_has_a_trigger_inside_it_and_the_trigger_grows_with_both_inputs() {
        let windows = [4096, 8192, 32_768, 64_000, 65_536, 131_072, 1_048_576];
        let ratios = [0.0, 0.3, 0.5, 0.75, 0.85, 1.0];
        for reserve in [0, 2000, 1_000_000] {
            for pair in windows.windows(2) {
                for ratio in ratios {
                    let small = threshold(pair[0], reserve, ratio, None).tokens;
                    let large = threshold(pair[1], reserve, ratio, None).tokens;
                    assert!(0 < small && small < pair[0] - reserve.min(pair[0] / 2));
                    assert!(small <= large);
                }
            }
            for window in windows {
                let by_ratio = ratios.map(|ratio| threshold(window, reserve, ratio, None).tokens);
                assert!(by_ratio.is_sorted());
            }
        }
    }

    #[test]
    fn the_term_that_won_is_named() {
        let term = |window, ratio, cap| threshold(window, 0, ratio, cap).term;
        assert_eq!(term(100_000, 0.5, None), Term::Floor);
        assert_eq!(term(100_000, 0.8, None), Term::Ratio);
        assert_eq!(term(100_000, 1.0, None), Term::Ceiling);
        assert_eq!(term(100_000, 0.5, Some(1000)), Term::Cap);
        assert_eq!(term(0, 0.5, None), Term::One);
        assert_eq!(threshold(1_000_000, 0, 0.5, None).tokens, 500_000);
        assert_eq!(threshold(600_000, 0, 0.1, None).tokens, 384_000);
        assert_eq!(threshold(u64::MAX, 0, f64::NAN, None).tokens, 384_000);
    }
}
