//! How many tokens a request has: by the host's estimate, or by a real vocabulary.

use std::collections::HashMap;
use std::sync::Arc;

use hermes_message::{Content, Message, PartKind, estimate};

/// `--tokens estimate|o200k`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Tokens {
    /// The one-pass estimate that every host decision uses.
    #[default]
    Estimate,
    /// The o200k vocabulary, read on first use.
    O200k,
}

impl Tokens {
    /// The word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tokens::Estimate => "estimate",
            Tokens::O200k => "o200k",
        }
    }
}

/// What each message costs beside its texts: role and separators.
const PER_MESSAGE: u64 = 4;
/// What each tool call costs beside its name and arguments.
const PER_CALL: u64 = 8;

/// Counts requests; each message once.
#[derive(Debug, Default)]
pub struct Counter {
    tokens: Tokens,
    /// By the address of the wire text; the text is held, so that its address stays its own.
    known: HashMap<*const u8, (Arc<str>, u64)>,
}

impl Counter {
    /// A counter of this kind.
    #[must_use]
    pub fn new(tokens: Tokens) -> Self {
        Counter {
            tokens,
            known: HashMap::new(),
        }
    }

    /// Tokens of some messages.
    pub fn messages(&mut self, messages: &[Message]) -> u64 {
        match self.tokens {
            Tokens::Estimate => messages
                .iter()
                .map(|message| u64::from(message.tokens()))
                .sum(),
            Tokens::O200k => messages
                .iter()
                .map(|message| self.known_message(message))
                .sum(),
        }
    }

    /// Tokens of the tool schemas of a request.
    #[must_use]
    pub fn tools(&self, tools: &[Arc<str>]) -> u64 {
        tools
            .iter()
            .map(|tool| match self.tokens {
                Tokens::Estimate => u64::from(estimate::tokens_of_json(tool)),
                Tokens::O200k => o200k(tool),
            })
            .sum()
    }

    fn known_message(&mut self, message: &Message) -> u64 {
        let text = message.wire();
        let known = self.known.entry(text.as_ptr());
        known
            .or_insert_with(|| (Arc::clone(text), count(message)))
            .1
    }
}

fn o200k(text: &str) -> u64 {
    u64::try_from(bpe_openai::o200k_base().count(text)).unwrap_or(u64::MAX)
}

/// The estimate's price of a picture, a sound or a file.
fn priced(part: &str) -> u64 {
    let alone = Message::parse(&format!(r#"{{"role":"user","content":[{part}]}}"#));
    alone.map_or(0, |message| {
        u64::from(message.tokens()).saturating_sub(PER_MESSAGE)
    })
}

fn count(message: &Message) -> u64 {
    let words = match message.content() {
        // No vocabulary knows pictures and sounds: they keep their estimated price.
        Content::Parts(parts) => parts
            .iter()
            .map(|part| match part.kind {
                PartKind::Text | PartKind::Refusal => part.text.as_deref().map_or(0, o200k),
                _ => priced(part.raw),
            })
            .sum(),
        content => o200k(&content.text()),
    };
    let calls: u64 = message
        .tool_calls()
        .iter()
        .map(|call| PER_CALL + o200k(&call.name) + o200k(&call.arguments()))
        .sum();
    PER_MESSAGE + words + calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_vocabulary_counts_words_and_calls_but_no_keys() {
        let message = Message::parse(
            r#"{"role":"assistant","content":"hello world","tool_calls":[{"id":"c","type":"function","function":{"name":"read","arguments":"{}"}}],"message_uid":"0123456789abcdef"}"#,
        )
        .expect("a message");
        let mut counter = Counter::new(Tokens::O200k);
        let once = counter.messages(std::slice::from_ref(&message));
        assert_eq!(once, 4 + 2 + 8 + 1 + 1);
        assert_eq!(
            counter.messages(&[message.clone(), message.clone()]),
            2 * once
        );
        assert_eq!(
            Counter::new(Tokens::Estimate).messages(std::slice::from_ref(&message)),
            u64::from(message.tokens())
        );
    }
}
