//! How much a sentence is worth keeping, and under which heading.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use hermes_message::Role;

use super::sections::Section;
use super::words::{Shape, key, plain_words, words};

/// A map whose keys are hashes already.
pub(crate) type Counts = HashMap<u64, u32, BuildHasherDefault<Ready>>;

#[derive(Default)]
pub(crate) struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        // The table takes its position from the high bits, too.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes
            .iter()
            .fold(self.0, |hash, byte| (hash << 8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// How often words occur, to tell the rare ones.
#[derive(Default)]
pub(crate) struct Frequency {
    counts: Counts,
}

impl Frequency {
    pub(crate) fn learn(&mut self, text: &str) {
        for (word, _) in plain_words(text) {
            *self.counts.entry(key(word)).or_default() += 1;
        }
    }

    /// How often a word occurs. Once or twice in the whole conversation is rare.
    fn count(&self, key: u64) -> u32 {
        self.counts.get(&key).copied().unwrap_or(0)
    }
}

const DECISIONS: [&str; 18] = [
    "decided",
    "decision",
    "decide to",
    "we'll use",
    "we will use",
    "let's use",
    "going with",
    "go with",
    "chose ",
    "chosen",
    "instead of",
    "agreed",
    "settled on",
    "opted",
    "rather than",
    "entschieden",
    "决定",
    "決定",
];
const CONSTRAINTS: [&str; 22] = [
    "must ",
    "must not",
    "never ",
    "always ",
    "don't ",
    "do not ",
    "prefer",
    "only use",
    "required",
    "requirement",
    "no more than",
    "at most",
    "at least",
    "make sure",
    "please keep",
    "deadline",
    "not allowed",
    "immer ",
    "niemals",
    "必须",
    "不要",
    "してください",
];
const ERRORS: [&str; 18] = [
    "error",
    "failed",
    "failure",
    "panic",
    "exception",
    "traceback",
    "cannot ",
    "not found",
    "timed out",
    "timeout",
    "segfault",
    "crash",
    "denied",
    "undefined",
    "broken",
    "fehler",
    "错误",
    "エラー",
];
const FIXES: [&str; 14] = [
    "fixed",
    "fix:",
    "fix was",
    "the fix",
    "solved",
    "resolved by",
    "solution",
    "workaround",
    "root cause",
    "caused by",
    "because of",
    "the cause",
    "behoben",
    "修复",
];
const BLOCKED: [&str; 6] = [
    "blocked",
    "waiting for",
    "waiting on",
    "can't proceed",
    "cannot proceed",
    "depends on",
];
const RESOLVED: [&str; 5] = [
    "answer is",
    "the answer",
    "confirmed",
    "turns out",
    "it is called",
];

/// A word that occurs more often is not rare.
const RARE: u32 = 2;

/// All signal words, looked for in one go.
static SIGNALS: LazyLock<(AhoCorasick, Vec<u8>)> = LazyLock::new(|| {
    let lists: [&[&str]; 6] = [
        &DECISIONS,
        &CONSTRAINTS,
        &ERRORS,
        &FIXES,
        &BLOCKED,
        &RESOLVED,
    ];
    let bits = (0_u8..)
        .zip(lists)
        .flat_map(|(n, list)| list.iter().map(move |_| 1 << n));
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(lists.concat())
        .unwrap_or_else(|e| unreachable!("the words are constant: {e}"));
    (automaton, bits.collect())
});

/// Of which lists a sentence holds a word: one bit for each.
fn hits(sentence: &str) -> u8 {
    let (automaton, bits) = &*SIGNALS;
    automaton
        .find_overlapping_iter(sentence)
        .fold(0, |all, found| all | bits[found.pattern().as_usize()])
}

/// What a scored sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) section: Section,
    pub(crate) value: u32,
}

/// Scores one sentence. 0: not worth keeping.
pub(crate) fn score(sentence: &str, role: Role, frequency: &Frequency, focus: &[u64]) -> Score {
    let mut paths = 0_u32;
    let mut numbers = 0_u32;
    let mut identifiers = 0_u32;
    let mut names = 0_u32;
    let mut rare = 0_u32;
    let mut common = 0_u32;
    let mut count = 0_u32;
    let mut on_focus = 0_u32;
    for word in words(sentence) {
        count += 1;
        let key = key(word.text);
        let occurs = frequency.count(key);
        let is_rare = occurs <= RARE;
        // 0 for a word that is said once, more for one that is said all the time.
        let commonness = occurs.checked_ilog2().unwrap_or(0);
        // What everybody mentions all the time tells nothing, whatever it looks like.
        let telling = if is_rare {
            2
        } else {
            u32::from(commonness < 5)
        };
        match word.shape {
            Shape::Path | Shape::Address => paths += telling,
            Shape::Number => numbers += telling,
            Shape::Identifier => identifiers += telling,
            Shape::Name => names += telling,
            Shape::Plain => {}
        }
        rare += u32::from(is_rare);
        common += commonness;
        on_focus += u32::from(!focus.is_empty() && focus.contains(&key));
    }
    if count == 0 {
        return Score {
            section: Section::Critical,
            value: 0,
        };
    }
    let hits = hits(sentence);
    let has = |list: usize| hits & (1 << list) != 0;
    let (decision, constraint, error, fix) = (has(0), role == Role::User && has(1), has(2), has(3));

    let mut value = paths.min(4) * 3
        + numbers.min(6) * 3
        + identifiers.min(4) * 2
        + names.min(6) * 2
        + rare.min(6) * 3;
    for (hit, worth) in [(decision, 14), (constraint, 10), (error, 7), (fix, 12)] {
        value += if hit { worth } else { 0 };
    }
    // A sentence made of the words that all others are made of is filler even if it names a file.
    let dull = common / count;
    value = value * 12 / (10 + dull * 2);
    value = match role {
        Role::User => value * 13 / 10,
        Role::Tool => value / 2,
        _ => value,
    };
    value += on_focus.min(4) * 20;

    let section = if fix || error {
        Section::Errors
    } else if decision {
        Section::Decisions
    } else if constraint {
        Section::Constraints
    } else if has(4) {
        Section::Blocked
    } else if role != Role::Tool && has(5) {
        Section::Resolved
    } else {
        Section::Critical
    };
    Score { section, value }
}
