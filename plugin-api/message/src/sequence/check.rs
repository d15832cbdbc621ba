//! The rules of a valid request.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::{GroupKind, answers, groups};
use crate::message::{Message, Role};

/// One rule of a valid request.
///
/// That no key beside the chat format's goes out is no rule here: [`Message::wire`] cannot hold one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A system message stands only at the very beginning, and only one.
    SystemNotFirst,
    /// The first message that is no system message is a user's.
    FirstNotUser,
    /// No two user messages follow each other.
    AdjacentUsers,
    /// No two assistant messages follow each other.
    AdjacentAssistants,
    /// A text of the assistant beside its images or audio cannot be joined with them.
    TextBesideMedia,
    /// Every call has exactly one result, directly behind the message that calls.
    CallWithoutResult,
    /// Every result answers a call of the assistant message directly before it.
    ResultWithoutCall,
    /// A result names its call exactly as the call names itself.
    ResultIdDiffers,
    /// A message says something, or calls tools.
    EmptyContent,
    /// Content is a text, a list of parts, or `null`.
    ContentShape,
    /// A list of tool calls is not empty.
    EmptyToolCalls,
    /// The role is system, user, assistant or tool.
    UnknownRole,
    /// There is at least one user message.
    NoUser,
    /// Tool arguments that were JSON text still are. Only [`introduced`] can know.
    ArgumentsBroken,
}

impl Rule {
    /// A short name for reports that programs read.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemNotFirst => "system-not-first",
            Self::FirstNotUser => "first-not-user",
            Self::AdjacentUsers => "adjacent-users",
            Self::AdjacentAssistants => "adjacent-assistants",
            Self::TextBesideMedia => "text-beside-media",
            Self::CallWithoutResult => "call-without-result",
            Self::ResultWithoutCall => "result-without-call",
            Self::ResultIdDiffers => "result-id-differs",
            Self::EmptyContent => "empty-content",
            Self::ContentShape => "content-shape",
            Self::EmptyToolCalls => "empty-tool-calls",
            Self::UnknownRole => "unknown-role",
            Self::NoUser => "no-user",
            Self::ArgumentsBroken => "arguments-broken",
        }
    }

    /// What is wrong where the rule is broken, as a sentence.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::SystemNotFirst => "a system message stands behind the first place",
            Self::FirstNotUser => "the conversation does not begin with a user message",
            Self::AdjacentUsers => "two user messages follow each other",
            Self::AdjacentAssistants => "two assistant messages follow each other",
            Self::TextBesideMedia => {
                "an assistant text stands beside multimodal content and cannot be joined with it"
            }
            Self::CallWithoutResult => "a tool call has no result directly behind it",
            Self::ResultWithoutCall => {
                "a tool result answers no open call of the message before it"
            }
            Self::ResultIdDiffers => {
                "a tool result does not name its call as the call names itself"
            }
            Self::EmptyContent => "a message has no visible content and no tool calls",
            Self::ContentShape => "content is neither a text nor a list of parts",
            Self::EmptyToolCalls => "the list of tool calls is empty",
            Self::UnknownRole => "the role is none of system, user, assistant and tool",
            Self::NoUser => "there is no user message",
            Self::ArgumentsBroken => "tool arguments were JSON and are none any more",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Violation {
    /// Index of the message where it shows.
    pub message: usize,
    /// Which rule.
    pub rule: Rule,
}

/// How much is asked of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// What a provider takes: every rule.
    #[default]
    Request,
    /// What may be kept: results follow their calls. Messages without content, neighbours of one role
    /// and notices of the system in between are history as it was, and become part of a valid request
    /// when one is built.
    Transcript,
}

/// The rules that a list breaks, by message.
#[must_use]
pub fn check(messages: &[Message], policy: Policy) -> Vec<Violation> {
    let mut found = Vec::new();
    check_groups(messages, &mut found);
    if policy == Policy::Request {
        check_messages(messages, &mut found);
        if !messages.iter().any(|m| m.role() == Role::User) {
            found.push(Violation {
                message: 0,
                rule: Rule::NoUser,
            });
        }
    }
    found.sort_unstable();
    found
}

