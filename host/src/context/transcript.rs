//! The messages of one conversation, and the two lists an engine sees of them.

use hermes_message::{Message, Role, flags};

use crate::engine::MessageList;

/// The live transcript. A clone is a snapshot: it shares every text and sees nothing of what comes later.
///
/// Appending costs what the new message costs. Both lists that engines read, the token total and the newest user
/// message are kept as the transcript grows and never counted again.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    stored: MessageList,
    wire: MessageList,
    /// What stands before the messages in a request.
    system: Option<Message>,
    tokens: u64,
    incoming: Option<usize>,
    epoch: u64,
}

impl Transcript {
    /// A transcript that begins with these messages.
    #[must_use]
    pub fn new(messages: &[Message]) -> Self {
        let mut transcript = Transcript::default();
        transcript.replace(messages);
        transcript
    }

    /// Appends one message.
    pub fn push(&mut self, message: Message) {
        if is_persons(&message) {
            self.incoming = Some(self.len());
        }
        self.tokens += u64::from(message.tokens());
        if self.is_empty() && message.role() == Role::System && self.system.is_some() {
            self.replace(&[message]);
            return;
        }
        self.stored.push(message.clone());
        self.wire.push(message);
    }

    /// Puts a system message before the messages of a request, unless they begin with one.
    pub fn set_system(&mut self, system: Option<Message>) {
        self.system = system;
        self.wire = self.request_list(self.messages());
    }

    fn before<'a>(&'a self, messages: &[Message]) -> Option<&'a Message> {
        let own = messages
            .first()
            .is_some_and(|first| first.role() == Role::System);
        self.system.as_ref().filter(|_| !own)
    }

    fn request_list(&self, messages: &[Message]) -> MessageList {
        match self.before(messages) {
            None => MessageList::wire(messages),
            Some(system) => {
                let all: Vec<Message> = std::iter::once(system).chain(messages).cloned().collect();
                MessageList::wire(&all)
            }
        }
    }

    /// Another list takes the place of all messages: a commit, a rewind.
    pub fn replace(&mut self, messages: &[Message]) {
        self.stored = MessageList::stored(messages);
        self.wire = self.request_list(messages);
        self.tokens = tokens(messages);
        self.incoming = newest_user(messages);
        self.epoch += 1;
    }

    /// The result of a pass takes the place of the first `taken` messages, those its snapshot had. What was
    /// appended while the pass ran follows it.
    pub fn commit(&mut self, taken: usize, result: &[Message]) {
        let later = self.messages().get(taken..).unwrap_or_default();
        let all: Vec<Message> = result.iter().chain(later).cloned().collect();
        self.replace(&all);
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.stored.messages()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stored.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// The list as it is kept: what every slot but `select_context`'s `request` shows.
    #[must_use]
    pub fn stored(&self) -> &MessageList {
        &self.stored
    }

    /// The list as a provider would get it: the `request` of `select_context`.
    #[must_use]
    pub fn wire(&self) -> &MessageList {
        &self.wire
    }

    /// The estimate of a request that carries everything, tools aside.
    #[must_use]
    pub fn request_tokens(&self) -> u64 {
        let system = self.before(self.messages());
        self.tokens + system.map_or(0, |system| u64::from(system.tokens()))
    }

    /// The newest user message that a person wrote, as an index into [`Transcript::wire`].
    #[must_use]
    pub fn incoming_in_request(&self) -> Option<usize> {
        let shift = self.wire.len() - self.stored.len();
        self.incoming.map(|at| at + shift)
    }

    /// The estimate of all messages together, identity not counted.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The newest user message that a person wrote.
    #[must_use]
    pub fn incoming(&self) -> Option<usize> {
        self.incoming
    }

    /// Changes whenever messages were replaced rather than appended.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// The estimate of some messages together.
#[must_use]
pub fn tokens(messages: &[Message]) -> u64 {
    messages
        .iter()
        .map(|message| u64::from(message.tokens()))
        .sum()
}

/// The index of the newest user message that a person wrote; neither a summary nor a text of the host's.
#[must_use]
pub fn newest_user(messages: &[Message]) -> Option<usize> {
    messages.iter().rposition(is_persons)
}

fn is_persons(message: &Message) -> bool {
    message.role() == Role::User && message.flags() & (flags::SUMMARY | flags::SYNTHETIC) == 0
}
