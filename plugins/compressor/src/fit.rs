//! How far the messages that stay are shortened.
//!
//! In this order, and only as far as needed: old tool results in a lean tail become one line; if the tail still exceeds
//! one and a half times its budget, its tool results are cut, except those of the last three messages; if the whole still
//! does not fit, tool results and call arguments are, those of the last three messages after the others; then assistant
//! texts; and when the request could not be sent at all otherwise, everything else but the system prompt, the newest user
//! message last.

use std::collections::BTreeMap;

use hermes_message::Role;

use crate::Settings;
use crate::boundaries::{self, Bounds};
use crate::mend;
use crate::prune;
use crate::row::{Body, Row};
use crate::settings::TailMode;

/// Estimate of a result that has become one line.
const ONE_LINE: u64 = 70;
/// Results above this estimate (about 1,500 characters) are worth a line.
const LONG_RESULT: u64 = 375;
/// Estimate of a call whose long arguments were shortened.
const SHORT_CALL: u64 = 250;
/// No message is cut below this.
const SMALLEST: u64 = 120;
/// Older messages are cut down to this before the last ones are cut at all.
const TELLING: u64 = 500;
/// Messages at the very end whose results are cut late.
const LAST: usize = 3;
/// Tool results with images that keep them.
const IMAGES: usize = 3;

/// What happens to a message that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A tool result becomes one line.
    OneLine,
    /// Long arguments are shortened.
    Arguments,
    /// Images become words.
    Images,
    /// The body is cut to so many tokens.
    To(u64),
    /// The same, and what cannot be cut goes: the request cannot be sent otherwise.
    Hard(u64),
}

/// Room for the messages that stay.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The tail's budget.
    pub tail: u64,
    /// Everything together should be below this, the summary not counted.
    pub all: u64,
    /// Everything together must be below this, or the request cannot be sent.
    pub hard: u64,
}

/// Decides. Messages without an entry stay as they are.
#[must_use]
pub fn plan(
    rows: &[Row<'_>],
    bounds: &Bounds,
    settings: &Settings,
    room: Room,
) -> BTreeMap<usize, Cut> {
    let kept: Vec<usize> = (0..rows.len())
        .filter(|at| !bounds.is_middle(*at))
        .collect();
    let mut fit = Fit {
        rows,
        cuts: BTreeMap::new(),
        costs: rows.iter().map(Row::cost).collect(),
    };

    let fresh = boundaries::fresh_rounds(rows, bounds.tail_start);
    for &at in kept.iter().filter(|at| **at >= bounds.first()) {
        let row = &rows[at];
        let in_head = at < bounds.tail_start;
        let old = in_head || (settings.tail_mode == TailMode::Lean && at < fresh);
        if !may_edit(rows, at) {
            continue;
        }
        if row.role == Role::Tool && old && row.cost() >= LONG_RESULT {
            fit.set(at, Cut::OneLine, ONE_LINE);
        } else if row.calls && in_head && row.json.len() > prune::LONG_ARGUMENTS {
            fit.set(at, Cut::Arguments, SHORT_CALL);
        }
    }
    let mut pictures = 0;
    for &at in kept.iter().rev() {
        if rows[at].role == Role::Tool && rows[at].multimodal && !fit.cuts.contains_key(&at) {
            pictures += 1;
            if pictures > IMAGES {
                fit.cuts.insert(at, Cut::Images);
            }
        }
    }
    if settings.tail_mode == TailMode::Lean && settings.tail_assistant_max_chars > 0 {
        let newest = rows.iter().rposition(|row| row.role == Role::Assistant);
        let most = u64::try_from(settings.tail_assistant_max_chars / 4)
            .unwrap_or(u64::MAX)
            .max(SMALLEST);
        for &at in kept
            .iter()
            .filter(|at| **at >= bounds.tail_start && Some(**at) != newest)
        {
            if rows[at].role == Role::Assistant && rows[at].cost() > most && may_edit(rows, at) {
                fit.set(at, Cut::To(most), most);
            }
        }
    }

    let tail: Vec<usize> = kept
        .iter()
        .copied()
        .filter(|at| *at >= bounds.tail_start)
        .collect();
    let is_result = |at: &usize| rows[*at].role == Role::Tool && may_edit(rows, *at);
    let is_long_call = |at: &usize| {
        rows[*at].calls && rows[*at].json.len() > prune::LONG_ARGUMENTS && may_edit(rows, *at)
    };
    let late = tail.get(tail.len().saturating_sub(LAST)).copied();
    let is_early = |at: &usize| late.is_none_or(|late| *at < late);
    // What has to be cut is cut by more than it takes, or the next message would set off the next pass.
    let goal = room.all - room.all / 5;
    let soft = room.tail + room.tail / 2;
    let cut = Level::new(soft, soft, SMALLEST);
    fit.level(&tail, cut, |at| is_result(at) && is_early(at));
    let cut = Level::new(room.all, goal, TELLING);
    fit.level(&kept, cut, |at| {
        is_early(at) && (is_result(at) || is_long_call(at))
    });
    let cut = Level::new(room.all, goal, SMALLEST);
    fit.level(&kept, cut, |at| is_result(at) || is_long_call(at));
    fit.level(&kept, cut, |at| {
        is_result(at) || (rows[*at].role == Role::Assistant && may_edit(rows, *at))
    });
    let newest = bounds.newest_user;
    let cut = Level {
        hard: true,
        ..Level::new(room.hard, room.hard, SMALLEST)
    };
    fit.level(&kept, cut, |at| {
        rows[*at].role != Role::System && Some(*at) != newest && mend::may_cut(rows, *at)
    });
    fit.level(&kept, cut, |at| {
        Some(*at) == newest && mend::may_cut(rows, *at)
    });
    fit.cuts
}

/// Whether a message may get another text without a fault of its surroundings becoming one of ours: whoever checks a
/// result forgives the faults of messages that stay as they are, and only those. A request drops or joins such messages.
#[must_use]
pub fn may_edit(rows: &[Row<'_>], at: usize) -> bool {
    let row = &rows[at];
    if rows
        .get(at + 1)
        .is_some_and(|next| next.role == Role::Tool && next.caller.is_none())
    {
        return false;
    }
    if row.role == Role::Tool {
        return row.caller.is_some();
    }
    let alike = |other: Option<&Row<'_>>| other.is_some_and(|other| other.role == row.role);
    if alike(at.checked_sub(1).and_then(|before| rows.get(before))) || alike(rows.get(at + 1)) {
        return false;
    }
    let answered = rows[at + 1..]
        .iter()
        .take_while(|row| row.caller == Some(at))
        .count();
    !row.calls || answered == Body::read(row.json).calls.len()
}

struct Fit<'a> {
    rows: &'a [Row<'a>],
    cuts: BTreeMap<usize, Cut>,
    costs: Vec<u64>,
}

