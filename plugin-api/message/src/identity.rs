//! Which message this is, apart from what it says.

use std::borrow::Cow;

use crate::calls::ToolCall;
use crate::error::MessageError;
use crate::json;

mod call_uids;

pub use call_uids::{CallUid, CallUids};

/// The keys that carry identity (`UID-9`). They live beside a message's text, never in it.
pub const IDENTITY_FIELDS: &[&str] = &[
    "message_uid",
    "_absorbed_message_uids",
    "_tool_call_uids",
    "_tool_call_uid",
];

/// The identity of one message: its uid, the uids of messages folded into it, and the uids of its
/// tool calls.
///
/// An empty or non-string uid counts as absent: it means "no identity yet" and is never an error.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Identity {
    /// `message_uid`.
    pub uid: Option<Box<str>>,
    /// `_absorbed_message_uids`: folded messages, in the order of their texts.
    pub absorbed: Vec<Box<str>>,
    /// `_tool_call_uids`: of an assistant message, by the provider's call id.
    pub tool_call_uids: CallUids,
    /// `_tool_call_uid`: of a tool result, the uid of the call it answers.
    pub tool_call_uid: Option<Box<str>>,
}

impl Identity {
    /// An identity that is nothing but a uid. An empty one counts as absent.
    #[must_use]
    pub fn of_uid(uid: &str) -> Self {
        Self {
            uid: some_text(uid),
            ..Self::default()
        }
    }

    /// Whether the message has no identity at all yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.uid.is_none()
            && self.absorbed.is_empty()
            && self.tool_call_uids.is_empty()
            && self.tool_call_uid.is_none()
    }

    /// A JSON object of the identity keys that are present; `""` when none is.
    #[must_use]
    pub fn to_json(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        ["{", &self.members(), "}"].concat()
    }

    /// The members of [`Self::to_json`] without the braces.
    pub(crate) fn members(&self) -> String {
        let mut out = String::new();
        let key = |out: &mut String, name: &str| {
            if !out.is_empty() {
                out.push(',');
            }
            json::push_quoted(out, name);
            out.push(':');
        };
        if let Some(uid) = &self.uid {
            key(&mut out, IDENTITY_FIELDS[0]);
            json::push_quoted(&mut out, uid);
        }
        if !self.absorbed.is_empty() {
            key(&mut out, IDENTITY_FIELDS[1]);
            for (i, uid) in self.absorbed.iter().enumerate() {
                out.push(if i == 0 { '[' } else { ',' });
                json::push_quoted(&mut out, uid);
            }
            out.push(']');
        }
        if !self.tool_call_uids.is_empty() {
            key(&mut out, IDENTITY_FIELDS[2]);
            self.tool_call_uids.push_json(&mut out);
        }
        if let Some(uid) = &self.tool_call_uid {
            key(&mut out, IDENTITY_FIELDS[3]);
            json::push_quoted(&mut out, uid);
        }
        out
    }

    /// Reads the identity keys of an object; other keys are passed over. `""` is the empty identity.
    ///
    /// # Errors
    /// When the text is no JSON object. A value of the wrong kind counts as absent instead.
    pub fn from_json(text: &str) -> Result<Self, MessageError> {
        let mut identity = Self::default();
        if text.trim().is_empty() {
            return Ok(identity);
        }
        let text: Cow<'_, str> = crate::border::replace_lone_surrogates(text);
        let start = text.len() - text.trim_start().len();
        if !text[start..].starts_with('{') {
            return Err(MessageError::NotAnObject {
                position: start,
                found: json::kind(&text[start..]),
            });
        }
        let members = json::members(&text).map_err(|e| {
            let (position, reason) = json::fault(&text, &e);
            MessageError::Json { position, reason }
        })?;
        for member in &members {
            identity.set(&member.key, member.value(&text));
        }
        Ok(identity)
    }

    /// Takes the value of one identity key; false when `key` is none of them.
    pub(crate) fn set(&mut self, key: &str, raw: &str) -> bool {
        let uid = || json::string(raw).and_then(|text| some_text(&text));
        match key {
            "message_uid" => self.uid = uid(),
            "_absorbed_message_uids" => {
                let texts = json::elements(raw).unwrap_or_default();
                let uids = texts
                    .into_iter()
                    .filter_map(json::string)
                    .filter_map(|text| some_text(&text));
                self.absorbed = uids.collect();
            }
            "_tool_call_uids" => self.tool_call_uids = CallUids::from_json(raw),
            "_tool_call_uid" => self.tool_call_uid = uid(),
            _ => return false,
        }
        true
    }

    /// Records that `dropped`'s text now stands *behind* this message's own (`UID-5`).
    ///
    /// This message keeps its uid; the list grows by the dropped uid and what that had absorbed,
    /// each once, never its own uid.
    pub fn absorb(&mut self, dropped: &Self) {
        let own = std::mem::take(&mut self.absorbed);
        self.absorbed = distinct(
            self.uid.as_deref(),
            own.iter().chain(&dropped.uid).chain(&dropped.absorbed),
        );
    }

    /// Records that `dropped`'s text now stands *before* this message's own (`UID-5`): its uid
    /// becomes the fold's. A dropped message without a uid cannot give the fold its name.
    pub fn absorb_leading(&mut self, dropped: &Self) {
        let old = self.uid.take();
        let own = std::mem::take(&mut self.absorbed);
        let (uid, old) = if dropped.uid.is_some() {
            (dropped.uid.clone(), old)
        } else {
            (old, None)
        };
        self.absorbed = distinct(
            uid.as_deref(),
            dropped.absorbed.iter().chain(&old).chain(&own),
        );
        self.uid = uid;
    }

    /// Folds the call uids of a message whose calls now stand behind this one's (`UID-13`).
    pub fn fold_calls(&mut self, own: &[ToolCall], dropped: &Self, calls: &[ToolCall]) {
        self.tool_call_uids
            .fold(own, &dropped.tool_call_uids, calls);
    }

    /// Gives every call that has none a uid, one for all calls that share a provider id (`UID-8`,
    /// `UID-12`).
    pub fn mint_calls(&mut self, calls: &[ToolCall], mut mint: impl FnMut() -> String) {
        for call in calls {
            if self.tool_call_uids.get(call.key()).is_none() {
                self.tool_call_uids
                    .set(call.key(), CallUid::One(mint().into()));
            }
        }
    }
}

/// A uid, unless it is empty.
pub(crate) fn some_text(text: &str) -> Option<Box<str>> {
    (!text.is_empty()).then(|| text.into())
}

fn distinct<'a>(survivor: Option<&str>, uids: impl Iterator<Item = &'a Box<str>>) -> Vec<Box<str>> {
    let mut out: Vec<Box<str>> = Vec::new();
    for uid in uids {
        if Some(&**uid) != survivor && !out.contains(uid) {
            out.push(uid.clone());
        }
    }
    out
}