fn check_groups(messages: &[Message], found: &mut Vec<Violation>) {
    for group in groups(messages) {
        let mut add = |message: usize, rule: Rule| found.push(Violation { message, rule });
        let start = group.range.start;
        match group.kind {
            GroupKind::Results => group.range.for_each(|at| add(at, Rule::ResultWithoutCall)),
            GroupKind::Calls => {
                let calls = messages[start].tool_calls();
                let results: Vec<&Message> = messages[start + 1..group.range.end].iter().collect();
                let answered = answers(calls, &results);
                for (n, call) in answered.iter().enumerate() {
                    match call {
                        None => add(start + 1 + n, Rule::ResultWithoutCall),
                        Some(call) if results[n].tool_call_id() != Some(&calls[*call].id) => {
                            add(start + 1 + n, Rule::ResultIdDiffers);
                        }
                        Some(_) => {}
                    }
                }
                if answered.iter().flatten().count() < calls.len() {
                    add(start, Rule::CallWithoutResult);
                }
            }
            _ => {}
        }
    }
}

fn check_messages(messages: &[Message], found: &mut Vec<Violation>) {
    let mut before: Option<Role> = None;
    for (at, message) in messages.iter().enumerate() {
        let mut add = |rule: Rule| found.push(Violation { message: at, rule });
        let role = message.role();
        match role {
            Role::System if at > 0 => add(Rule::SystemNotFirst),
            Role::Other => add(Rule::UnknownRole),
            _ => {}
        }
        let is_first = at == 0 || (at == 1 && before == Some(Role::System));
        if is_first && !matches!(role, Role::User | Role::System) {
            add(Rule::FirstNotUser);
        }
        match (before, role) {
            (Some(Role::User), Role::User) => add(Rule::AdjacentUsers),
            (Some(Role::Assistant), Role::Assistant) => add(Rule::AdjacentAssistants),
            _ => {}
        }
        if is_empty(message) {
            add(Rule::EmptyContent);
        }
        if message.has_odd_content() {
            add(Rule::ContentShape);
        }
        if message.has_empty_calls() {
            add(Rule::EmptyToolCalls);
        }
        before = Some(role);
    }
}

/// Only an assistant can say something without content.
pub(crate) fn is_empty(message: &Message) -> bool {
    if message.role() == Role::Assistant {
        message.says_nothing()
    } else {
        message.is_blank()
    }
}

/// The rules that `after` breaks and that `before`, the list it was made from, did not break at the
/// same messages. So an engine answers for its own faults, not for those it was given.
#[must_use]
pub fn introduced(before: &[Message], after: &[Message], policy: Policy) -> Vec<Violation> {
    let old: HashSet<Violation> = check(before, policy).into_iter().collect();
    let old_rules: HashSet<Rule> = old.iter().map(|v| v.rule).collect();
    let places: HashMap<*const u8, usize> = before
        .iter()
        .enumerate()
        .map(|(at, m)| (address(m), at))
        .collect();
    let place = |at: usize| after.get(at).and_then(|m| places.get(&address(m)).copied());

    let mut found = check(after, policy);
    found.retain(|v| match v.rule {
        Rule::NoUser | Rule::FirstNotUser => !old_rules.contains(&v.rule),
        rule => {
            let Some(was) = place(v.message) else {
                return true;
            };
            let same_neighbour = v.message == 0 && was == 0
                || v.message > 0 && was > 0 && place(v.message - 1) == Some(was - 1);
            let needs_neighbour = matches!(
                rule,
                Rule::AdjacentUsers | Rule::AdjacentAssistants | Rule::ResultWithoutCall
            );
            !old.contains(&Violation { message: was, rule }) || needs_neighbour && !same_neighbour
        }
    });
    found.extend(broken_arguments(before, after));
    found.sort_unstable();
    found
}

fn address(message: &Message) -> *const u8 {
    Arc::as_ptr(message.stored()).cast()
}

/// Messages of `after` whose call arguments are no JSON, although those of the same call (same
/// message uid, same place) in `before` were.
fn broken_arguments(before: &[Message], after: &[Message]) -> Vec<Violation> {
    let by_uid: HashMap<&str, &Message> = before
        .iter()
        .filter_map(|m| m.identity().uid.as_deref().map(|uid| (uid, m)))
        .collect();
    let is_broken = |message: &&Message| {
        let old = message
            .identity()
            .uid
            .as_deref()
            .and_then(|uid| by_uid.get(uid));
        old.is_some_and(|old| {
            !Arc::ptr_eq(old.stored(), message.stored())
                && message
                    .tool_calls()
                    .iter()
                    .zip(old.tool_calls())
                    .any(|(new, old)| {
                        new.key() == old.key()
                            && old.arguments_are_json()
                            && !new.arguments_are_json()
                    })
        })
    };
    let broken = after.iter().enumerate().filter(|(_, m)| is_broken(m));
    broken
        .map(|(message, _)| Violation {
            message,
            rule: Rule::ArgumentsBroken,
        })
        .collect()
}
