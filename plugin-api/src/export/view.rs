//! A list of messages as the host shows it.

use std::marker::PhantomData;

use hermes_engine_abi as abi;
use hermes_message::{Identity, Message, MessageError, Role};

use crate::export::read;

/// A list of messages, borrowed for the length of the call. Copying it copies nothing of the messages.
///
/// Role, flags, size and identity of a message are there without opening its text, so an engine that only chooses
/// never parses anything.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    raw: abi::Messages,
    borrowed: PhantomData<&'a abi::Message>,
}

// SAFETY: the messages are read-only for everyone while the call lasts, so any thread may read them.
unsafe impl Send for Messages<'_> {}
// SAFETY: as above.
unsafe impl Sync for Messages<'_> {}

impl<'a> Messages<'a> {
    /// No messages.
    pub(crate) const EMPTY: Self = Self {
        raw: abi::Messages::EMPTY,
        borrowed: PhantomData,
    };

    /// # Safety
    /// `raw` is NULL or points to a list as the header describes it, readable for `'a`.
    pub(crate) unsafe fn from_raw(raw: *const abi::Messages) -> Option<Self> {
        if raw.is_null() {
            return None;
        }
        // SAFETY: not NULL, and readable by the caller's promise.
        let mut raw = unsafe { *raw };
        if raw.items.is_null() || raw.stride == 0 {
            raw.count = 0;
        }
        Some(Self {
            raw,
            borrowed: PhantomData,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.raw.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.raw.count == 0
    }

    /// The one at `index`.
    ///
    /// # Panics
    /// When `index` is not below [`len`](Self::len). The host sees an engine that has failed.
    pub fn get(&self, index: usize) -> MessageView<'a> {
        assert!(
            index < self.raw.count,
            "message {index} of a list of {}",
            self.raw.count
        );
        // SAFETY: inside the list, whose elements lie `stride` bytes apart. A host of a later minor has longer elements;
        // the part that this build knows comes first and never shrinks within the major version.
        let raw = unsafe { &*self.raw.items.byte_add(index * self.raw.stride) };
        MessageView { raw }
    }

    /// All of them, in order.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = MessageView<'a>> + ExactSizeIterator + use<'a> {
        let list = *self;
        (0..list.len()).map(move |index| list.get(index))
    }

    /// All of them as values with text, identity and facts. Parses each.
    ///
    /// # Errors
    /// When a message is not JSON, which a host never passes.
    pub fn parse(&self) -> Result<Vec<Message>, MessageError> {
        self.iter().map(|view| view.parse()).collect()
    }

    /// The sum of the host's estimates.
    pub fn tokens(&self) -> u64 {
        self.iter().map(|view| u64::from(view.tokens())).sum()
    }
}

/// One message of a list.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    raw: &'a abi::Message,
}

impl<'a> MessageView<'a> {
    /// The message as JSON, without the identity keys.
    pub fn json(&self) -> &'a str {
        // SAFETY: the host's bytes live as long as the list, `'a`.
        unsafe { read::text(self.raw.json) }
    }

    /// The identity keys that it has, as a JSON object; empty where it has none.
    pub fn identity_json(&self) -> &'a str {
        // SAFETY: as in `json`.
        unsafe { read::text(self.raw.identity) }
    }

    /// `message_uid`; `None` = no identity yet, which is no error.
    pub fn uid(&self) -> Option<&'a str> {
        // SAFETY: as in `json`.
        let uid = unsafe { read::text(self.raw.uid) };
        (!uid.is_empty()).then_some(uid)
    }

    /// XXH3-64 of [`json`](Self::json): with the uid it names one version of one message.
    pub fn version(&self) -> u64 {
        self.raw.version
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        match self.raw.role {
            abi::ROLE_SYSTEM => Role::System,
            abi::ROLE_USER => Role::User,
            abi::ROLE_ASSISTANT => Role::Assistant,
            abi::ROLE_TOOL => Role::Tool,
            _ => Role::Other,
        }
    }

    /// The raw bits, for those that have no method here.
    pub fn flags(&self) -> u32 {
        self.raw.flags
    }

    /// An assistant message that calls tools.
    pub fn has_tool_calls(&self) -> bool {
        self.raw.flags & abi::MSG_TOOL_CALLS != 0
    }

    /// Its content is a list of parts.
    pub fn is_multimodal(&self) -> bool {
        self.raw.flags & abi::MSG_MULTIMODAL != 0
    }

    /// An engine made it.
    pub fn is_summary(&self) -> bool {
        self.raw.flags & abi::MSG_SUMMARY != 0
    }

    /// The host made it; not a person's words.
    pub fn is_synthetic(&self) -> bool {
        self.raw.flags & abi::MSG_SYNTHETIC != 0
    }

    /// The host's estimate of its size in tokens, identity not counted.
    pub fn tokens(&self) -> u32 {
        self.raw.tokens
    }

    /// A tool result: index in the same list of the assistant message that it answers.
    pub fn caller(&self) -> Option<usize> {
        read::index(self.raw.caller)
    }

    /// The message as a value with text, identity and facts.
    ///
    /// # Errors
    /// When it is not JSON, which a host never passes.
    pub fn parse(&self) -> Result<Message, MessageError> {
        let identity = match self.identity_json() {
            "" => Identity::default(),
            json => Identity::from_json(json).unwrap_or_default(),
        };
        Message::with_identity(self.json(), identity)
    }
}
