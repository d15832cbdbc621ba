//! A summary made without a model: sentences taken from the text itself, under the headings a model would use.
//!
//! It is for when no helper model is at hand, and reads like notes rather than prose. Each sentence is worth what it
//! names that nothing else does: paths, numbers, names, rare words, and the words that mark a decision, a rule, an error
//! or its fix. The best ones that fit the budget stay, in the order in which they were said. Time grows with the text.
//! The same text always gives the same summary.

mod actions;
mod score;
pub mod sections;
pub(crate) mod words;

use std::collections::HashSet;

use hermes_message::Role;

use crate::tokens;
use crate::turns::Turn;
pub(crate) use score::Ready;
use score::{Frequency, Score, score};
use sections::{ALL, Section};

/// What to sum up.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Sections of the summary before this one.
    pub previous: &'a str,
    /// What has been said since.
    pub turns: &'a [Turn<'a>],
    /// What to favour.
    pub focus: Option<&'a str>,
    /// Longest result, in tokens.
    pub budget: u64,
}

/// A line that could stand in the summary.
#[derive(Debug)]
struct Item {
    section: Section,
    text: String,
    value: u32,
    order: usize,
    cost: u64,
}

/// Bytes at the beginning of a message that are looked through, and as many more at its end. Tool output is long and
/// mostly not about anything; what people and models write is read whole.
const TOOL_BYTES: usize = 3_000;

/// Makes the summary. Empty when there is nothing to say.
#[must_use]
pub fn summary(source: &Source<'_>) -> String {
    let mut frequency = Frequency::default();
    for line in source.previous.lines() {
        frequency.learn(line);
    }
    for turn in source.turns {
        for part in parts(turn) {
            frequency.learn(part);
        }
    }
    let focus: Vec<u64> = source
        .focus
        .map(|focus| {
            words::words(focus)
                .filter(|w| w.text.len() > 2)
                .map(|w| words::key(w.text))
                .collect()
        })
        .unwrap_or_default();

    let mut items = Vec::new();
    earlier_items(source.previous, &frequency, &focus, &mut items);
    for turn in source.turns {
        turn_items(turn, &frequency, &focus, &mut items);
    }
    actions::collect(source.turns, &mut |text, value| {
        push(&mut items, Section::Actions, text, value)
    });
    files(source.turns, &mut items);
    frame(source, &mut items);
    for (order, item) in items.iter_mut().enumerate() {
        item.order = order;
    }
    write(select(items, source.budget))
}

fn push(items: &mut Vec<Item>, section: Section, text: String, value: u32) {
    if value > 0 {
        items.push(Item {
            section,
            text,
            value,
            order: 0,
            cost: 0,
        });
    }
}

/// The parts of a message that are looked through.
fn parts<'a>(turn: &'a Turn<'_>) -> impl Iterator<Item = &'a str> {
    let text = &*turn.text;
    let (head, tail) = if turn.role == Role::Tool && text.len() > 2 * TOOL_BYTES {
        (
            &text[..text.floor_char_boundary(TOOL_BYTES)],
            Some(&text[text.ceil_char_boundary(text.len() - TOOL_BYTES)..]),
        )
    } else {
        (text, None)
    };
    std::iter::once(head).chain(tail)
}

/// Lines of the summary before: they were worth keeping once, and what they say is nowhere else any more.
fn earlier_items(previous: &str, frequency: &Frequency, focus: &[u64], items: &mut Vec<Item>) {
    let mut section = Section::Critical;
    for line in previous
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if line.starts_with('#') {
            section = Section::of_heading(line).unwrap_or(Section::Critical);
            continue;
        }
        let text = line.trim_start_matches(['-', '*', '•']).trim_start();
        let text = match text.split_once(". ") {
            Some((number, rest))
                if number.len() < 5 && number.bytes().all(|b| b.is_ascii_digit()) =>
            {
                rest
            }
            _ => text,
        };
        if text.is_empty() || text.starts_with("(extracted") {
            continue;
        }
        let section = if section == Section::Snapshot {
            Section::Critical
        } else {
            section
        };
        let base = score(text, Role::Assistant, frequency, focus).value;
        let bonus = match section {
            Section::Goal => 60,
            Section::Actions | Section::Files => 0,
            _ => 14,
        };
        push(items, section, text.to_owned(), base + bonus);
    }
}

