//! Reading a list of messages: what belongs together, and what is wrong with it.

mod check;

use std::collections::HashMap;
use std::ops::Range;

use crate::calls::{ToolCall, call_key};
use crate::message::{Message, Role, flags};

pub(crate) use check::is_empty;
pub use check::{Policy, Rule, Violation, check, introduced};

/// What a [`Group`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// One system message.
    System,
    /// One user message.
    User,
    /// One assistant message without calls.
    Assistant,
    /// One assistant message with calls, and the run of tool results directly behind it.
    Calls,
    /// A run of tool results without an assistant message that calls directly before it.
    Results,
    /// One message of an unknown role.
    Other,
}

/// Messages that only make sense together: cutting inside one makes an invalid list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What it is.
    pub kind: GroupKind,
    /// Which messages.
    pub range: Range<usize>,
}

/// The groups of a list, in order and without gaps.
#[must_use]
pub fn groups(messages: &[Message]) -> Vec<Group> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < messages.len() {
        let run = |from: usize| {
            from + messages
                .get(from..)
                .unwrap_or(&[])
                .iter()
                .take_while(|m| m.role() == Role::Tool)
                .count()
        };
        let (kind, end) = match messages[at].role() {
            Role::System => (GroupKind::System, at + 1),
            Role::User => (GroupKind::User, at + 1),
            Role::Assistant if messages[at].has(flags::TOOL_CALLS) => {
                (GroupKind::Calls, run(at + 1))
            }
            Role::Assistant => (GroupKind::Assistant, at + 1),
            Role::Tool => (GroupKind::Results, run(at)),
            Role::Other => (GroupKind::Other, at + 1),
        };
        found.push(Group {
            kind,
            range: at..end,
        });
        at = end;
    }
    found
}

/// For each message, if it is a tool result, the index of the assistant message whose call it
/// answers: within its group only, one result for one call. Ids repeat across a session, so a result
/// without an open call in its group answers nothing.
#[must_use]
pub fn callers(messages: &[Message]) -> Vec<Option<usize>> {
    let mut found = vec![None; messages.len()];
    for_each_answer(messages, |result, caller, _| found[result] = Some(caller));
    found
}

/// For each message, if it is a tool result, the uid of the call it answers, taken from the
/// assistant message (`UID-14`). `None` where that call has no uid.
#[must_use]
pub fn result_uids(messages: &[Message]) -> Vec<Option<Box<str>>> {
    let mut found = vec![None; messages.len()];
    for_each_answer(messages, |result, caller, call| {
        found[result] = call_uid(&messages[caller], call).map(Into::into)
    });
    found
}

/// The uid of call number `call` of an assistant message.
#[must_use]
pub fn call_uid(message: &Message, call: usize) -> Option<&str> {
    let calls = message.tool_calls();
    let key = calls.get(call)?.key();
    let occurrence = calls[..call]
        .iter()
        .filter(|earlier| earlier.key() == key)
        .count();
    message.identity().tool_call_uids.get(key)?.nth(occurrence)
}

fn for_each_answer(messages: &[Message], mut found: impl FnMut(usize, usize, usize)) {
    let mut at = 0;
    while at < messages.len() {
        let caller = at;
        at += 1;
        if messages[caller].role() != Role::Assistant || !messages[caller].has(flags::TOOL_CALLS) {
            continue;
        }
        while messages.get(at).is_some_and(|m| m.role() == Role::Tool) {
            at += 1;
        }
        let calls = messages[caller].tool_calls();
        // The usual case: one call, and its one result names it as it names itself.
        if let ([call], [result]) = (calls, &messages[caller + 1..at])
            && named_call(result) == Some(&*call.id)
        {
            found(caller + 1, caller, 0);
            continue;
        }
        let results: Vec<&Message> = messages[caller + 1..at].iter().collect();
        for (n, call) in answers(calls, &results).into_iter().enumerate() {
            if let Some(call) = call {
                found(caller + 1 + n, caller, call);
            }
        }
    }
}

/// For each result the call it answers. The first open call with the result's id is taken; a result
/// that names no call takes the first one that is left.
pub(crate) fn answers(calls: &[ToolCall], results: &[&Message]) -> Vec<Option<usize>> {
    let mut open = Open::new(calls);
    let mut found = vec![None; results.len()];
    for (result, found) in results.iter().zip(&mut found) {
        if let Some(id) = named_call(result) {
            *found = open.take(id);
        }
    }
    for (result, found) in results.iter().zip(&mut found) {
        if named_call(result).is_none() {
            *found = open.take_first();
        }
    }
    found
}

/// The calls of one message that no result has taken yet.
struct Open<'c> {
    calls: &'c [ToolCall],
    is_open: Vec<bool>,
    /// The first call that may be open.
    first: usize,
    /// Where the calls of an id, and of a key, stand, the last one first; made for groups that are too large to be
    /// looked through for each result.
    places: Option<[HashMap<&'c str, Vec<usize>>; 2]>,
}

