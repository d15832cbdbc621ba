//! The estimate that everything here counts with: the host's own, so that a budget means the same on both sides.

/// Estimate of a text.
#[must_use]
pub fn of_text(text: &str) -> u64 {
    u64::from(hermes_message::estimate::tokens_of_text(text))
}
