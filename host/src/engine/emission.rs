//! What an engine emits: messages of the host's, and messages of its own.

use hermes_engine_abi as abi;
use hermes_message::Message;

use super::MessageList;

/// At most so many bytes of pushed messages in one call. A provider's window is far below.
const MAX_PUSHED_BYTES: usize = 64 << 20;
/// At most so many pushed messages in one call.
const MAX_PUSHED: usize = 100_000;

/// The result of `compress` or `select_context`, before the host's own checks.
#[derive(Clone, Debug, PartialEq)]
pub enum Emission {
    /// Leave the list as it is, with the engine's reason (may be empty).
    Unchanged {
        /// Why, in the engine's words.
        reason: String,
    },
    /// The new list, in order. It may be empty: whether that is right is for the checks to say.
    Messages(Vec<Emitted>),
}

/// One message of an emission.
#[derive(Clone, Debug, PartialEq)]
pub enum Emitted {
    /// A message of the host's own.
    Kept {
        /// 0 = the messages of `compress` or the request of `select_context`, 1 = the conversation.
        list: usize,
        /// Its index in that list.
        index: usize,
    },
    /// A message that the engine wrote.
    Pushed(Message),
}

impl Emitted {
    /// The message itself.
    #[must_use]
    pub fn message<'a>(&'a self, lists: &[&'a MessageList]) -> Option<&'a Message> {
        match self {
            Self::Kept { list, index } => lists.get(*list)?.messages().get(*index),
            Self::Pushed(message) => Some(message),
        }
    }
}

/// The uids that an emission names more than once, each once, in order.
#[must_use]
pub fn repeated_uids(items: &[Emitted], lists: &[&MessageList]) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut repeated = Vec::new();
    for item in items {
        let uid = item
            .message(lists)
            .and_then(|message| message.identity().uid.as_deref());
        if let Some(uid) = uid
            && !seen.insert(uid)
            && !repeated.iter().any(|known| known == uid)
        {
            repeated.push(uid.to_owned());
        }
    }
    repeated
}

/// How keeps must run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// `compress`: indexes strictly increase over all keeps.
    Increasing,
    /// `select_context`: any order, no message twice.
    Any,
}

/// Takes what an engine emits, and refuses everything as soon as one piece is wrong.
#[derive(Debug)]
pub(crate) struct Collector {
    lists: Vec<MessageList>,
    order: Order,
    items: Vec<Emitted>,
    /// Of each list, which messages were kept. Made on the first keep that needs it.
    kept: Vec<Vec<bool>>,
    next: usize,
    pushed: usize,
    pushed_bytes: usize,
    fault: Option<String>,
}

impl Collector {
    pub(crate) fn new(order: Order, lists: Vec<MessageList>) -> Self {
        Self {
            kept: vec![Vec::new(); lists.len()],
            lists,
            order,
            items: Vec::new(),
            next: 0,
            pushed: 0,
            pushed_bytes: 0,
            fault: None,
        }
    }

    /// The call's `keep`.
    pub(crate) fn keep(&mut self, list: u32, first: usize, count: usize) -> abi::Status {
        match self.try_keep(list, first, count) {
            Ok(()) => abi::OK,
            Err(why) => self.refuse(why),
        }
    }

    fn try_keep(&mut self, list: u32, first: usize, count: usize) -> Result<(), String> {
        self.check_sound()?;
        let at = usize::try_from(list).unwrap_or(usize::MAX);
        let Some(length) = self.lists.get(at).map(MessageList::len) else {
            return Err(format!(
                "keep of list {list}, which this call does not have"
            ));
        };
        let end = first.checked_add(count).filter(|&end| end <= length);
        let Some(end) = end else {
            return Err(format!(
                "keep of {count} messages from {first} on, but list {list} has {length}"
            ));
        };
        match self.order {
            Order::Increasing if first < self.next && count > 0 => {
                return Err(format!(
                    "keep of message {first} after message {}: indexes must increase",
                    self.next - 1
                ));
            }
            // Nothing kept is nothing said about the order.
            Order::Increasing if count == 0 => {}
            Order::Increasing => self.next = end,
            Order::Any => {
                let kept = &mut self.kept[at];
                kept.resize(length, false);
                if let Some(twice) = kept[first..end].iter().position(|&kept| kept) {
                    return Err(format!("keep of message {} twice", first + twice));
                }
                kept[first..end].fill(true);
            }
        }
        self.items
            .extend((first..end).map(|index| Emitted::Kept { list: at, index }));
        Ok(())
    }

