//! The budgets of a pass.

use hermes_message::Role;

use crate::Settings;
use crate::boundaries;
use crate::pass::Request;
use crate::row::Row;

/// Longest summary.
const LONGEST_SUMMARY: u64 = 10_000;

/// What a pass has to keep to, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The list as it is.
    pub(crate) before: u64,
    /// The end that stays.
    pub(crate) tail: u64,
    /// The new list should be below this.
    pub(crate) all: u64,
    /// The new list must be below this, or the request cannot be sent.
    pub(crate) hard: u64,
    /// The summary.
    pub(crate) summary: u64,
    /// What a pass cannot touch.
    pub(crate) fixed: u64,
}

impl Sizes {
    pub(crate) fn of(rows: &[Row<'_>], settings: &Settings, request: &Request<'_>) -> Self {
        let before: u64 = rows.iter().map(Row::cost).sum();
        let beside = request
            .current_tokens
            .unwrap_or(before)
            .saturating_sub(before);
        let system = rows
            .first()
            .filter(|row| row.role == Role::System)
            .map_or(0, Row::cost);
        let wanted = request
            .target_tokens
            .filter(|n| *n > 0)
            .unwrap_or(request.threshold);
        let (wanted, usable) = match (wanted, request.usable()) {
            (0, 0) => (u64::MAX / 4, u64::MAX / 4),
            (0, usable) => (usable, usable),
            (wanted, 0) => (wanted, wanted.saturating_mul(2)),
            (wanted, usable) => (wanted.min(usable), usable),
        };
        let all = wanted.saturating_sub(beside).max(256);
        let hard = (usable - usable / 20).saturating_sub(beside).max(256);
        let tail = boundaries::tail_budget(request.window, request.threshold, settings)
            .min(all / 2)
            .max(64);
        let summary = (all / 5).clamp(96, LONGEST_SUMMARY);
        Self {
            before,
            tail,
            all,
            hard,
            summary,
            fixed: beside + system,
        }
    }
}
