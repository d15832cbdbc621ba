//! The record of one slot call in the test kit: lists in, messages and text out.

use std::sync::Mutex;

use hermes_engine_abi as abi;
use hermes_message::{Message, Role, sequence};

use super::Failure;
use crate::export::read;

/// What a call emitted.
#[derive(Clone, Debug, Default)]
pub struct Emitted {
    /// The raw status.
    pub status: abi::Status,
    /// The text result: the reason of an unchanged list, or the JSON of a tool.
    pub text: String,
    /// The messages, in order. Kept ones are the very values that were passed in.
    pub messages: Vec<Message>,
    /// For each message where it came from: list and index, or `None` for a pushed one.
    pub sources: Vec<Option<(u32, usize)>>,
}

impl Emitted {
    /// The list stays as it is.
    pub fn is_unchanged(&self) -> bool {
        self.status == abi::UNCHANGED
    }

    /// How many messages were kept.
    pub fn kept(&self) -> usize {
        self.sources.iter().flatten().count()
    }

    /// How many messages were pushed.
    pub fn pushed(&self) -> usize {
        self.sources.len() - self.kept()
    }
}

/// The two lists of a call as descriptors, and the values behind them.
pub(super) struct Lists<'a> {
    messages: [&'a [Message]; 2],
    descriptors: [Vec<abi::Message>; 2],
    /// Identity texts that the descriptors point into.
    _identities: Vec<String>,
}

impl<'a> Lists<'a> {
    pub(super) const NONE: Self = Self {
        messages: [&[], &[]],
        descriptors: [Vec::new(), Vec::new()],
        _identities: Vec::new(),
    };

    pub(super) fn of(main: &'a [Message], conversation: &'a [Message]) -> Self {
        let mut identities = Vec::new();
        let mut describe = |list: &'a [Message]| {
            let callers = sequence::callers(list);
            list.iter()
                .zip(callers)
                .map(|(message, caller)| {
                    let identity = message.identity().to_json();
                    // The text of a `String` stays where it is when the `String` moves into the vector.
                    let descriptor = describe(message, &identity, caller);
                    identities.push(identity);
                    descriptor
                })
                .collect::<Vec<_>>()
        };
        let descriptors = [describe(main), describe(conversation)];
        Self {
            messages: [main, conversation],
            descriptors,
            _identities: identities,
        }
    }

    pub(super) fn main(&self) -> abi::Messages {
        list(&self.descriptors[0])
    }

    pub(super) fn conversation(&self) -> abi::Messages {
        list(&self.descriptors[1])
    }
}

fn list(items: &[abi::Message]) -> abi::Messages {
    abi::Messages {
        items: items.as_ptr(),
        count: items.len(),
        stride: size_of::<abi::Message>(),
    }
}

fn describe(message: &Message, identity: &str, caller: Option<usize>) -> abi::Message {
    abi::Message {
        json: read::bytes(message.stored()),
        identity: read::bytes(identity),
        uid: message
            .identity()
            .uid
            .as_deref()
            .map_or(abi::Bytes::EMPTY, read::bytes),
        version: message.version(),
        role: match message.role() {
            Role::System => abi::ROLE_SYSTEM,
            Role::User => abi::ROLE_USER,
            Role::Assistant => abi::ROLE_ASSISTANT,
            Role::Tool => abi::ROLE_TOOL,
            _ => abi::ROLE_OTHER,
        },
        flags: message.flags(),
        tokens: message.tokens(),
        caller: caller
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(abi::NONE),
    }
}

/// One call. Its first field is the border's struct, so that a callback finds the rest behind it.
#[repr(C)]
pub(super) struct Record<'a> {
    call: abi::Call,
    lists: Lists<'a>,
    output: Mutex<Output>,
}

#[derive(Default)]
struct Output {
    error: String,
    emitted: Emitted,
    broken: Option<String>,
    /// Which messages of which list are kept already.
    kept: std::collections::HashSet<(u32, usize)>,
}

impl<'a> Record<'a> {
    pub(super) fn new(session_id: &'a str, lists: Lists<'a>) -> Box<Self> {
        let call = abi::Call {
            call_id: 1,
            session_id: read::bytes(session_id),
            cancelled: Some(cancelled),
            progress: Some(progress),
            error: Some(error),
            write: Some(write),
            keep: Some(keep),
            push: Some(push),
            ..abi::Call::EMPTY
        };
        Box::new(Self {
            call,
            lists,
            output: Mutex::default(),
        })
    }

