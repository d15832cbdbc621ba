//! What an engine owes the provider's cache.

use hermes_message::Message;
use serde_json::Value;

use super::{Emitted, Failure, Instance};

impl Instance {
    /// Asks `select_context` several times for equal input. `Some` is a warning: the selections differ, so the provider
    /// reads the request anew from the first different message on, each time.
    ///
    /// An engine that learns in `turn_complete` may well choose differently after it; between two such calls nothing has
    /// happened that it could have learnt from.
    ///
    /// # Errors
    /// As [`Instance::select_context`].
    pub fn unsteady_selection(
        &mut self,
        request: &[Message],
        conversation: &[Message],
        budget: u64,
    ) -> Result<Option<String>, Failure> {
        const TIMES: usize = 3;
        let first = self.select_context(request, conversation, budget)?;
        for time in 1..TIMES {
            let again = self.select_context(request, conversation, budget)?;
            if let Some(at) = first_difference(&first, &again, request) {
                return Ok(Some(format!(
                    "select_context chose differently for equal input (call {} differs from the first one at message \
                     {at}): the provider's cache is lost from there on with every request. Choose by what is in the \
                     lists, not by time, chance or a count of calls",
                    time + 1
                )));
            }
        }
        Ok(None)
    }
}

/// Where two selections stop being the same for a provider. Unchanged is a selection of everything.
fn first_difference(first: &Emitted, again: &Emitted, request: &[Message]) -> Option<usize> {
    let (first, again) = (sent(first, request), sent(again, request));
    let common = first
        .iter()
        .zip(again)
        .take_while(|(a, b)| equal(a, b))
        .count();
    (common < first.len() || common < again.len()).then_some(common)
}

fn sent<'a>(emitted: &'a Emitted, request: &'a [Message]) -> &'a [Message] {
    if emitted.is_unchanged() {
        request
    } else {
        &emitted.messages
    }
}

/// The host sends objects that are equal as JSON values as the same bytes.
fn equal(a: &Message, b: &Message) -> bool {
    let value = |message: &Message| serde_json::from_str::<Value>(message.stored()).ok();
    a.stored() == b.stored() || value(a) == value(b)
}
