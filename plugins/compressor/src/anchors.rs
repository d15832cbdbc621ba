//! What a summary carries word for word, whoever writes it: an index of things one may have to find again, and the user's
//! own messages. Both survive later passes, the newest first.

use std::borrow::Cow;
use std::collections::HashSet;

use hermes_message::Role;

use crate::Settings;
use crate::carrier::Earlier;
use crate::extract::words::{Shape, Word, words};
use crate::secrets;
use crate::settings::TailMode;
use crate::tokens;
use crate::turns::Turn;

/// Most tokens of the index (7,000 characters).
const MOST_ANCHORS: u64 = 1_750;
/// Most tokens of quotes (24,000 characters).
const MOST_QUOTES: u64 = 6_000;
/// Longest quote in bytes.
const LONGEST_QUOTE: usize = 4_000;
/// So many bytes of the newest messages are looked through for the index.
const LOOKED_THROUGH: usize = 200_000;
/// Messages shorter than this say nothing without their neighbours.
const SHORTEST_QUOTE: usize = 8;

/// The mechanical part of a summary.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Lines of the index.
    pub anchors: Vec<String>,
    /// Quoted messages, oldest first.
    pub quotes: Vec<String>,
    /// Tokens of both.
    pub cost: u64,
}

impl Extras {
    /// Collects from the summary before and what has been said since. `middle`: tokens of what is replaced; `all`: tokens
    /// that the whole list may have.
    #[must_use]
    pub fn gather(
        previous: &Earlier,
        turns: &[Turn<'_>],
        middle: u64,
        all: u64,
        settings: &Settings,
    ) -> Self {
        if settings.tail_mode == TailMode::Legacy {
            return Self::default();
        }
        let mut extras = Self::default();
        let mut spent = 0;
        let room = MOST_ANCHORS.min(all / 40).min(middle / 16);
        for anchor in newest_anchors(previous, turns) {
            let cost = tokens::of_text(&anchor) + 2;
            if spent + cost > room {
                break;
            }
            spent += cost;
            extras.anchors.push(anchor);
        }
        extras.anchors.reverse();
        extras.cost = spent;

        let room = MOST_QUOTES.min(all / 16).min(middle / 8);
        let mut spent = 0;
        let said = turns
            .iter()
            .rev()
            .filter(|turn| turn.role == Role::User)
            .map(|turn| quote(&turn.text));
        let mut seen = HashSet::new();
        for quote in said.chain(previous.quotes.iter().rev().cloned()) {
            let cost = tokens::of_text(&quote) + 2;
            if quote.len() < SHORTEST_QUOTE || spent + cost > room || !seen.insert(quote.clone()) {
                continue;
            }
            spent += cost;
            extras.quotes.push(quote);
        }
        extras.quotes.reverse();
        extras.cost += spent;
        extras
    }
}

fn quote(text: &str) -> String {
    let mut out = String::new();
    secrets::cut_into(&mut out, text.trim(), LONGEST_QUOTE);
    secrets::redacted(Cow::Owned(out)).into_owned()
}

/// All anchors, each once, the last mentioned first.
fn newest_anchors(previous: &Earlier, turns: &[Turn<'_>]) -> Vec<String> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut found = Vec::new();
    let mut add = |text: &str| {
        if !seen.contains(text) {
            seen.insert(text.to_owned());
            found.push(text.to_owned());
        }
    };
    let mut bytes = LOOKED_THROUGH;
    for turn in turns.iter().rev() {
        if bytes == 0 {
            break;
        }
        let text = if turn.role == Role::Tool {
            ""
        } else {
            &*turn.text
        };
        for part in turn
            .calls
            .iter()
            .map(|(_, arguments)| arguments.as_str())
            .chain([text])
        {
            bytes = bytes.saturating_sub(part.len());
            for word in words(&secrets::redact(part)).filter(is_anchor) {
                add(word.text);
            }
        }
    }
    for anchor in previous.anchors.iter().rev() {
        add(anchor);
    }
    found
}

/// Paths, addresses, numbers of issues, commits, error codes, handles.
fn is_anchor(word: &Word<'_>) -> bool {
    let text = word.text;
    if text.len() > 120 {
        return false;
    }
    match word.shape {
        Shape::Path | Shape::Address => true,
        Shape::Identifier => text.contains('@') && text.len() > 3,
        Shape::Number => {
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            let is_issue = text.starts_with('#') && digits + 1 == text.len();
            let is_commit = (7..=40).contains(&text.len())
                && digits > 1
                && digits < text.len()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            let is_code = digits >= 3
                && text.len() <= 12
                && text.starts_with(|c: char| c.is_ascii_uppercase())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase() || b == b'-');
            is_issue || is_commit || is_code
        }
        Shape::Name | Shape::Plain => false,
    }
}
