//! Conversation files: what they may look like, and how they are written back.
//!
//! A file is read into messages and the bytes between them. Writing puts other messages between the
//! same bytes, so that a message nobody touched, and everything that is no message, keeps its form.

mod error;
mod read;
mod write;

use std::ops::Range;

use crate::message::Message;

pub use error::FormatError;
pub use read::read;
pub use write::write_conversation;

/// How a file holds its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// `[message, …]`
    Array,
    /// `{"messages": [message, …], …}`; other keys are kept.
    Object,
    /// A message on each line.
    Lines,
    /// A `{"messages": [message, …], …}` on each line; other keys are kept.
    Dialogues,
}

/// One conversation of a file.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Its messages.
    pub messages: Vec<Message>,
    /// The JSON text under the key `tools`, if the conversation brings its tools along.
    pub tools: Option<String>,
    /// Where each message stands in the file.
    places: Vec<Range<usize>>,
    /// Where a first message would stand; only of use when there is none.
    empty_at: usize,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct File {
    /// How it holds its messages.
    pub container: Container,
    /// Its conversations: one, except for [`Container::Dialogues`].
    pub conversations: Vec<Conversation>,
    source: Vec<u8>,
}
