//! Which messages stay: pure arithmetic over roles, sizes and tool groups, without opening any text.

use std::ops::Range;

use hermes_plugin_api::Messages;
use hermes_plugin_api::message::Role;

/// What a pass leaves, in order: `head`, the note, `newest_user`, `tail`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// System prompt and first task.
    pub(crate) head: Range<usize>,
    /// Whether the note stands behind the head: an assistant message, so only before a user's.
    pub(crate) note: bool,
    /// The user message of the newest turn, where the turn itself did not fit whole.
    pub(crate) newest_user: Option<usize>,
    /// The newest messages.
    pub(crate) tail: Range<usize>,
}

/// Tokens that the note costs; the host estimates about this much.
const NOTE_TOKENS: u64 = 20;

impl Plan {
    /// Chooses what fits into `budget` tokens.
    ///
    /// # Errors
    /// Says why the list stays as it is.
    pub(crate) fn make(messages: Messages<'_>, budget: u64) -> Result<Self, &'static str> {
        let count = messages.len();
        let role = |index: usize| messages.get(index).role();
        let tokens = |range: Range<usize>| {
            range
                .map(|index| u64::from(messages.get(index).tokens()))
                .sum::<u64>()
        };

        let head_start = usize::from(count > 0 && role(0) == Role::System);
        let Some(first_task) = (head_start..count).find(|&index| role(index) == Role::User) else {
            return Err("there is no user message to keep");
        };
        // What stands between the system prompt and the first task can only be a greeting; it stays with the head.
        let head = 0..first_task + 1;
        let Some(newest_user) = (first_task..count)
            .rev()
            .find(|&index| role(index) == Role::User)
        else {
            return Err("there is no user message to keep");
        };
        let room = budget.saturating_sub(tokens(head.clone()) + NOTE_TOKENS);

        // Whole turns first, from the newest back.
        let mut tail_start = count;
        let mut used = 0;
        for turn in turns(messages, first_task + 1).into_iter().rev() {
            used += tokens(turn.clone());
            if used > room {
                break;
            }
            tail_start = turn.start;
        }
        let plan = if tail_start < count {
            Self {
                note: role(tail_start) == Role::User,
                head,
                newest_user: None,
                tail: tail_start..count,
            }
        } else {
            Self::inside_newest_turn(messages, head, first_task, newest_user, room)
        };
        let dropped =
            count - plan.head.len() - plan.tail.len() - usize::from(plan.newest_user.is_some());
        // A note in place of one short message gains nothing, and the note of the last pass is no news.
        let only_the_note = dropped == 1 && messages.get(plan.head.end).is_summary();
        if dropped <= usize::from(plan.note) || only_the_note {
            return Err("everything that may be left out is left out already");
        }
        Ok(plan)
    }

    /// The newest turn alone is larger than the budget: its user message and as many of its newest steps as fit, at
    /// least one.
    fn inside_newest_turn(
        messages: Messages<'_>,
        head: Range<usize>,
        first_task: usize,
        newest_user: usize,
        room: u64,
    ) -> Self {
        let own_user = (newest_user > first_task).then_some(newest_user);
        let mut left = room
            .saturating_sub(own_user.map_or(0, |index| u64::from(messages.get(index).tokens())));
        let mut tail_start = messages.len();
        for step in steps(messages, newest_user + 1..messages.len())
            .into_iter()
            .rev()
        {
            let tokens: u64 = step
                .clone()
                .map(|index| u64::from(messages.get(index).tokens()))
                .sum();
            if tokens > left && tail_start < messages.len() {
                break;
            }
            left = left.saturating_sub(tokens);
            tail_start = step.start;
        }
        Self {
            note: own_user.is_some(),
            head,
            newest_user: own_user,
            tail: tail_start..messages.len(),
        }
    }
}

/// Ranges that begin with a user message and reach to the next one, from `start` on. What precedes the first user
/// message there belongs to the task before and is no turn of its own.
fn turns(messages: Messages<'_>, start: usize) -> Vec<Range<usize>> {
    let begins: Vec<usize> = (start..messages.len())
        .filter(|&index| {
            let follows_user = index > 0 && messages.get(index - 1).role() == Role::User;
            messages.get(index).role() == Role::User && !follows_user
        })
        .collect();
    parts(&begins, messages.len())
}

/// Ranges that hold an assistant message with the tool results that follow it.
fn steps(messages: Messages<'_>, range: Range<usize>) -> Vec<Range<usize>> {
    let begins: Vec<usize> = range
        .clone()
        .filter(|&index| index == range.start || messages.get(index).role() != Role::Tool)
        .collect();
    parts(&begins, range.end)
}

/// From each beginning to the next one, and from the last one to `end`.
fn parts(begins: &[usize], end: usize) -> Vec<Range<usize>> {
    let ends = begins.iter().skip(1).copied().chain([end]);
    let pairs = begins.iter().copied().zip(ends);
    pairs.map(|(begin, end)| begin..end).collect()
}