    /// The call's `push`; `None` when the bytes could not be read at all.
    pub(crate) fn push(&mut self, json: Option<&[u8]>) -> abi::Status {
        match self.try_push(json) {
            Ok(()) => abi::OK,
            Err(why) => self.refuse(why),
        }
    }

    fn try_push(&mut self, json: Option<&[u8]>) -> Result<(), String> {
        self.check_sound()?;
        let json = json.ok_or("push of NULL with a length")?;
        self.pushed += 1;
        self.pushed_bytes = self.pushed_bytes.saturating_add(json.len());
        if self.pushed > MAX_PUSHED || self.pushed_bytes > MAX_PUSHED_BYTES {
            return Err(format!(
                "push of more than {MAX_PUSHED} messages or {} MiB in one call",
                MAX_PUSHED_BYTES >> 20
            ));
        }
        let text = std::str::from_utf8(json)
            .map_err(|error| format!("push of bytes that are not UTF-8: {error}"))?;
        let message = Message::parse(text).map_err(|error| format!("push: {error}"))?;
        self.items.push(Emitted::Pushed(message));
        Ok(())
    }

    /// Behind a wrong piece nothing is taken any more, and nothing is worth reading.
    fn check_sound(&self) -> Result<(), String> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    fn refuse(&mut self, why: String) -> abi::Status {
        // The first fault is the one that explains the rest.
        self.fault.get_or_insert(why);
        self.items = Vec::new();
        abi::ERR_INVALID
    }

    /// What was refused first, if something was.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// The whole result, or why there is none. Messages that are equal to one of the host's become it.
    pub(crate) fn finish(mut self) -> Result<Vec<Emitted>, String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.pushed > 0 {
            self.replace_equals();
        }
        Ok(self.items)
    }

    /// HOOK-9: a pushed message that is equal as a JSON value to one in the lists *is* that one.
    ///
    /// It must be one that is not in the result already, and in `compress` one that stands between its
    /// neighbours; a repetition gets the text of the host's message, so that its bytes are stable, and
    /// stays a message of its own.
    fn replace_equals(&mut self) {
        let mut used: Vec<Vec<bool>> = self.lists.iter().map(|l| vec![false; l.len()]).collect();
        for item in &self.items {
            if let Emitted::Kept { list, index } = item {
                used[*list][*index] = true;
            }
        }
        // For each item, the index of the next kept message of list 0 behind it.
        let mut bounds = vec![usize::MAX; self.items.len()];
        let mut bound = usize::MAX;
        for (at, item) in self.items.iter().enumerate().rev() {
            bounds[at] = bound;
            if let Emitted::Kept { list: 0, index } = item {
                bound = *index;
            }
        }
        let mut from = 0;
        for (item, until) in self.items.iter_mut().zip(bounds) {
            if let Emitted::Pushed(message) = item
                && let Some(found) = find(&self.lists, &used, self.order, message, from, until)
            {
                *item = match found {
                    Found::Free { list, index } => {
                        used[list][index] = true;
                        Emitted::Kept { list, index }
                    }
                    Found::Taken(message) => Emitted::Pushed(message),
                };
            }
            if let Emitted::Kept { list: 0, index } = item {
                from = *index + 1;
            }
        }
    }
}

enum Found {
    Free { list: usize, index: usize },
    Taken(Message),
}

fn find(
    lists: &[MessageList],
    used: &[Vec<bool>],
    order: Order,
    message: &Message,
    from: usize,
    until: usize,
) -> Option<Found> {
    let identity = message.identity();
    let mut taken = None;
    for (at, list) in lists.iter().enumerate() {
        // A uid that the engine names must be the message's own: another one makes it another message.
        let equal: Vec<usize> = list
            .equal_to(message.stored())
            .into_iter()
            .filter(|&index| {
                identity.is_empty() || list.messages()[index].identity().uid == identity.uid
            })
            .collect();
        let free = |&&index: &&usize| !used[at][index];
        let fits = |&&index: &&usize| index >= from && index < until;
        let between = equal.iter().filter(free).find(fits);
        let index = match order {
            Order::Increasing => between,
            Order::Any => between.or_else(|| equal.iter().find(free)),
        };
        if let Some(&index) = index {
            return Some(Found::Free { list: at, index });
        }
        taken = taken.or(equal.first().map(|&index| &list.messages()[index]));
    }
    // Same text as the host's, another occurrence: the bytes are the host's, the identity is its own.
    taken.map(|host| Found::Taken(host.replaced_identity(identity.clone())))
}

#[cfg(test)]
mod tests;
