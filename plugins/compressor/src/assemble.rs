//! The new list: what stays, shortened where needed, and the summary at the place and in the role that keep user and
//! assistant alternating.

use std::collections::BTreeMap;
use std::ops::Range;

use hermes_message::Role;

use crate::boundaries::Bounds;
use crate::carrier;
use crate::fit::{self, Cut};
use crate::mend;
use crate::row::{Body, Row};

/// One step of the new list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These messages as they are.
    Keep(Range<usize>),
    /// This message with a new text; its identity goes with it.
    Edit {
        /// Index in the old list.
        index: usize,
        /// The new text.
        json: String,
    },
    /// A new message.
    Push {
        /// Its text.
        json: String,
    },
}

/// How a summary gets into the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A message of its own in this role.
    Own(Role),
    /// A user's message of its own, and an assistant's after it, because a user message follows.
    Acknowledged,
    /// Behind the words of the message before it.
    JoinBefore(usize),
    /// Behind the words of the message after it.
    JoinAfter(usize),
}

/// Chooses the place. No message of a person is joined while it is the newest.
#[must_use]
pub fn place(rows: &[Row<'_>], bounds: &Bounds) -> Place {
    let speaks = |at: &usize| matches!(rows[*at].role, Role::User | Role::Assistant | Role::Tool);
    let before = (bounds.first()..bounds.head_end).rev().find(speaks);
    let after = bounds
        .pinned
        .or_else(|| (bounds.tail_start..rows.len()).find(speaks));
    let role = |at: Option<usize>| at.map(|at| rows[at].role);
    let (previous, next) = (role(before), role(after));

    if previous != Some(Role::User) && next != Some(Role::User) {
        return Place::Own(Role::User);
    }
    // Behind a result or a user's message the assistant may speak, but not before one of its own.
    if matches!(previous, Some(Role::User | Role::Tool)) && next != Some(Role::Assistant) {
        return Place::Own(Role::Assistant);
    }
    let may_join = |at: usize| Some(at) != bounds.newest_user && fit::may_edit(rows, at);
    match (before, after) {
        (_, Some(at)) if next == Some(Role::User) && may_join(at) => Place::JoinAfter(at),
        (Some(at), _) if previous == Some(Role::User) && may_join(at) => Place::JoinBefore(at),
        _ => Place::Acknowledged,
    }
}

/// Writes the list. `summary`: the carrier's text, `None` when nothing was summed up and everything stays.
#[must_use]
pub fn write(
    rows: &[Row<'_>],
    bounds: &Bounds,
    cuts: &BTreeMap<usize, Cut>,
    summary: Option<&str>,
    carriers: &[usize],
) -> Vec<Step> {
    let mut steps = Steps {
        rows,
        list: Vec::new(),
        open: None,
    };
    let place = place(rows, bounds);
    // An earlier summary is only taken off its neighbour when a new one holds it.
    let carriers = if summary.is_some() { carriers } else { &[] };
    for at in 0..bounds.head_end.max(bounds.first()) {
        let joined = summary.filter(|_| place == Place::JoinBefore(at));
        steps.message(at, cuts, joined, carriers);
    }
    match (summary, place) {
        (None, _) => {
            for at in bounds.head_end..bounds.tail_start {
                steps.message(at, cuts, None, carriers);
            }
        }
        (Some(text), Place::Own(role)) => steps.push(carrier::message(role, text)),
        (Some(text), Place::Acknowledged) => {
            steps.push(carrier::message(Role::User, text));
            steps.push(carrier::acknowledgement());
        }
        (Some(_), Place::JoinBefore(_) | Place::JoinAfter(_)) => {}
    }
    if summary.is_some()
        && let Some(at) = bounds.pinned
    {
        steps.message(at, cuts, None, carriers);
    }
    for at in bounds.tail_start..rows.len() {
        let joined = summary.filter(|_| place == Place::JoinAfter(at));
        steps.message(at, cuts, joined, carriers);
    }
    steps.close();
    steps.list
}

struct Steps<'a> {
    rows: &'a [Row<'a>],
    list: Vec<Step>,
    /// A message that was cut although not all of its calls were answered, and the ids of those.
    open: Option<(usize, Vec<String>)>,
}

