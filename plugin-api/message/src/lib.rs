//! One conversation message and one sequence of them, without I/O.
//!
//! A [`Message`] is immutable and cheap to clone. It has two texts: [`Message::stored`], what came
//! in with the four identity keys lifted out, and [`Message::wire`], the same without every key a
//! provider does not know. What belongs to a message but never to its text is its [`Identity`].
//!
//! 1. Bytes come in through [`mod@format`] (files) or [`Message::parse`] (single messages). Whatever is no
//!    strict JSON text is mended there once, so that nobody behind that border meets it.
//! 2. [`sequence`] reads a list of messages: which results answer which calls, where turns begin,
//!    and which rules of a valid request the list breaks.
//! 3. [`repair`] makes a valid request out of any list, and says what it did.
//! 4. [`estimate`], [`cut`], [`build`] and [`redact`] are the tools engines are made of.
//!
//! Nothing here is `unsafe`, reads a file or knows the host.

#![forbid(unsafe_code)]

mod border;
mod calls;
mod content;
mod error;
mod facts;
mod identity;
mod json;
mod message;
mod wire;

pub mod build;
pub mod cut;
pub mod estimate;
pub mod format;
pub mod redact;
pub mod repair;
pub mod sequence;

pub use border::{made_call_id, replace_lone_surrogates};
pub use calls::{ToolCall, call_key};
pub use content::{Content, Part, PartKind};
pub use error::MessageError;
pub use identity::{CallUid, CallUids, IDENTITY_FIELDS, Identity};
pub use message::{Message, Role, flags};
pub use wire::{PERSISTENCE_ONLY_MESSAGE_FIELDS, WirePolicy};
