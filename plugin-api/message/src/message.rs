//! One message.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::calls::ToolCall;
use crate::content::Content;
use crate::error::MessageError;
use crate::estimate;
use crate::facts::{Facts, wire_text};
use crate::identity::Identity;
use crate::json;
use crate::wire::WirePolicy;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// `system`, or `developer`, its newer name.
    System,
    /// `user`.
    User,
    /// `assistant`.
    Assistant,
    /// `tool`: the result of a tool call.
    Tool,
    /// Anything else, or no role at all.
    Other,
}

impl Role {
    /// The role with this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "system" | "developer" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            _ => Self::Other,
        }
    }

    /// The number this role has at the border to engines.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Self::Other => 0,
            Self::System => 1,
            Self::User => 2,
            Self::Assistant => 3,
            Self::Tool => 4,
        }
    }
}

/// The bits of [`Message::flags`].
pub mod flags {
    /// An assistant message that calls tools.
    pub const TOOL_CALLS: u32 = 1;
    /// The content is a list of parts.
    pub const MULTIMODAL: u32 = 2;
    /// An engine made it: the key `_compressed_summary` is `true`.
    pub const SUMMARY: u32 = 4;
    /// The identity names folded messages.
    pub const ABSORBED: u32 = 8;
    /// The host made it, these are not a person's words: the key `_synthetic` is `true`.
    pub const SYNTHETIC: u32 = 16;
}

/// One message: immutable, and cheap to clone.
#[derive(Clone)]
pub struct Message(Arc<Inner>);

struct Inner {
    facts: Arc<Facts>,
    identity: Identity,
}

impl Message {
    /// Reads a message. Identity keys in the text are lifted out into [`Self::identity`].
    ///
    /// # Errors
    /// When the text is no JSON object; the error knows the byte.
    pub fn parse(json: &str) -> Result<Self, MessageError> {
        let (facts, identity) = Facts::read(json)?;
        Ok(Self::of(facts, identity))
    }

    /// Reads a message from bytes. Each maximal invalid piece of UTF-8 becomes one U+FFFD.
    ///
    /// # Errors
    /// When the text is no JSON object; the error knows the byte.
    pub fn parse_bytes(json: &[u8]) -> Result<Self, MessageError> {
        match String::from_utf8_lossy(json) {
            Cow::Borrowed(text) => Self::parse(text),
            Cow::Owned(text) => {
                let (mut facts, identity) = Facts::read(&text)?;
                facts.original = Some(json.into());
                Ok(Self::of(facts, identity))
            }
        }
    }

    /// Reads a message whose identity is kept elsewhere (in columns of a row, say). Identity keys in
    /// the text are lifted out and give way.
    ///
    /// # Errors
    /// When the text is no JSON object; the error knows the byte.
    pub fn with_identity(json: &str, identity: Identity) -> Result<Self, MessageError> {
        Ok(Self::of(Facts::read(json)?.0, identity))
    }

    fn of(facts: Facts, identity: Identity) -> Self {
        Self(Arc::new(Inner {
            facts: Arc::new(facts),
            identity,
        }))
    }

    /// The bytes that came in, where mending at the border made [`Self::stored`] say something else.
    #[must_use]
    pub fn original(&self) -> Option<&[u8]> {
        self.0.facts.original.as_deref()
    }

    /// The message as it is kept: strict JSON, the identity keys lifted out, unknown keys, key order
    /// and number spelling as they came.
    #[must_use]
    pub fn stored(&self) -> &Arc<str> {
        &self.0.facts.stored
    }

    /// The message as a provider sees it: [`Self::stored`] without the keys that are not part of the
    /// chat format. The same `Arc` when nothing had to go.
    #[must_use]
    pub fn wire(&self) -> &Arc<str> {
        self.0.facts.wire()
    }

