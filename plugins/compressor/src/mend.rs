//! Cutting a message that has a fault of its surroundings: a call that was never answered, a user's message beside
//! another one. Whoever checks a result forgives such faults of messages that stay as they are, and only those. So the
//! fault is mended together with the cut, in the way in which a request is mended anyway.

use hermes_message::repair::NO_RESULT;
use hermes_message::{Role, build, call_key};

use crate::fit::may_edit;
use crate::row::{Body, Row, call_id};

/// Whether a message may be cut, if need be with a mend.
#[must_use]
pub fn may_cut(rows: &[Row<'_>], at: usize) -> bool {
    if may_edit(rows, at) {
        return true;
    }
    let next = rows.get(at + 1);
    if next.is_some_and(|next| next.role == Role::Tool && next.caller.is_none()) {
        return false;
    }
    match rows[at].role {
        Role::User => true,
        Role::Assistant => {
            let alike = |row: Option<&Row<'_>>| row.is_some_and(|row| row.role == Role::Assistant);
            let is_open = rows[at].calls && !unanswered(rows, at).is_empty();
            // What nothing follows may still be answered.
            let goes_on = rows[at + 1..].iter().any(|row| row.role != Role::Tool);
            !alike(at.checked_sub(1).and_then(|before| rows.get(before)))
                && (!is_open || goes_on)
                && (is_open || !alike(next))
        }
        Role::System | Role::Tool | Role::Other => false,
    }
}

/// Ids of the calls of a message that no result behind it answers.
#[must_use]
pub fn unanswered(rows: &[Row<'_>], at: usize) -> Vec<String> {
    let mut open: Vec<String> = Body::read(rows[at].json)
        .calls
        .into_iter()
        .map(|call| call.id.into_owned())
        .collect();
    let results = rows[at + 1..]
        .iter()
        .take_while(|row| row.caller == Some(at));
    for result in results {
        let id = call_id(result.json).unwrap_or_default();
        let place = open
            .iter()
            .position(|open| *open == *id)
            .or_else(|| open.iter().position(|open| call_key(open) == call_key(&id)))
            .unwrap_or(0);
        if place < open.len() {
            open.remove(place);
        }
    }
    open
}

/// The result of a call that never came to one.
#[must_use]
pub fn stub(id: &str) -> String {
    build::as_synthetic(&build::tool(id, NO_RESULT))
        .stored()
        .to_string()
}

/// What the assistant says between two messages of a user that have to stay apart.
#[must_use]
pub fn between_users() -> String {
    build::as_synthetic(&build::assistant("[the user goes on]"))
        .stored()
        .to_string()
}