impl Fit<'_> {
    fn set(&mut self, at: usize, cut: Cut, cost: u64) {
        self.cuts.insert(at, cut);
        self.costs[at] = cost.min(self.rows[at].cost());
    }

    /// If `among` do not fit the room, lowers the largest of those that may be cut until all fit the goal.
    fn level(&mut self, among: &[usize], level: Level, may: impl Fn(&usize) -> bool) {
        let total: u64 = among.iter().map(|at| self.costs[*at]).sum();
        if total <= level.room {
            return;
        }
        let cuttable: Vec<usize> = among
            .iter()
            .copied()
            .filter(|at| self.costs[*at] > level.smallest && may(at))
            .collect();
        let fixed = total - cuttable.iter().map(|at| self.costs[*at]).sum::<u64>();
        let cap = cap(
            cuttable.iter().map(|at| self.costs[*at]).collect(),
            level.goal.saturating_sub(fixed),
        )
        .max(level.smallest);
        for at in cuttable {
            if self.costs[at] > cap {
                let cut = if level.hard {
                    Cut::Hard(cap)
                } else {
                    Cut::To(cap)
                };
                self.set(at, cut, cap);
            }
        }
    }
}

/// One step of the demotion.
#[derive(Clone, Copy)]
struct Level {
    /// Nothing is done while everything together is within this.
    room: u64,
    /// What is cut is cut until everything together is within this.
    goal: u64,
    /// No message is cut below this.
    smallest: u64,
    /// The request cannot be sent otherwise.
    hard: bool,
}

impl Level {
    fn new(room: u64, goal: u64, smallest: u64) -> Self {
        Self {
            room,
            goal,
            smallest,
            hard: false,
        }
    }
}

/// The largest cap under which these fit.
pub(crate) fn cap(mut costs: Vec<u64>, room: u64) -> u64 {
    costs.sort_unstable();
    let mut left = room;
    for (place, cost) in costs.iter().enumerate() {
        let sharers = u64::try_from(costs.len() - place).unwrap_or(1).max(1);
        if cost.saturating_mul(sharers) > left {
            return left / sharers;
        }
        left -= cost;
    }
    u64::MAX
}

/// The shortened message. `None` when it cannot get shorter.
#[must_use]
pub fn apply(row: &Row<'_>, cut: Cut) -> Option<String> {
    match cut {
        Cut::OneLine => prune::one_line(row.json),
        Cut::Arguments => prune::cut_arguments(row.json),
        Cut::Images => prune::without_images(row.json),
        Cut::To(most) | Cut::Hard(most) => {
            let lean = if row.multimodal && row.role == Role::Tool {
                prune::without_images(row.json)
            } else {
                None
            };
            let json = lean.as_deref().unwrap_or(row.json);
            prune::cut_body(json, most, matches!(cut, Cut::Hard(_))).or(lean)
        }
    }
}
