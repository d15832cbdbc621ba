//! What `select_context` said, judged: another list for this one request, or nothing.
//!
//! Fail open: whatever is wrong with an engine, the request goes out as it would have without it. Who tells the user
//! about it, once per session and kind, is the engine's handle.

use hermes_message::Message;

use super::port::Choice;
use crate::engine::{Emission, EngineFault};

/// The messages that take the place of the request's; `None` if it stays as it was.
#[must_use]
pub fn judge(choice: &Choice, result: Result<Emission, EngineFault>) -> Option<Vec<Message>> {
    let Ok(Emission::Messages(items)) = result else {
        return None;
    };
    let lists = [&choice.request, &choice.conversation];
    let chosen: Option<Vec<Message>> = items
        .iter()
        .map(|item| item.message(&lists).cloned())
        .collect();
    // An empty list is a mistake, not a wish (HOOK-4).
    let chosen = chosen.filter(|messages| !messages.is_empty())?;
    let request = choice.request.messages();
    let equal = chosen.len() == request.len() && chosen.iter().zip(request).all(|(a, b)| a.same(b));
    // A choice of everything is the request as it was, and its bytes are too.
    (!equal).then_some(chosen)
}