impl<'c> Open<'c> {
    /// Up to here looking through all of them is the quickest.
    const FEW: usize = 16;

    fn new(calls: &'c [ToolCall]) -> Self {
        let places = (calls.len() > Self::FEW).then(|| {
            let mut places = [HashMap::new(), HashMap::new()];
            for (at, call) in calls.iter().enumerate().rev() {
                let [by_id, by_key] = &mut places;
                by_id.entry(&*call.id).or_insert_with(Vec::new).push(at);
                by_key.entry(call.key()).or_insert_with(Vec::new).push(at);
            }
            places
        });
        Self {
            calls,
            is_open: vec![true; calls.len()],
            first: 0,
            places,
        }
    }

    /// Takes the first open call with this id, else the first whose id means the same.
    fn take(&mut self, id: &str) -> Option<usize> {
        let key = call_key(id);
        let at = match &mut self.places {
            Some([by_id, by_key]) => newest_open(by_id.get_mut(id), &self.is_open)
                .or_else(|| newest_open(by_key.get_mut(key), &self.is_open)),
            None => {
                let open = |wanted: &dyn Fn(&ToolCall) -> bool| {
                    let mut calls = self.calls.iter().zip(&self.is_open);
                    calls.position(|(call, open)| *open && wanted(call))
                };
                open(&|call| &*call.id == id).or_else(|| open(&|call| call.key() == key))
            }
        }?;
        self.is_open[at] = false;
        Some(at)
    }

    fn take_first(&mut self) -> Option<usize> {
        while !*self.is_open.get(self.first)? {
            self.first += 1;
        }
        self.is_open[self.first] = false;
        Some(self.first)
    }
}

/// The first of these places that is still open; those that are not are forgotten.
fn newest_open(places: Option<&mut Vec<usize>>, is_open: &[bool]) -> Option<usize> {
    let places = places?;
    while let Some(at) = places.pop() {
        if is_open[at] {
            return Some(at);
        }
    }
    None
}

/// The id a result names, unless that is empty.
fn named_call(result: &Message) -> Option<&str> {
    result.tool_call_id().filter(|id| !id.is_empty())
}

/// The turns: each begins with a user message (several in a row begin one turn) and goes on to the
/// next. What stands before the first user message belongs to no turn.
#[must_use]
pub fn turns(messages: &[Message]) -> Vec<Range<usize>> {
    let is_user = |at: usize| messages[at].role() == Role::User;
    let starts: Vec<usize> = (0..messages.len())
        .filter(|&at| is_user(at) && (at == 0 || !is_user(at - 1)))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use proptest::prelude::*;

    /// The rule as it is written: for each result in turn the first open call of its id, then of its key.
    fn by_the_rule(calls: &[ToolCall], results: &[&Message]) -> Vec<Option<usize>> {
        let mut open = vec![true; calls.len()];
        let mut found = vec![None; results.len()];
        for named in [true, false] {
            for (result, found) in results.iter().zip(&mut found) {
                let id = named_call(result);
                if id.is_some() != named {
                    continue;
                }
                let first = |wanted: &dyn Fn(&ToolCall) -> bool| {
                    (0..calls.len()).find(|&at| open[at] && wanted(&calls[at]))
                };
                *found = match id {
                    Some(id) => first(&|call| &*call.id == id)
                        .or_else(|| first(&|call| call.key() == call_key(id))),
                    None => first(&|_| true),
                };
                if let Some(at) = *found {
                    open[at] = false;
                }
            }
        }
        found
    }

    proptest! {
        // contract: UID-12
        // case: 12
        #[test]
        fn large_groups_are_paired_as_small_ones_are(
            calls in proptest::collection::vec(0_u8..12, 0..40),
            results in proptest::collection::vec(0_u8..16, 0..40),
        ) {
            // Ids that repeat, some with a part behind a bar, some results without one.
            let id = |n: u8| match n {
                0..6 => format!("c{n}"),
                6..12 => format!("c{}|fc_{n}", n - 6),
                12 => String::new(),
                _ => format!("other{n}"),
            };
            let ids: Vec<String> = calls.iter().map(|n| id(*n)).collect();
            let list: Vec<(&str, &str, &str)> =
                ids.iter().map(|id| (id.as_str(), "f", "{}")).collect();
            let caller = build::calling(None, &list);
            let answers_to: Vec<Message> =
                results.iter().map(|n| build::tool(&id(*n), "x")).collect();
            let results: Vec<&Message> = answers_to.iter().collect();
            prop_assert_eq!(
                answers(caller.tool_calls(), &results),
                by_the_rule(caller.tool_calls(), &results)
            );
        }
    }
}
