//! How an engine says which messages there are to be.

use std::ops::Range;

use hermes_engine_abi as abi;
use hermes_message::{Identity, Message};

use crate::args::MessageView;
use crate::error::EngineError;
use crate::export::call::Sinks;

/// Which list a kept message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `compress`: the transcript. `select_context`: the request.
    Main,
    /// `select_context` only: the transcript behind the request.
    Conversation,
}

/// Takes the new list, in order.
///
/// A kept message stays the host's own object: nothing of it is copied, parsed or written anew, and its identity stays
/// with it. Once one of these functions has failed, the host refuses the whole result, so pass the error on with `?`.
pub struct Emit<'a> {
    sinks: Sinks<'a>,
    emitted: usize,
}

impl<'a> Emit<'a> {
    pub(crate) fn new(sinks: Sinks<'a>) -> Self {
        Self { sinks, emitted: 0 }
    }

    /// Keeps a range of the main list. In `compress`, indexes must rise over all keeps of the call; in
    /// `select_context` no message may be kept twice. An empty range keeps nothing.
    ///
    /// # Errors
    /// A range outside the list, out of order or twice; or the call was cancelled.
    pub fn keep(&mut self, range: Range<usize>) -> Result<(), EngineError> {
        self.keep_from(List::Main, range)
    }

    /// Keeps one message of the main list.
    ///
    /// # Errors
    /// As for [`keep`](Self::keep).
    pub fn keep_one(&mut self, index: usize) -> Result<(), EngineError> {
        self.keep_from(List::Main, index..index + 1)
    }

    /// Keeps a range of either list.
    ///
    /// # Errors
    /// As for [`keep`](Self::keep).
    pub fn keep_from(&mut self, list: List, range: Range<usize>) -> Result<(), EngineError> {
        if range.is_empty() {
            return Ok(());
        }
        let number = match list {
            List::Main => abi::LIST_MESSAGES,
            List::Conversation => abi::LIST_CONVERSATION,
        };
        self.sinks.keep(number, range.start, range.len())?;
        self.emitted += range.len();
        Ok(())
    }

    /// Adds a message as JSON. It may carry identity keys, which the host lifts out; without a `message_uid` it is a new
    /// message.
    ///
    /// # Errors
    /// It is not a JSON object, too large, or the call was cancelled.
    pub fn push(&mut self, json: &str) -> Result<(), EngineError> {
        self.sinks.push(json)?;
        self.emitted += 1;
        Ok(())
    }

    /// Adds a message with the identity that it has.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_message(&mut self, message: &Message) -> Result<(), EngineError> {
        self.push(&message.to_json_with_identity())
    }

    /// Adds a reworded version of `original`: new text, the same message. All identity keys go with it.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn edit(&mut self, original: &MessageView<'_>, json: &str) -> Result<(), EngineError> {
        let identity = match original.identity_json() {
            "" => return self.push(json),
            keys => Identity::from_json(keys).map_err(EngineError::invalid)?,
        };
        self.push_message(&Message::with_identity(json, identity)?)
    }

    /// How many messages have been emitted so far.
    pub fn emitted(&self) -> usize {
        self.emitted
    }
}

impl std::fmt::Debug for Emit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emit")
            .field("emitted", &self.emitted)
            .finish_non_exhaustive()
    }
}
