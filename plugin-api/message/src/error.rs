//! What can be wrong with the text of one message.

use thiserror::Error;

/// The text is no message. None of these quotes the text itself: a bad byte in an error message
/// would travel into the next log, and from there into the next transcript.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// The writer of the text broke JSON's grammar.
    #[error("not JSON at byte {position}: {reason}; a message is one JSON object")]
    Json {
        /// Byte offset in the text that was given.
        position: usize,
        /// What the parser missed, without the text.
        reason: String,
    },
    /// The text is JSON, but a list, a string, a number or a literal.
    #[error(
        "expected a JSON object at byte {position}, found {found}; write a message as {{\"role\": …, \"content\": …}}"
    )]
    NotAnObject {
        /// Byte offset in the text that was given.
        position: usize,
        /// The kind of value that is there.
        found: &'static str,
    },
}

impl MessageError {
    /// Byte offset of the fault in the text that was given.
    #[must_use]
    pub fn position(&self) -> usize {
        match self {
            Self::Json { position, .. } | Self::NotAnObject { position, .. } => *position,
        }
    }
}
