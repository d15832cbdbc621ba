//! Who gets which id, and when (`UID-1`, `UID-8`, `UID-14`).

use hermes_message::{CallUids, Identity, Message, Role};
use uuid::Uuid;

/// A fresh message uid: 32 lowercase hex digits.
pub(crate) fn mint() -> String {
    Uuid::new_v4().simple().to_string()
}

/// The key that pairs a result with its call: the provider's id without what some append behind a `|`.
fn key(id: &str) -> &str {
    id.split('|').next().unwrap_or(id)
}

/// Gives a message that is about to get its first row what it lacks: a uid, and uids for its calls.
pub(crate) fn stamp(message: &Message) -> Message {
    let mut identity = message.identity().clone();
    if identity.uid.is_none() {
        identity.uid = Some(mint().into());
    }
    identity.mint_calls(message.tool_calls(), mint);
    with(message, identity)
}

/// The message under this identity; the same object when nothing changes.
pub(crate) fn with(message: &Message, identity: Identity) -> Message {
    if *message.identity() == identity {
        message.clone()
    } else {
        message.replaced_identity(identity)
    }
}

/// Walks a transcript and knows, for each tool result, the uid of the call it answers.
///
/// A result answers the nearest assistant message before it that names its id, never across a user turn.
/// Where that message has no uids, the result has none either (`UID-15`).
#[derive(Default)]
pub(crate) struct Pairing {
    open: Vec<Caller>,
}

struct Caller {
    message: Message,
    /// The calls that were answered, by their place, with the one that stands for all of the same id.
    answered: Vec<usize>,
}

impl Caller {
    /// The place of the first call with this id.
    fn place(&self, id: &str) -> Option<usize> {
        self.message
            .tool_calls()
            .iter()
            .position(|call| call.key() == id)
    }
}

impl Pairing {
    /// Takes the next message; returns it with its call's uid where it is a result that had none.
    pub(crate) fn next(&mut self, message: Message) -> Message {
        match message.role() {
            Role::User => {
                self.open.clear();
                message
            }
            Role::Assistant => {
                if !message.tool_calls().is_empty() {
                    self.open.push(Caller {
                        message: message.clone(),
                        answered: Vec::new(),
                    });
                }
                message
            }
            Role::Tool => self.answer(message),
            Role::System | Role::Other => message,
        }
    }

    /// Puts what another walk saw behind what this one saw.
    pub(crate) fn append(&mut self, later: Self) {
        self.open.extend(later.open);
    }

    /// Whether a result with this id would find its call among what was walked over.
    pub(crate) fn knows(&self, id: &str) -> bool {
        let id = key(id);
        self.open.iter().any(|caller| caller.place(id).is_some())
    }

    fn answer(&mut self, message: Message) -> Message {
        let Some(id) = message.tool_call_id().map(key) else {
            return message;
        };
        let Some((caller, place)) = self
            .open
            .iter_mut()
            .rev()
            .find_map(|caller| caller.place(id).map(|place| (caller, place)))
        else {
            return message;
        };
        let nth = caller
            .answered
            .iter()
            .filter(|earlier| **earlier == place)
            .count();
        caller.answered.push(place);
        if message.identity().tool_call_uid.is_some() {
            return message;
        }
        let uids = &caller.message.identity().tool_call_uids;
        let Some(uid) = uids.get(id).and_then(|uids| uids.nth(nth)) else {
            return message;
        };
        let mut identity = message.identity().clone();
        identity.tool_call_uid = Some(uid.into());
        message.replaced_identity(identity)
    }
}

/// The uids of folded messages as their column holds them.
pub(crate) fn absorbed_column(identity: &Identity) -> Option<String> {
    if identity.absorbed.is_empty() {
        return None;
    }
    serde_json::to_string(&identity.absorbed).ok()
}

/// The call uids as their column holds them.
pub(crate) fn calls_column(identity: &Identity) -> Option<String> {
    (!identity.tool_call_uids.is_empty()).then(|| identity.tool_call_uids.to_json())
}

/// The identity that a row's four columns describe. What is malformed counts as absent.
pub(crate) fn from_columns(
    uid: Option<&str>,
    absorbed: Option<&str>,
    calls: Option<&str>,
    call: Option<&str>,
) -> Identity {
    let some = |text: Option<&str>| text.filter(|t| !t.is_empty()).map(Into::into);
    let absorbed = absorbed
        .and_then(|text| serde_json::from_str::<Vec<serde_json::Value>>(text).ok())
        .unwrap_or_default();
    let absorbed = absorbed.iter().filter_map(|value| value.as_str());
    Identity {
        uid: some(uid),
        absorbed: absorbed
            .filter(|text| !text.is_empty())
            .map(Into::into)
            .collect(),
        tool_call_uids: calls.map(CallUids::from_json).unwrap_or_default(),
        tool_call_uid: some(call),
    }
}
