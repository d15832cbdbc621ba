//! Which messages stay at the beginning and at the end, and which are summed up.
//!
//! A cut never falls inside a tool group, because it only falls before messages that are no tool results. The newest
//! user message is never summed up: where it lies before the tail it is *pinned*, that is, put between summary and tail.

use hermes_message::Role;

use crate::row::Row;

/// Most messages that stay at the end without regard to their size.
const MOST_PROTECTED: usize = 8;
/// Fewest.
const LEAST_PROTECTED: usize = 3;
/// So many of the newest tool rounds in a lean tail keep their long results.
const ROUNDS: usize = 6;
/// Estimate from which a result counts as long (1,500 characters).
const LONG_RESULT: u64 = 375;
/// Estimate of a result after it has become one line.
const ONE_LINE: u64 = 60;

/// Where a transcript is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// There is a system prompt, at index 0.
    pub system: bool,
    /// The head is `[system..head_end]`, the system prompt not counted.
    pub head_end: usize,
    /// The tail begins here.
    pub tail_start: usize,
    /// The newest user message, where it lies before the tail.
    pub pinned: Option<usize>,
    /// The newest user message, wherever it lies.
    pub newest_user: Option<usize>,
}

impl Bounds {
    /// Index of the first message after the system prompt.
    #[must_use]
    pub fn first(&self) -> usize {
        usize::from(self.system)
    }

    /// Messages to be summed up.
    #[must_use]
    pub fn middle(&self) -> usize {
        let pinned = usize::from(self.pinned.is_some_and(|at| at >= self.head_end));
        self.tail_start
            .saturating_sub(self.head_end)
            .saturating_sub(pinned)
    }

    /// Whether a message is summed up.
    #[must_use]
    pub fn is_middle(&self, index: usize) -> bool {
        (self.head_end..self.tail_start).contains(&index) && self.pinned != Some(index)
    }
}

/// What bounds the choice.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// Messages at the beginning.
    pub protect_first: usize,
    /// Messages at the end.
    pub protect_last: usize,
    /// Newest user messages in the tail.
    pub users: usize,
    /// Tokens for the tail.
    pub tail_budget: u64,
    /// Old tool results in the tail become one line.
    pub lean: bool,
}

