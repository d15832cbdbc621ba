//! Chat messages from any other program: they get ids.

use hermes_message::{Message, format};
use rusqlite::Connection;
use xxhash_rust::xxh3::Xxh3;

use super::{Body, Candidate};
use crate::store::append::stamp_batch;
use crate::store::error::StoreError;
use crate::store::rows::{self, Stamper};
use crate::store::session::{self, NewSession};

/// The messages of one conversation.
pub(crate) struct Dialogue {
    pub(crate) messages: Vec<Message>,
}

/// Reads a file in any of the forms that conversations come in.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Candidate<'_>>, StoreError> {
    let file = format::read(bytes).map_err(|error| StoreError::Import {
        line: error.line,
        reason: format!("{} (expected {})", error.found, error.expected),
    })?;
    Ok(file
        .conversations
        .into_iter()
        .filter(|conversation| !conversation.messages.is_empty())
        .map(|conversation| {
            let dialogue = Dialogue {
                messages: conversation.messages,
            };
            Candidate {
                id: id_of(&dialogue),
                parent: None,
                body: Body::Foreign(dialogue),
            }
        })
        .collect())
}

/// The file has no id for the session; the same messages always get the same one, so that a second import
/// finds the first. (The messages' own ids are minted and derive from nothing.)
fn id_of(dialogue: &Dialogue) -> String {
    let mut hash = Xxh3::new();
    for message in &dialogue.messages {
        hash.update(message.stored().as_bytes());
        hash.update(b"\n");
    }
    format!("import_{:016x}", hash.digest())
}

/// Writes the conversation as a new session.
pub(crate) fn write(
    tx: &Connection,
    id: &str,
    dialogue: &Dialogue,
    now: f64,
) -> rusqlite::Result<usize> {
    session::insert(
        tx,
        id,
        &NewSession {
            source: "import",
            ..NewSession::default()
        },
        now,
    )?;
    let mut stamper = Stamper::new(now);
    let stamped = stamp_batch(tx, id, &dialogue.messages)?;
    rows::insert_all(tx, id, &stamped, &mut stamper)?;
    rows::recount(tx, id)?;
    Ok(dialogue.messages.len())
}