    pub(super) fn as_raw(&self) -> *const abi::Call {
        std::ptr::from_ref(self).cast()
    }

    /// For slots that only succeed with OK.
    pub(super) fn expect_ok(&self, slot: &'static str, status: abi::Status) -> Result<(), Failure> {
        if status == abi::OK {
            return Ok(());
        }
        Err(Failure {
            slot,
            status,
            text: self.error_text(),
        })
    }

    /// The outcome: any broken rule makes the whole result a failure.
    pub(super) fn finish(
        &self,
        slot: &'static str,
        status: abi::Status,
    ) -> Result<Emitted, Failure> {
        let mut output = self.lock();
        if let Some(broken) = output.broken.take() {
            return Err(Failure {
                slot,
                status: abi::ERR_INVALID,
                text: broken,
            });
        }
        if status < 0 {
            return Err(Failure {
                slot,
                status,
                text: output.error.clone(),
            });
        }
        let mut emitted = std::mem::take(&mut output.emitted);
        emitted.status = status;
        // Why nothing changed comes the way of errors, though it is none.
        if status == abi::UNCHANGED {
            emitted.text.clone_from(&output.error);
        }
        Ok(emitted)
    }

    fn error_text(&self) -> String {
        self.lock().error.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Output> {
        self.output
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep(&self, list: u32, first: usize, count: usize) -> Result<(), String> {
        let messages = self
            .lists
            .messages
            .get(list as usize)
            .ok_or_else(|| format!("there is no list {list}"))?;
        let range = first
            .checked_add(count)
            .and_then(|end| messages.get(first..end));
        let range = range.ok_or_else(|| {
            format!(
                "{count} messages from {first} of a list of {}",
                messages.len()
            )
        })?;
        let mut output = self.lock();
        for (offset, message) in range.iter().enumerate() {
            if !output.kept.insert((list, first + offset)) {
                return Err(format!(
                    "message {} of list {list} is kept twice",
                    first + offset
                ));
            }
            output.emitted.messages.push(message.clone());
            output.emitted.sources.push(Some((list, first + offset)));
        }
        Ok(())
    }

    fn push(&self, json: &str) -> Result<(), String> {
        let message = Message::parse(json).map_err(|error| format!("a pushed message: {error}"))?;
        let mut output = self.lock();
        output.emitted.messages.push(message);
        output.emitted.sources.push(None);
        Ok(())
    }

    /// Remembers the first broken rule.
    fn note(&self, result: Result<(), String>) -> abi::Status {
        match result {
            Ok(()) => abi::OK,
            Err(broken) => {
                self.lock().broken.get_or_insert(broken);
                abi::ERR_INVALID
            }
        }
    }
}

/// # Safety
/// `call` came from [`Record::as_raw`], and the record is alive.
unsafe fn record<'a>(call: *const abi::Call) -> &'a Record<'a> {
    // SAFETY: the border's struct is the first field, and the pointer was made from the whole record.
    unsafe { &*call.cast::<Record<'a>>() }
}

unsafe extern "C" fn cancelled(_: *const abi::Call) -> u32 {
    0
}

unsafe extern "C" fn progress(_: *const abi::Call, _: u64, _: u64) {}

unsafe extern "C" fn error(call: *const abi::Call, text: abi::Bytes) -> abi::Status {
    // SAFETY: the engine passes its own call back, and text that is readable until this returns.
    let (record, text) = unsafe { (record(call), read::text(text)) };
    record.lock().error.push_str(text);
    abi::OK
}

unsafe extern "C" fn write(call: *const abi::Call, part: abi::Bytes) -> abi::Status {
    // SAFETY: as in `error`.
    let (record, text) = unsafe { (record(call), read::text(part)) };
    record.lock().emitted.text.push_str(text);
    abi::OK
}

unsafe extern "C" fn keep(
    call: *const abi::Call,
    list: u32,
    first: usize,
    count: usize,
) -> abi::Status {
    // SAFETY: as in `error`.
    let record = unsafe { record(call) };
    record.note(record.keep(list, first, count))
}

unsafe extern "C" fn push(call: *const abi::Call, json: abi::Bytes) -> abi::Status {
    // SAFETY: as in `error`.
    let (record, json) = unsafe { (record(call), read::text(json)) };
    record.note(record.push(json))
}