    /// [`Self::wire`] under another policy.
    #[must_use]
    pub fn wire_with(&self, policy: WirePolicy) -> Arc<str> {
        if policy == WirePolicy::Plain {
            return Arc::clone(self.wire());
        }
        wire_text(self.stored(), policy)
    }

    /// Which message this is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// The same text under another identity; both share their texts.
    #[must_use]
    pub fn replaced_identity(&self, identity: Identity) -> Self {
        Self(Arc::new(Inner {
            facts: Arc::clone(&self.0.facts),
            identity,
        }))
    }

    /// A new text under the same identity (`UID-4`). Identity keys in the text give way.
    ///
    /// # Errors
    /// When the text is no JSON object; the error knows the byte.
    pub fn rewritten(&self, json: &str) -> Result<Self, MessageError> {
        Self::with_identity(json, self.identity().clone())
    }

    /// The message with its identity keys at the end: the form for files.
    #[must_use]
    pub fn to_json_with_identity(&self) -> String {
        json::append(self.stored(), &self.identity().members())
    }

    /// Who speaks.
    #[must_use]
    pub fn role(&self) -> Role {
        self.0.facts.role
    }

    /// The estimate of [`estimate::tokens_of_message`], made once.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        *self
            .0
            .facts
            .tokens
            .get_or_init(|| estimate::tokens_of_message(self))
    }

    /// XXH3-64 (seed 0) of [`Self::stored`]: the same text has the same version everywhere.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.facts.version
    }

    /// Bits of [`mod@flags`].
    #[must_use]
    pub fn flags(&self) -> u32 {
        let absorbed = if self.identity().absorbed.is_empty() {
            0
        } else {
            flags::ABSORBED
        };
        self.0.facts.flags | absorbed
    }

    /// Whether all bits of `flag` are set.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags() & flag == flag
    }

    /// The tool calls.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.0.facts.calls
    }

    /// Of a tool result, the id of the call it answers.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&str> {
        self.0.facts.call_id.as_deref()
    }

    /// What it says.
    #[must_use]
    pub fn content(&self) -> Content<'_> {
        self.0
            .facts
            .raw_content()
            .map_or(Content::Missing, Content::read)
    }

    /// The value of `content` as it is written.
    #[must_use]
    pub fn raw_content(&self) -> Option<&str> {
        self.0.facts.raw_content()
    }

    /// Its words: the text, or the text parts joined by line breaks.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        self.content().text()
    }

    /// Whether there is no visible content: none, `null`, `""`, blanks, `[]`, empty text parts.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        // Most messages show it with their first letter, and need not be unescaped to be asked.
        match self.raw_content().map(str::as_bytes) {
            Some([b'"', first, ..]) if first.is_ascii_alphanumeric() => false,
            _ => self.content().is_blank(),
        }
    }

    /// Whether content is a number, a literal or an object, which no provider takes.
    pub(crate) fn has_odd_content(&self) -> bool {
        self.raw_content()
            .is_some_and(|raw| !raw.starts_with(['"', '[', 'n']))
    }

    /// Whether there is a key `role`.
    pub(crate) fn has_role(&self) -> bool {
        self.0.facts.has_role
    }

    /// Whether a provider would get nothing from it: blank, and no call, refusal or audio either.
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        self.is_blank() && !self.has(flags::TOOL_CALLS) && !self.0.facts.speaks_otherwise
    }

    /// Whether there is a list of tool calls with nothing in it, which providers refuse.
    #[must_use]
    pub fn has_empty_calls(&self) -> bool {
        self.0.facts.empty_calls
    }

    /// The JSON text of the value under a key; of several, the last.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        let members = json::members(self.stored()).ok()?;
        let member = members.iter().rev().find(|m| m.key == key)?;
        Some(&self.stored()[member.start..member.end])
    }

    /// Whether both are one object: nothing was copied, parsed or written again in between.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || (self.stored() == other.stored() && self.identity() == other.identity())
    }
}

impl Eq for Message {}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json_with_identity())
    }
}
