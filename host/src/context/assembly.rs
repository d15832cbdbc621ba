//! From any list of messages to one that a provider takes, without reading again what was read before.
//!
//! Repair is local: where a finished exchange ends and the next one begins, nothing on one side changes what
//! becomes of the other. Such a place is a *seam*. Of a list that begins like the last one, everything up to the last
//! seam is taken as it came out before, and only what follows is checked and mended. The outcome is the same as a
//! repair of the whole list (a property test says so), and an unchanged prefix keeps its very objects, hence its bytes
//! (HOOK-9).

use std::sync::LazyLock;

use hermes_message::repair::{self, RepairNote};
use hermes_message::{Message, Role, call_key, flags};

/// The incremental repair of the requests of one conversation.
#[derive(Debug, Default)]
pub struct Assembly {
    input: Vec<Message>,
    output: Vec<Message>,
    repairs: Vec<RepairNote>,
    seams: Vec<Seam>,
}

/// How much there was at a seam.
#[derive(Clone, Copy, Debug, Default)]
struct Seam {
    input: usize,
    output: usize,
    repairs: usize,
}

/// Stands before a remainder, so that it is not taken for the beginning of a conversation. A remainder begins with
/// a message that survives, so nothing is ever joined to this one.
static BEFORE: LazyLock<Option<[Message; 2]>> = LazyLock::new(|| {
    let user = Message::parse(r#"{"role":"user","content":"-"}"#).ok()?;
    let assistant = Message::parse(r#"{"role":"assistant","content":"-"}"#).ok()?;
    Some([user, assistant])
});

impl Assembly {
    /// Makes a valid request of these messages.
    pub fn assemble(&mut self, messages: &[Message]) {
        let common = self
            .input
            .iter()
            .zip(messages)
            .take_while(|(a, b)| a.same(b))
            .count();
        if common == messages.len() && common == self.input.len() {
            return;
        }
        // A place is a seam because of the message behind it, too.
        while self.seams.last().is_some_and(|seam| seam.input >= common) {
            self.seams.pop();
        }
        let from = self.seams.last().copied().unwrap_or_default();
        self.input.truncate(common);
        self.input.extend_from_slice(&messages[common..]);
        self.output.truncate(from.output);
        self.repairs.truncate(from.repairs);
        let seam = last_seam(&self.input, from.input);
        if let Some(seam) = seam {
            self.mend(from.input, seam);
            self.seams.push(Seam {
                input: seam,
                output: self.output.len(),
                repairs: self.repairs.len(),
            });
        }
        self.mend(seam.unwrap_or(from.input), self.input.len());
    }

    /// The valid list.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.output
    }

    /// What had to be mended, with indexes into the list that was given.
    #[must_use]
    pub fn repairs(&self) -> &[RepairNote] {
        &self.repairs
    }

    fn mend(&mut self, from: usize, until: usize) {
        let part = &self.input[from..until];
        let before = BEFORE.as_ref().filter(|_| from > 0);
        let (mended, shift) = match before {
            // After an assistant's text only a user may speak; after a user's, an assistant.
            Some([user, assistant]) => {
                let first = part.first().map(Message::role);
                let opening = [user.clone(), assistant.clone()];
                let opening = &opening[..if first == Some(Role::User) { 2 } else { 1 }];
                let whole: Vec<Message> = opening.iter().chain(part).cloned().collect();
                (repair::repair(&whole), opening.len())
            }
            None => (repair::repair(part), 0),
        };
        self.output.extend(mended.messages.into_iter().skip(shift));
        self.repairs
            .extend(mended.notes.into_iter().map(|mut note| {
                note.message = note.message.saturating_sub(shift) + from;
                note
            }));
    }
}

/// The last seam behind `after`.
fn last_seam(messages: &[Message], after: usize) -> Option<usize> {
    (after + 1..messages.len())
        .rev()
        .find(|&at| is_seam(messages, at))
}

/// Whether nothing before `at` matters to what stands from there on, nor the other way round.
fn is_seam(messages: &[Message], at: usize) -> bool {
    let before = &messages[at - 1];
    let ended = match before.role() {
        Role::Tool => ends_group(&messages[..at]),
        Role::Assistant => is_plain_text(before),
        _ => false,
    };
    let next = &messages[at];
    ended
        && match next.role() {
            Role::User => !next.is_blank(),
            // Two assistant messages in a row would be joined.
            Role::Assistant => before.role() == Role::Tool && is_plain_text(next),
            _ => false,
        }
}

fn is_plain_text(message: &Message) -> bool {
    message.tool_calls().is_empty()
        && message.flags() & flags::MULTIMODAL == 0
        && !message.is_blank()
}

/// Whether the last messages are an assistant's calls with one result for each, in any order.
fn ends_group(messages: &[Message]) -> bool {
    let results = messages
        .iter()
        .rev()
        .take_while(|message| message.role() == Role::Tool)
        .count();
    let Some(caller) = messages
        .len()
        .checked_sub(results + 1)
        .map(|at| &messages[at])
    else {
        return false;
    };
    let mut calls: Vec<&str> = caller.tool_calls().iter().map(|call| call.key()).collect();
    let mut answers: Vec<&str> = messages[messages.len() - results..]
        .iter()
        .map(|result| result.tool_call_id().map_or("", call_key))
        .collect();
    calls.sort_unstable();
    answers.sort_unstable();
    !calls.is_empty() && calls == answers
}
