//! A snapshot of messages, ready to be shown to an engine.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use hermes_engine_abi as abi;
use hermes_message::{Message, Role, sequence};
use xxhash_rust::xxh3::xxh3_64;

use super::equal;

/// An immutable list of messages and the descriptors an engine sees of them.
///
/// A clone is a snapshot: both share everything, and neither sees what is appended to the other.
/// Appending to a list that nobody else holds costs what the new message costs; otherwise the list of
/// pointers is copied first, never a text.
#[derive(Clone, Default)]
pub struct MessageList {
    inner: Arc<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    view: View,
    messages: Vec<Message>,
    /// What the engine reads. Every pointer in it leads into an `Arc<str>` of `messages` or `identities`
    /// at the same index, which lives and stays where it is for as long as this list.
    descriptors: Vec<abi::Message>,
    identities: Vec<Option<Arc<str>>>,
    /// Where the newest run of tool results begins: the message before them.
    group_start: usize,
    /// How many calls of each id the newest group has open, if it is a large one whose results have named their calls
    /// exactly so far.
    open_calls: Option<HashMap<Box<str>, usize>>,
    lookup: OnceLock<Lookup>,
}

/// Finds messages by what they say (HOOK-9). Made when an engine first pushes a message.
#[derive(Clone, Default)]
struct Lookup {
    by_value: HashMap<u64, Vec<usize>>,
}

/// Groups up to this size are read again for each result; that is quicker than keeping books.
const FEW_CALLS: usize = 16;

/// Which of a message's two texts the engine sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum View {
    #[default]
    Stored,
    Wire,
}

impl MessageList {
    /// A list that shows what was stored: unknown keys included.
    #[must_use]
    pub fn stored(messages: &[Message]) -> Self {
        Self::with(View::Stored, messages)
    }

    /// A list that shows what a provider would get.
    #[must_use]
    pub fn wire(messages: &[Message]) -> Self {
        Self::with(View::Wire, messages)
    }

    fn with(view: View, messages: &[Message]) -> Self {
        let mut inner = Inner {
            view,
            messages: Vec::with_capacity(messages.len()),
            descriptors: Vec::with_capacity(messages.len()),
            identities: Vec::with_capacity(messages.len()),
            ..Inner::default()
        };
        for (message, caller) in messages.iter().zip(sequence::callers(messages)) {
            inner.add(message.clone(), caller);
        }
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Appends one message.
    pub fn push(&mut self, message: Message) {
        let inner = Arc::make_mut(&mut self.inner);
        let caller = inner.caller_of(&message);
        inner.add(message, caller);
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.inner.messages
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.messages.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.messages.is_empty()
    }

    /// The text of one message as the engine sees it.
    #[must_use]
    pub fn text(&self, index: usize) -> Option<&Arc<str>> {
        let message = self.inner.messages.get(index)?;
        Some(self.inner.text(message))
    }

    /// Whether both are the same snapshot.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The list as it crosses the border. Valid for as long as this snapshot is held.
    pub(crate) fn raw(&self) -> abi::Messages {
        abi::Messages {
            items: self.inner.descriptors.as_ptr(),
            count: self.inner.descriptors.len(),
            stride: size_of::<abi::Message>(),
        }
    }

    /// The indexes of the messages that say the same as `text`, as JSON values, in order.
    pub(crate) fn equal_to(&self, text: &str) -> Vec<usize> {
        let lookup = self.inner.lookup.get_or_init(|| self.inner.index());
        let Some(hash) = equal::hash(text) else {
            return Vec::new();
        };
        let candidates = lookup.by_value.get(&hash).map_or(&[][..], Vec::as_slice);
        candidates
            .iter()
            .copied()
            .filter(|&at| equal::same(self.inner.text(&self.inner.messages[at]), text))
            .collect()
    }
}

impl Inner {
    fn text<'a>(&self, message: &'a Message) -> &'a Arc<str> {
        match self.view {
            View::Stored => message.stored(),
            View::Wire => message.wire(),
        }
    }

    /// The assistant message that a new result answers: within its group only, so the group is all that
    /// has to be read.
    fn caller_of(&self, message: &Message) -> Option<usize> {
        if message.role() != Role::Tool {
            return None;
        }
        // Of a thousand calls in one answer, each result would otherwise mean to read all of them again.
        if self.is_open(message) {
            return Some(self.group_start);
        }
        let mut group = self.messages.get(self.group_start..)?.to_vec();
        group.push(message.clone());
        let caller = sequence::callers(&group).last().copied().flatten()?;
        Some(self.group_start + caller)
    }

    fn is_open(&self, result: &Message) -> bool {
        let open = self.open_calls.as_ref().zip(result.tool_call_id());
        open.and_then(|(open, id)| open.get(id))
            .is_some_and(|count| *count > 0)
    }

    /// Keeps the books about the newest group.
    fn note_calls(&mut self, message: &Message) {
        if message.role() != Role::Tool {
            let calls = message.tool_calls();
            self.open_calls = (calls.len() > FEW_CALLS).then(|| {
                let mut open = HashMap::new();
                for call in calls {
                    *open.entry(call.id.clone()).or_default() += 1;
                }
                open
            });
        } else if !self.is_open(message) {
            self.open_calls = None;
        } else if let (Some(open), Some(id)) = (&mut self.open_calls, message.tool_call_id())
            && let Some(count) = open.get_mut(id)
        {
            *count -= 1;
        }
    }

    fn index(&self) -> Lookup {
        let mut lookup = Lookup::default();
        for (at, message) in self.messages.iter().enumerate() {
            if let Some(hash) = equal::hash(self.text(message)) {
                lookup.by_value.entry(hash).or_default().push(at);
            }
        }
        lookup
    }

    fn add(&mut self, message: Message, caller: Option<usize>) {
        let at = self.messages.len();
        if message.role() != Role::Tool {
            self.group_start = at;
        }
        self.note_calls(&message);
        let identity = message.identity();
        let identity_json: Option<Arc<str>> =
            (!identity.is_empty()).then(|| identity.to_json().into());
        let text = self.text(&message);
        let version = if Arc::ptr_eq(text, message.stored()) {
            message.version()
        } else {
            xxh3_64(text.as_bytes())
        };
        self.descriptors.push(abi::Message {
            json: bytes(text),
            identity: identity_json.as_deref().map_or(abi::Bytes::EMPTY, bytes),
            uid: identity.uid.as_deref().map_or(abi::Bytes::EMPTY, bytes),
            version,
            role: message.role().code(),
            flags: message.flags(),
            tokens: message.tokens(),
            caller: caller
                .and_then(|caller| u32::try_from(caller).ok())
                .unwrap_or(abi::NONE),
        });
        self.identities.push(identity_json);
        if let Some(lookup) = self.lookup.get_mut()
            && let Some(hash) = equal::hash(match self.view {
                View::Stored => message.stored(),
                View::Wire => message.wire(),
            })
        {
            lookup.by_value.entry(hash).or_default().push(at);
        }
        self.messages.push(message);
    }
}

impl std::fmt::Debug for MessageList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.messages()).finish()
    }
}

/// A borrowed text as it crosses the border; the caller keeps the text alive.
pub(crate) fn bytes(text: &str) -> abi::Bytes {
    if text.is_empty() {
        return abi::Bytes::EMPTY;
    }
    abi::Bytes {
        ptr: text.as_ptr(),
        len: text.len(),
    }
}
