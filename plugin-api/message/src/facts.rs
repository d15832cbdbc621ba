//! The two texts of a message and what was read from them, made once.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::calls::{self, ToolCall};
use crate::error::MessageError;
use crate::identity::Identity;
use crate::json::{self, Member};
use crate::message::{Role, flags};
use crate::wire::WirePolicy;
use crate::{border, identity};

/// Everything about a message that follows from its text.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) stored: Arc<str>,
    /// The same as `stored` where nothing has to go.
    pub(crate) wire: Arc<str>,
    pub(crate) original: Option<Box<[u8]>>,
    pub(crate) role: Role,
    /// There is a role at all, also where it is an unknown one.
    pub(crate) has_role: bool,
    pub(crate) flags: u32,
    pub(crate) version: u64,
    pub(crate) tokens: OnceLock<u32>,
    pub(crate) content: Option<Range<usize>>,
    pub(crate) calls: Box<[ToolCall]>,
    pub(crate) call_id: Option<Box<str>>,
    /// It refuses, speaks or calls through a key other than `content` and `tool_calls`.
    pub(crate) speaks_otherwise: bool,
    /// There is a list of tool calls, and nothing in it.
    pub(crate) empty_calls: bool,
}

impl Facts {
    /// Reads a text as it came in, and the identity keys that stood in it.
    pub(crate) fn read(text: &str) -> Result<(Self, Identity), MessageError> {
        let clean = border::replace_lone_surrogates(text);
        let changed = matches!(clean, std::borrow::Cow::Owned(_));
        match Self::of_clean(&clean) {
            Ok((mut facts, identity)) => {
                if changed || facts.original.is_some() {
                    facts.original = Some(text.as_bytes().into());
                }
                Ok((facts, identity))
            }
            Err(fault) => {
                let Some(escaped) = border::escape_controls(&clean) else {
                    return Err(fault);
                };
                let (mut facts, identity) = Self::of_clean(&escaped).map_err(|_| fault)?;
                facts.original = Some(text.as_bytes().into());
                Ok((facts, identity))
            }
        }
    }

    fn of_clean(text: &str) -> Result<(Self, Identity), MessageError> {
        let start = text.len() - text.trim_ascii_start().len();
        let body = text.trim_ascii();
        if !body.starts_with('{') {
            return Err(MessageError::NotAnObject {
                position: start,
                found: json::kind(body),
            });
        }
        let members = json::members(body).map_err(|e| {
            let (position, reason) = json::fault(body, &e);
            MessageError::Json {
                position: start + position,
                reason,
            }
        })?;
        let is_identity = |m: &Member<'_>| identity::IDENTITY_FIELDS.contains(&&*m.key);
        let mut found = Identity::default();
        let facts = if members.iter().any(is_identity) {
            for member in members.iter().filter(|m| is_identity(m)) {
                found.set(&member.key, member.value(body));
            }
            let (text, members) = json::keep_members(body, &members, |_, m| !is_identity(m));
            Self::of_members(text.into(), &members)
        } else {
            Self::of_members(body.into(), &members)
        };
        Ok((facts, found))
    }

    fn of_members(stored: Arc<str>, members: &[Member<'_>]) -> Self {
        let mut facts = Self {
            wire: Arc::clone(&stored),
            original: None,
            role: Role::Other,
            has_role: false,
            flags: 0,
            version: 0,
            tokens: OnceLock::new(),
            content: None,
            calls: Box::default(),
            call_id: None,
            speaks_otherwise: false,
            empty_calls: false,
            stored,
        };
        let text = Arc::clone(&facts.stored);
        let mut tool_calls = None;
        for member in members {
            let value = member.value(&text);
            match &*member.key {
                "role" => {
                    facts.has_role = true;
                    facts.role = json::string(value).map_or(Role::Other, |role| Role::of(&role));
                }
                "content" => facts.content = Some(member.start..member.end),
                "tool_calls" => tool_calls = Some(member),
                "tool_call_id" => facts.call_id = json::string(value).map(Into::into),
                "refusal" | "audio" | "function_call" => {
                    facts.speaks_otherwise |= !matches!(value, "null" | "\"\"" | "{}" | "false");
                }
                "_compressed_summary" => facts.set_flag(flags::SUMMARY, value == "true"),
                "_synthetic" => facts.set_flag(flags::SYNTHETIC, value == "true"),
                _ => {}
            }
        }
        if let Some(member) = tool_calls {
            let (calls, all_named) = calls::read(&text, &(member.start..member.end));
            if facts.role == Role::Assistant
                && (!all_named || border::has_nested_escapes(member.value(&text)))
                && let Some(mended) = border::mend_calls(member.value(&text))
            {
                return Self::with_mended_calls(&text, member, &mended);
            }
            facts.empty_calls = calls.is_empty() && member.value(&text).starts_with('[');
            facts.calls = calls;
        }
        facts.set_flag(
            flags::TOOL_CALLS,
            facts.role == Role::Assistant && !facts.calls.is_empty(),
        );
        facts.set_flag(
            flags::MULTIMODAL,
            facts.raw_content().is_some_and(|raw| raw.starts_with('[')),
        );
        facts.version = xxh3_64(text.as_bytes());
        // At once, while the members are known: whoever has a message sends it or shows it to an engine.
        facts.wire = without_kept_back(&text, members, WirePolicy::Plain);
        facts
    }

    /// Starts again on the text with mended calls, which needs no second mending.
    fn with_mended_calls(text: &str, member: &Member<'_>, mended: &str) -> Self {
        let new = [&text[..member.start], mended, &text[member.end..]].concat();
        let mut facts = match json::members(&new) {
            Ok(members) => Self::of_members(new.as_str().into(), &members),
            // Cannot happen: valid JSON was put in the place of valid JSON.
            Err(_) => Self::of_members("{}".into(), &[]),
        };
        facts.original.get_or_insert_with(|| text.as_bytes().into());
        facts
    }

    /// The text as a provider sees it.
    pub(crate) fn wire(&self) -> &Arc<str> {
        &self.wire
    }

    pub(crate) fn raw_content(&self) -> Option<&str> {
        self.content.clone().map(|range| &self.stored[range])
    }

    fn set_flag(&mut self, flag: u32, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }
}

/// The text without the keys that `policy` keeps back; the same `Arc` when nothing has to go.
pub(crate) fn wire_text(text: &Arc<str>, policy: WirePolicy) -> Arc<str> {
    let members = json::members(text).unwrap_or_default();
    without_kept_back(text, &members, policy)
}

fn without_kept_back(text: &Arc<str>, members: &[Member<'_>], policy: WirePolicy) -> Arc<str> {
    if all_go_out(text, members, policy) {
        return Arc::clone(text);
    }
    let goes = |i: usize, _: &Member<'_>| goes_out(text, members, i, policy);
    json::keep_members(text, members, goes).0.into()
}

/// Whether a provider sees the member at `at`. Of a key that stands there twice only the last one goes
/// out: it is the one that was read. A key that is null says nothing, and strict providers refuse it
/// anywhere but in `content`.
pub(crate) fn goes_out(text: &str, members: &[Member<'_>], at: usize, policy: WirePolicy) -> bool {
    let member = &members[at];
    policy.allows(&member.key)
        && (member.key == "content" || member.value(text) != "null")
        && !members[at + 1..]
            .iter()
            .any(|later| later.key == member.key)
}

fn all_go_out(text: &str, members: &[Member<'_>], policy: WirePolicy) -> bool {
    (0..members.len()).all(|at| goes_out(text, members, at, policy))
}