impl Steps<'_> {
    fn push(&mut self, json: String) {
        self.close();
        self.list.push(Step::Push { json });
    }

    /// Answers the open calls: behind their other results.
    fn close(&mut self) {
        let ids = self.open.take().map(|(_, ids)| ids).unwrap_or_default();
        let stubs = ids.iter().map(|id| Step::Push {
            json: mend::stub(id),
        });
        self.list.extend(stubs);
    }

    fn message(
        &mut self,
        index: usize,
        cuts: &BTreeMap<usize, Cut>,
        joined: Option<&str>,
        carriers: &[usize],
    ) {
        let row = &self.rows[index];
        let mut json = cuts.get(&index).and_then(|cut| fit::apply(row, *cut));
        if carriers.contains(&index) && !cuts.contains_key(&index) {
            // A person's own words that an earlier summary had joined: the words stay, the summary is in the new one.
            json = carrier::unjoin(row.json);
        }
        if let Some(text) = joined {
            json = carrier::join(json.as_deref().unwrap_or(row.json), text).or(json);
        }
        if self
            .open
            .as_ref()
            .is_some_and(|(caller, _)| row.caller != Some(*caller))
        {
            self.close();
        }
        if row.role == Role::User && self.is_beside_user(index, json.is_some()) {
            self.list.push(Step::Push {
                json: mend::between_users(),
            });
        }
        match json {
            Some(json) => {
                self.list.push(Step::Edit { index, json });
                if row.calls {
                    let open = mend::unanswered(self.rows, index);
                    self.open = (!open.is_empty()).then_some((index, open));
                }
            }
            None => match self.list.last_mut() {
                Some(Step::Keep(range)) if range.end == index => range.end += 1,
                _ => self.list.push(Step::Keep(index..index + 1)),
            },
        }
    }

    /// Whether a user's message stands directly before this one of a user's, and one of them is changed.
    fn is_beside_user(&self, index: usize, changed: bool) -> bool {
        let Some(before) = index.checked_sub(1) else {
            return false;
        };
        self.rows[before].role == Role::User
            && match self.list.last() {
                Some(Step::Keep(range)) => range.end == index && changed,
                Some(Step::Edit { index, .. }) => *index == before,
                _ => false,
            }
    }
}

/// Moves the beginning of the tail past messages that say nothing: a request drops them, and with them the alternation
/// that was built on them.
pub fn skip_blank(rows: &[Row<'_>], bounds: &mut Bounds) {
    while let Some(row) = rows.get(bounds.tail_start) {
        let blank = row.role == Role::Assistant
            && !row.calls
            && row.tokens < 24
            && Body::read(row.json).is_blank();
        if !blank
            || rows
                .get(bounds.tail_start + 1)
                .is_none_or(|next| next.role == Role::Tool)
            || Some(bounds.tail_start) == bounds.newest_user
        {
            break;
        }
        bounds.tail_start += 1;
    }
}

/// Moves the tail's beginning one group up where that spares a summary from joining a message, at little cost.
pub fn avoid_join(rows: &[Row<'_>], bounds: &mut Bounds, carriers: &[usize], affordable: u64) {
    if !matches!(place(rows, bounds), Place::JoinAfter(_)) || bounds.middle() < 4 {
        return;
    }
    let mut start = bounds.tail_start - 1;
    while start > bounds.head_end && rows[start].role == Role::Tool {
        start -= 1;
    }
    let group = start..bounds.tail_start;
    let cost: u64 = rows[group.clone()].iter().map(Row::cost).sum();
    let fits = start > bounds.head_end + 1
        && rows[start].role == Role::Assistant
        && cost <= affordable
        && !group.clone().any(|at| carriers.contains(&at));
    if !fits {
        return;
    }
    let tried = Bounds {
        tail_start: start,
        ..bounds.clone()
    };
    if matches!(place(rows, &tried), Place::Own(_)) {
        *bounds = tried;
    }
}

/// Gives the head up where it ends with a user's message that must not be touched and the assistant goes on: no role would
/// be left for a summary between them.
pub fn free_place(rows: &[Row<'_>], bounds: &mut Bounds) {
    let speaks = |at: &usize| matches!(rows[*at].role, Role::User | Role::Assistant | Role::Tool);
    let before = (bounds.first()..bounds.head_end).rev().find(speaks);
    let ends_with_user = before.is_some_and(|at| rows[at].role == Role::User);
    if ends_with_user && place(rows, bounds) == Place::Acknowledged {
        bounds.head_end = bounds.first();
    }
}