/// Finds the cuts. `carriers`: indexes of earlier summaries, which are in neither head nor tail.
#[must_use]
pub fn find(rows: &[Row<'_>], carriers: &[usize], wishes: Wishes) -> Bounds {
    let system = rows.first().is_some_and(|row| row.role == Role::System);
    let newest_user = newest_user(rows, carriers);
    let head_end = head(
        rows,
        usize::from(system),
        carriers,
        newest_user,
        wishes.protect_first,
    );
    let floor = carriers
        .iter()
        .copied()
        .filter(|at| Some(*at) != newest_user)
        .max()
        .map_or(head_end, |at| (at + 1).max(head_end));

    let mut bounds = Bounds {
        system,
        head_end,
        tail_start: rows.len(),
        pinned: None,
        newest_user,
    };
    let walk = Walk {
        rows,
        floor,
        wishes,
    };
    bounds.tail_start = walk.start(
        wishes.tail_budget,
        wishes.tail_budget + wishes.tail_budget / 2,
        MOST_PROTECTED,
    );
    bounds.pin();
    if bounds.middle() < 2 {
        bounds.tail_start = walk.start(wishes.tail_budget, wishes.tail_budget, MOST_PROTECTED);
        bounds.pin();
    }
    if bounds.middle() < 2 {
        // All of it fits the tail's budget, and yet a pass is wanted: what is fixed takes the room. Halve what there is.
        let all: u64 = rows[floor.min(rows.len())..].iter().map(Row::cost).sum();
        bounds.tail_start = walk.start(all / 3, all / 3, LEAST_PROTECTED);
        bounds.pin();
    }
    bounds
}

impl Bounds {
    fn pin(&mut self) {
        self.pinned = self
            .newest_user
            .filter(|at| *at < self.tail_start && *at >= self.head_end);
    }
}

/// The newest message of a person. Without any, the newest user message that the host or an engine made.
fn newest_user(rows: &[Row<'_>], carriers: &[usize]) -> Option<usize> {
    let newest = |fits: &dyn Fn(usize, &Row<'_>) -> bool| {
        rows.iter()
            .enumerate()
            .rev()
            .find(|(at, row)| row.role == Role::User && fits(*at, row))
            .map(|(at, _)| at)
    };
    newest(&|at, row| !row.synthetic && !carriers.contains(&at))
        .or_else(|| newest(&|at, _| !carriers.contains(&at)))
}

fn head(
    rows: &[Row<'_>],
    first: usize,
    carriers: &[usize],
    newest_user: Option<usize>,
    protect: usize,
) -> usize {
    let mut end = first.saturating_add(protect).min(rows.len());
    for limit in carriers.first().copied().into_iter().chain(newest_user) {
        end = end.min(limit.max(first));
    }
    while end > first && rows.get(end).is_some_and(|row| row.role == Role::Tool) {
        end -= 1;
    }
    end
}

struct Walk<'a> {
    rows: &'a [Row<'a>],
    floor: usize,
    wishes: Wishes,
}

impl Walk<'_> {
    /// Walks back from the end until the budget is spent.
    fn start(&self, budget: u64, ceiling: u64, most_protected: usize) -> usize {
        let rows = self.rows;
        let least = self
            .wishes
            .protect_last
            .min(most_protected)
            .max(LEAST_PROTECTED);
        let reply = rows.iter().rposition(|row| row.role == Role::Assistant);
        let (mut at, mut spent, mut rounds, mut users) = (rows.len(), 0_u64, 0_usize, 0_usize);
        while at > self.floor {
            let mut start = at - 1;
            while start > self.floor && rows[start].role == Role::Tool {
                start -= 1;
            }
            if rows[start].role == Role::Tool {
                // Results without a call at the floor: what they answered is gone, and they go with it.
                break;
            }
            let group = &rows[start..at];
            rounds += usize::from(rows[start].calls);
            let cost: u64 = group.iter().map(|row| self.cost(row, rounds, budget)).sum();
            let in_tail = rows.len() - at;
            let wanted_user = users < self.wishes.users && spent + cost <= ceiling;
            let must = reply.is_some_and(|reply| start >= reply)
                || (in_tail + group.len() <= least && spent + cost <= budget.saturating_mul(2))
                || in_tail == 0;
            let fits = spent + cost <= budget || (spent < budget && spent + cost <= ceiling);
            if !must && !fits && !wanted_user {
                break;
            }
            users += usize::from(rows[start].role == Role::User && !rows[start].synthetic);
            spent += cost;
            at = start;
        }
        at
    }

    fn cost(&self, row: &Row<'_>, rounds: usize, budget: u64) -> u64 {
        let cost = row.cost();
        if row.role != Role::Tool {
            return cost;
        }
        if self.wishes.lean && rounds > ROUNDS && cost >= LONG_RESULT {
            ONE_LINE
        } else {
            cost.min(budget / 2 + 1)
        }
    }
}

/// Index from which tool results of a lean tail keep their length: the newest `ROUNDS` rounds.
#[must_use]
pub fn fresh_rounds(rows: &[Row<'_>], tail_start: usize) -> usize {
    let mut rounds = 0;
    for at in (tail_start..rows.len()).rev() {
        rounds += usize::from(rows[at].calls);
        if rounds == ROUNDS {
            return at;
        }
    }
    tail_start
}

/// Tokens for the tail.
#[must_use]
pub fn tail_budget(window: u64, threshold: u64, settings: &crate::Settings) -> u64 {
    use crate::settings::TailMode;
    use crate::threshold::share;
    match settings.tail_mode {
        TailMode::Legacy if threshold > 0 => share(threshold, settings.target_ratio),
        _ if window == 0 => 10_000,
        _ => share(window, 0.025).clamp(10_000, 25_000).min(window / 5),
    }
    .max(64)
}
