//! A valid request out of any list of messages.
//!
//! The list that comes in is not touched: what a request leaves out is still in the transcript.
//! Messages that need no repair go into the request as the objects they are.
//!
//! What is done about each rule:
//! - [`Rule::EmptyContent`]: the message is left out; a tool result says [`NO_OUTPUT`] instead, since
//!   its call needs it.
//! - [`Rule::SystemNotFirst`], [`Rule::UnknownRole`]: the message stays in its place as words to the
//!   model, in the role of the user and marked as a notice. Only the first message can be *the*
//!   system prompt, and many providers take no second one.
//! - [`Rule::AdjacentUsers`], [`Rule::AdjacentAssistants`]: `fold`.
//! - [`Rule::CallWithoutResult`]: the call stays (the model did ask for it) and gets a result that
//!   says [`NO_RESULT`].
//! - [`Rule::ResultWithoutCall`]: the result is left out: no provider takes it.
//! - [`Rule::FirstNotUser`]: a line in the user's role is put before the assistant's first words
//!   ([`OPENING`]), so that these are not lost.
//! - [`Rule::NoUser`]: nothing can be done; [`Repaired::no_user`] says so.

mod fold;

use crate::content::Content;
use crate::identity::Identity;
use crate::message::{Message, Role, flags};
use crate::sequence::{self, Policy, Rule, check, is_empty};
use crate::{build, json};

pub use fold::fold;
use fold::{fold_assistants, keeps_text_apart};

/// What the result of a call says that never got one.
pub const NO_RESULT: &str = "[no result: this call was interrupted before it returned]";
/// What a tool result says that had nothing to say.
pub const NO_OUTPUT: &str = "[no output]";
/// What stands before an assistant message that begins a conversation.
pub const OPENING: &str = "[the conversation begins with the assistant]";

/// A list made valid.
#[derive(Debug, Clone)]
pub struct Repaired {
    /// The valid list.
    pub messages: Vec<Message>,
    /// What was done, in the order in which it was met.
    pub notes: Vec<RepairNote>,
    /// No user said anything in the list that came in, so this is no request to send.
    pub no_user: bool,
}

/// One thing that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairNote {
    /// Index of the message in the list that came in.
    pub message: usize,
    /// The rule it broke.
    pub rule: Rule,
}

/// Makes a list valid: [`check`] finds nothing in the result, except [`Rule::NoUser`] where
/// [`Repaired::no_user`] is set. The same list always becomes the same result, and a valid list
/// becomes itself.
#[must_use]
pub fn repair(messages: &[Message]) -> Repaired {
    let no_user = !messages
        .iter()
        .any(|m| m.role() == Role::User && !m.is_blank());
    if check(messages, Policy::Request).is_empty() {
        return Repaired {
            messages: messages.to_vec(),
            notes: Vec::new(),
            no_user,
        };
    }
    let mut repair = Repair {
        input: messages,
        out: Vec::with_capacity(messages.len()),
        notes: Vec::new(),
    };
    let mut at = 0;
    while at < messages.len() {
        at = repair.step(at);
    }
    Repaired {
        messages: repair.out,
        notes: repair.notes,
        no_user,
    }
}

struct Repair<'a> {
    input: &'a [Message],
    out: Vec<Message>,
    notes: Vec<RepairNote>,
}