fn turn_items(turn: &Turn<'_>, frequency: &Frequency, focus: &[u64], items: &mut Vec<Item>) {
    let date = turn.date.as_deref();
    for part in parts(turn) {
        for sentence in words::sentences(part) {
            let Score { section, value } = score(sentence, turn.role, frequency, focus);
            // Below this a sentence names nothing.
            if value < 8 {
                continue;
            }
            let sentence = sentence
                .trim_start_matches(['-', '*', '•', '#', '>'])
                .trim_start();
            let text = match (turn.role, date) {
                (Role::User, Some(date)) => format!("{date}, user: {sentence}"),
                (Role::User, None) => format!("user: {sentence}"),
                (_, Some(date)) if section == Section::Decisions => format!("{date}: {sentence}"),
                _ => sentence.to_owned(),
            };
            push(items, section, text, value);
        }
    }
}

/// Files that calls have named, the most used first.
fn files(turns: &[Turn<'_>], items: &mut Vec<Item>) {
    let mut order: Vec<&str> = Vec::new();
    let mut counts: std::collections::HashMap<&str, u32> = std::collections::HashMap::new();
    for (_, arguments) in turns.iter().flat_map(|turn| &turn.calls) {
        let mut in_call = HashSet::new();
        for word in words::words(arguments)
            .filter(|word| words::is_path(word.text) && word.text.len() < 160)
        {
            if in_call.insert(word.text) {
                let count = counts.entry(word.text).or_default();
                if *count == 0 {
                    order.push(word.text);
                }
                *count += 1;
            }
        }
    }
    for (place, file) in order.iter().enumerate() {
        let count = counts[file];
        let recent = u32::from(place + 10 >= order.len());
        let text = if count > 1 {
            format!("{file} ({count} calls)")
        } else {
            (*file).to_owned()
        };
        push(
            items,
            Section::Files,
            text,
            4 + count.min(10) * 3 + recent * 6,
        );
    }
}

/// The first and the last thing that was asked.
fn frame(source: &Source<'_>, items: &mut Vec<Item>) {
    const LONGEST: usize = 700;
    let asked = |turn: &&Turn<'_>| turn.role == Role::User && !turn.text.trim().is_empty();
    let cut = |turn: &Turn<'_>| {
        let text = turn.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    };
    let has_goal = items.iter().any(|item| item.section == Section::Goal);
    if let Some(first) = source.turns.iter().find(asked).filter(|_| !has_goal) {
        push(items, Section::Goal, cut(first), 200);
    }
    if let Some(last) = source.turns.iter().rev().find(asked) {
        push(
            items,
            Section::Snapshot,
            format!("was asked last before this point: {}", cut(last)),
            150,
        );
    }
    let said = source
        .turns
        .iter()
        .rev()
        .find(|turn| turn.role == Role::Assistant && !turn.text.trim().is_empty());
    if let Some(said) = said {
        push(
            items,
            Section::State,
            format!("the assistant said last: {}", cut(said)),
            60,
        );
    }
}

/// The best items that fit, without repeats.
fn select(mut items: Vec<Item>, budget: u64) -> Vec<Item> {
    let headings = 80;
    let budget = budget.saturating_sub(headings);
    // Of equal ones the newer counts, and the earlier place in the order is lost with the older.
    items.sort_by(|a, b| b.value.cmp(&a.value).then(b.order.cmp(&a.order)));
    let mut seen = HashSet::new();
    let mut spent = 0;
    let mut spent_on = std::collections::BTreeMap::<Section, u64>::new();
    let mut kept = Vec::new();
    for mut item in items {
        if spent >= budget {
            break;
        }
        if !seen.insert(fingerprint(&item.text)) {
            continue;
        }
        item.cost = tokens::of_text(&item.text) + 2;
        let share = match item.section {
            Section::Actions => budget / 4,
            Section::Files => budget / 10,
            Section::State | Section::Snapshot | Section::Goal => budget / 6,
            _ => budget,
        };
        let of_section = spent_on.entry(item.section).or_default();
        if spent + item.cost > budget || *of_section + item.cost > share {
            continue;
        }
        *of_section += item.cost;
        spent += item.cost;
        kept.push(item);
    }
    kept.sort_by_key(|item| (item.section, item.order));
    kept
}

/// A text without speaker, case, blanks and punctuation.
fn fingerprint(text: &str) -> u64 {
    let text = text.split_once("user: ").map_or(text, |(_, said)| said);
    words::words(text).fold(7, |all, word| all.rotate_left(5) ^ words::key(word.text))
}

fn write(items: Vec<Item>) -> String {
    let mut out = String::new();
    for (section, heading) in ALL {
        let mut number = 0;
        for item in items.iter().filter(|item| item.section == section) {
            if number == 0 {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(heading);
                out.push('\n');
            }
            number += 1;
            if section == Section::Actions {
                out.push_str(&format!("{number}. {}\n", item.text));
            } else {
                out.push_str(&format!("- {}\n", item.text));
            }
        }
    }
    out.trim_end().to_owned()
}
