//! The uids of one assistant message's tool calls.

use crate::calls::ToolCall;
use crate::identity::some_text;
use crate::json;

/// The uid behind one provider id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallUid {
    /// One call, or several calls of one response that repeat the id and share the uid (`UID-12`).
    One(Box<str>),
    /// A fold: one entry for each call with this id, in `tool_calls` order (`UID-13`). `None` stands
    /// for a call that had no uid, and is `null` in JSON.
    Each(Vec<Option<Box<str>>>),
}

impl CallUid {
    /// The uid of the `n`th call (from 0) that has this id.
    #[must_use]
    pub fn nth(&self, n: usize) -> Option<&str> {
        match self {
            Self::One(uid) => Some(uid),
            Self::Each(uids) => uids.get(n)?.as_deref(),
        }
    }
}

/// The ordered map from provider id to uid that `_tool_call_uids` is.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct CallUids(Vec<(Box<str>, CallUid)>);

impl CallUids {
    /// Whether no call has a uid.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What stands under a provider id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&CallUid> {
        self.0
            .iter()
            .find(|(key, _)| &**key == id)
            .map(|(_, uid)| uid)
    }

    /// Ids and uids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CallUid)> {
        self.0.iter().map(|(id, uid)| (&**id, uid))
    }

    /// Sets the uid of a provider id.
    pub fn set(&mut self, id: &str, uid: CallUid) {
        match self.0.iter_mut().find(|(key, _)| &**key == id) {
            Some((_, old)) => *old = uid,
            None => self.0.push((id.into(), uid)),
        }
    }

    /// Removes a provider id.
    pub fn remove(&mut self, id: &str) {
        self.0.retain(|(key, _)| &**key != id);
    }

    /// Reads the value of `_tool_call_uids`. Entries of the wrong kind count as absent.
    #[must_use]
    pub fn from_json(raw: &str) -> Self {
        let mut map = Self::default();
        for member in json::members(raw).unwrap_or_default() {
            let value = member.value(raw);
            let uid_of = |raw: &str| json::string(raw).and_then(|text| some_text(&text));
            let uid = match json::elements(value) {
                Some(list) => Some(CallUid::Each(list.into_iter().map(uid_of).collect())).filter(
                    |each| !matches!(each, CallUid::Each(list) if list.iter().all(Option::is_none)),
                ),
                None => uid_of(value).map(CallUid::One),
            };
            if let Some(uid) = uid {
                map.set(&member.key, uid);
            }
        }
        map
    }

    /// The value of `_tool_call_uids`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.push_json(&mut out);
        out
    }

    pub(crate) fn push_json(&self, out: &mut String) {
        out.push('{');
        for (i, (id, uid)) in self.0.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            json::push_quoted(out, id);
            out.push(':');
            match uid {
                CallUid::One(uid) => json::push_quoted(out, uid),
                CallUid::Each(uids) => {
                    for (n, uid) in uids.iter().enumerate() {
                        out.push(if n == 0 { '[' } else { ',' });
                        match uid {
                            Some(uid) => json::push_quoted(out, uid),
                            None => out.push_str("null"),
                        }
                    }
                    out.push(']');
                }
            }
        }
        out.push('}');
    }

    /// Appends the uids of `calls`, which now stand behind `own` in one message. An id that both
    /// sides use becomes a list with one entry a call; a uid that several calls shared is written
    /// once for each of them before the others follow.
    pub(crate) fn fold(&mut self, own: &[ToolCall], dropped: &Self, calls: &[ToolCall]) {
        for (i, call) in calls.iter().enumerate() {
            let id = call.key();
            if calls[..i].iter().any(|earlier| earlier.key() == id) {
                continue;
            }
            let ours = own.iter().filter(|c| c.key() == id).count();
            let theirs = calls.iter().filter(|c| c.key() == id).count();
            let theirs_uid = dropped.get(id);
            if ours == 0 {
                if let Some(uid) = theirs_uid {
                    self.set(id, uid.clone());
                }
                continue;
            }
            let mut list = slots(self.get(id), ours);
            list.extend(slots(theirs_uid, theirs));
            if list.iter().any(Option::is_some) {
                self.set(id, CallUid::Each(list));
            }
        }
    }
}

fn slots(uid: Option<&CallUid>, count: usize) -> Vec<Option<Box<str>>> {
    (0..count)
        .map(|n| uid.and_then(|u| u.nth(n)).map(Into::into))
        .collect()
}