impl Repair<'_> {
    fn note(&mut self, message: usize, rule: Rule) {
        self.notes.push(RepairNote { message, rule });
    }

    /// Takes the message at `at`, with its group if it has one; returns where to go on.
    fn step(&mut self, at: usize) -> usize {
        let message = &self.input[at];
        match message.role() {
            Role::Tool => {
                self.note(at, Rule::ResultWithoutCall);
                at + 1
            }
            Role::Assistant if message.has(flags::TOOL_CALLS) => self.calls(at),
            _ => {
                self.single(at);
                at + 1
            }
        }
    }

    /// A message that has no part in calls.
    fn single(&mut self, at: usize) {
        let message = &self.input[at];
        if is_empty(message) {
            return self.note(at, Rule::EmptyContent);
        }
        let message = self.shaped(at, message);
        match message.role() {
            Role::System if at == 0 => self.out.push(message),
            Role::System => {
                self.note(at, Rule::SystemNotFirst);
                self.push_user(at, notice("system", &message));
            }
            Role::Other | Role::Tool => {
                self.note(at, Rule::UnknownRole);
                let role = message
                    .value("role")
                    .and_then(json::string)
                    .unwrap_or_default();
                self.push_user(at, notice(&role, &message));
            }
            Role::User => self.push_user(at, message),
            Role::Assistant => self.push_assistant(at, message),
        }
    }

    /// Content that is neither text nor list becomes the text it is written as.
    fn shaped(&mut self, at: usize, message: &Message) -> Message {
        let mut message = message.clone();
        if message.has_odd_content() {
            self.note(at, Rule::ContentShape);
            message = build::with_content(&message, message.raw_content().unwrap_or_default());
        }
        if message.has_empty_calls() {
            self.note(at, Rule::EmptyToolCalls);
            message = build::without_member(&message, "tool_calls");
        }
        message
    }

    /// An assistant message that calls tools, and its results. Notices and empty messages between the
    /// call and its results do not part them: they are taken up behind the group.
    fn calls(&mut self, at: usize) -> usize {
        let input = self.input;
        let parts_group =
            |m: &Message| matches!(m.role(), Role::User | Role::Assistant) && !is_empty(m);
        let reach = input[at + 1..]
            .iter()
            .position(parts_group)
            .map_or(input.len(), |n| at + 1 + n);
        let end = input[at..reach]
            .iter()
            .rposition(|m| m.role() == Role::Tool)
            .map_or(at + 1, |n| at + n + 1);

        let message = self.shaped(at, &input[at]);
        self.push_assistant(at, message);
        let places: Vec<usize> = (at + 1..end)
            .filter(|&n| input[n].role() == Role::Tool)
            .collect();
        let results: Vec<&Message> = places.iter().map(|&n| &input[n]).collect();
        let calls = input[at].tool_calls();
        let answers = sequence::answers(calls, &results);
        for (&place, answer) in places.iter().zip(&answers) {
            match answer {
                Some(call) => {
                    let result = self.result(place, &calls[*call].id);
                    self.out.push(result);
                }
                None => self.note(place, Rule::ResultWithoutCall),
            }
        }
        for (n, call) in calls
            .iter()
            .enumerate()
            .filter(|(n, _)| !answers.contains(&Some(*n)))
        {
            self.note(at, Rule::CallWithoutResult);
            let uid = sequence::call_uid(&input[at], n).map(Into::into);
            let stub = build::as_synthetic(&build::tool(&call.id, NO_RESULT));
            self.out.push(stub.replaced_identity(Identity {
                tool_call_uid: uid,
                ..Identity::default()
            }));
        }
        for place in (at + 1..end).filter(|&n| input[n].role() != Role::Tool) {
            self.single(place);
        }
        end
    }

    fn result(&mut self, at: usize, call_id: &str) -> Message {
        let mut result = self.shaped(at, &self.input[at]);
        if result.tool_call_id() != Some(call_id) {
            self.note(at, Rule::ResultIdDiffers);
            let text = json::set_member(result.stored(), "tool_call_id", &json::quote(call_id));
            result = build::edited(&result, &text);
        }
        if result.is_blank() {
            self.note(at, Rule::EmptyContent);
            result = build::with_content(&result, NO_OUTPUT);
        }
        result
    }

    fn push_user(&mut self, at: usize, message: Message) {
        match self.out.last_mut() {
            Some(last) if last.role() == Role::User => {
                *last = fold(last, &message);
                self.note(at, Rule::AdjacentUsers);
            }
            _ => self.out.push(message),
        }
    }

    fn push_assistant(&mut self, at: usize, message: Message) {
        match self.out.last_mut() {
            Some(last) if last.role() == Role::Assistant => {
                let apart = keeps_text_apart(last, &message);
                *last = fold_assistants(last, &message);
                self.note(at, Rule::AdjacentAssistants);
                if apart {
                    self.note(at, Rule::TextBesideMedia);
                }
                return;
            }
            Some(last) if last.role() != Role::System => {}
            _ => {
                self.note(at, Rule::FirstNotUser);
                self.out.push(build::as_synthetic(&build::user(OPENING)));
            }
        }
        self.out.push(message);
    }
}

/// A message of another role as words in the user's role that say where they come from.
fn notice(role: &str, message: &Message) -> Message {
    let label = if role.is_empty() {
        "[notice]".to_owned()
    } else {
        format!("[{role} notice]")
    };
    let content = match message.content() {
        Content::Parts(_) => {
            let raw = message.raw_content().unwrap_or("[]");
            fold::join_lists(&["[", &fold::text_part(&label), "]"].concat(), raw)
        }
        content => json::quote(&format!("{label}\n{}", content.text())),
    };
    let mut text = json::set_member(message.stored(), "content", &content);
    text = json::set_member(&text, "role", "\"user\"");
    text = json::set_member(&text, "_synthetic", "true");
    for key in ["tool_calls", "tool_call_id", "function_call"] {
        text = json::remove_member(&text, key);
    }
    build::edited(message, &text)
}
