//! From messages to the body of a summary: the helper model in parts that fit its window, and what happens when it fails.
//!
//! Every message is shown. Where all of them together are longer than the parts may be, long ones are shown with beginning
//! and end, and what is left out is named in its place. Each part is read together with the summary of the parts before it.

use std::borrow::Cow;

use crate::accept::{self, Bounds};
use crate::extract;
use crate::helper::{Ask, Class, Failure, Helper, Reply};
use crate::prompt::{self, Question};
use crate::secrets;
use crate::tokens;
use crate::turns::{self, Turn};

/// A helper below this window cannot be told what to do and be shown something.
pub const SMALLEST_WINDOW: u64 = 1_024;
/// Below this the instructions are the short ones.
const TERSE_BELOW: u64 = 8_000;
/// Largest part: attention thins out in longer ones, and a failed question costs less.
const LARGEST_PART: u64 = 40_000;
/// Tokens that are read in all where neither the helper's window nor the number of messages is a limit.
const MOST_READ: u64 = 160_000;
/// So many parts are read of a conversation of few and long messages.
const PARTS: u64 = 16;
/// So many of any. What is beyond is left out evenly, and named.
const MOST_PARTS: usize = 64;
/// Every message gets so many tokens, its label included, before the number of parts is held down.
const LEAST_SHARE: u64 = 28;
/// A label, and the note of what is left out.
const LABEL: u64 = 12;
/// A part below this holds next to nothing.
const LEAST_ROOM: u64 = 128;
/// A window that nobody has told.
const ASSUMED_WINDOW: u64 = 32_768;

/// What to sum up.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Sections of the summary before this one; secrets removed.
    pub previous: &'a str,
    /// What to favour; secrets removed.
    pub focus: Option<&'a str>,
    /// What a memory provider adds; secrets removed.
    pub memory: Option<&'a str>,
    /// Longest summary, in tokens.
    pub budget: u64,
    /// Estimate of everything that it stands for.
    pub replaces: u64,
}

/// How the messages are read: the size of a part, and of one message in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Longest message, in tokens.
    pub share: u64,
    room: u64,
    budget: u64,
    terse: bool,
}

impl Reading {
    /// For the extractive author, who reads everything once.
    #[must_use]
    pub fn without_model() -> Self {
        Self {
            share: 9_000,
            room: u64::MAX / 4,
            budget: 0,
            terse: false,
        }
    }

    /// For a helper with this window; 0 = not known. `costs`: the estimates of the messages.
    ///
    /// # Errors
    /// The window leaves no room for messages.
    pub fn with_model(
        window: u64,
        job: &Job<'_>,
        costs: impl Iterator<Item = u64>,
    ) -> Result<Self, Failure> {
        let window = if window == 0 { ASSUMED_WINDOW } else { window };
        let too_small = |why: &str| {
            Failure::new(
                Class::Context,
                format!("the helper model's window of {window} tokens {why}"),
            )
        };
        if window < SMALLEST_WINDOW {
            let why =
                format!("is too small to summarise with; it takes {SMALLEST_WINDOW} at least");
            return Err(too_small(&why));
        }
        let budget = job.budget.min(window / 6).max(96);
        let mut reading = Self {
            share: 0,
            room: 0,
            budget,
            terse: window < TERSE_BELOW,
        };
        // Room for the answer, the summary so far, and a tenth for differences in counting.
        let taken = prompt::overhead(&reading.question(job)) + 2 * budget + window / 10 + 40;
        reading.room = window.saturating_sub(taken).min(LARGEST_PART);
        if reading.room < LEAST_ROOM {
            return Err(too_small(
                "leaves no room for messages beside the focus and the memory provider's text",
            ));
        }
        let costs: Vec<u64> = costs.collect();
        let count = u64::try_from(costs.len()).unwrap_or(u64::MAX);
        let total = MOST_READ
            .min(reading.room * PARTS)
            .max(count.saturating_mul(LEAST_SHARE));
        let total = total.saturating_sub(count.saturating_mul(LABEL));
        reading.share = fair_share(costs, total).clamp(LEAST_SHARE - LABEL, reading.room * 3 / 4);
        Ok(reading)
    }

    fn question<'a>(&self, job: &Job<'a>) -> Question<'a> {
        Question {
            previous: "",
            transcript: "",
            part: (1, 2),
            focus: job.focus,
            memory: job.memory,
            budget: self.budget,
            terse: self.terse,
            again: None,
        }
    }
}

/// The summary of the extractive author. Takes the secrets out of the turns.
#[must_use]
pub fn without_model(job: &Job<'_>, turns: &mut [Turn<'_>]) -> String {
    turns::clean(turns);
    let Job {
        previous,
        focus,
        budget,
        ..
    } = *job;
    let text = extract::summary(&extract::Source {
        previous,
        turns,
        focus,
        budget,
    });
    secrets::redact(&text).into_owned()
}

/// The summary of a helper model.
///
/// # Errors
/// What kept it from giving one, after the second try where a second one makes sense.
pub fn with_model(
    job: &Job<'_>,
    turns: &[Turn<'_>],
    mut reading: Reading,
    helper: &mut dyn Helper,
) -> Result<String, Failure> {
    loop {
        match in_parts(job, turns, reading, helper) {
            // The helper counts otherwise than we do: smaller parts, while they hold something.
            Err(failure) if failure.class == Class::Context && reading.room >= 2 * LEAST_ROOM => {
                reading.room /= 2
            }
            answer => return answer,
        }
    }
}

fn in_parts(
    job: &Job<'_>,
    turns: &[Turn<'_>],
    reading: Reading,
    helper: &mut dyn Helper,
) -> Result<String, Failure> {
    let parts = split(turns, reading.room);
    let mut summary = cut_to(job.previous, reading.budget);
    for (place, transcript) in parts.iter().enumerate() {
        helper.progress(place, parts.len());
        let last = place + 1 == parts.len();
        let question = Question {
            previous: &summary,
            transcript,
            part: (place + 1, parts.len()),
            memory: job.memory.filter(|_| place == 0),
            ..reading.question(job)
        };
        // While more is to come, a summary may be as long as its part: what counts is the whole.
        let replaces = if last {
            job.replaces
        } else {
            job.replaces.max(reading.budget * 2)
        };
        summary = one(
            helper,
            &question,
            Bounds {
                replaces,
                budget: job.budget,
            },
        )?;
    }
    helper.progress(parts.len(), parts.len());
    Ok(summary)
}

/// Asks, and once more where that may help.
fn one(
    helper: &mut dyn Helper,
    question: &Question<'_>,
    bounds: Bounds,
) -> Result<String, Failure> {
    let first = match ask(helper, question, bounds) {
        Ok(summary) => return Ok(summary),
        Err(failure) => failure,
    };
    let again = matches!(
        first.class,
        Class::Empty | Class::Truncated | Class::Unusable | Class::TooLong | Class::Other
    );
    if !again {
        return Err(first);
    }
    let shorter = Question {
        again: Some(&first.message),
        budget: question.budget * 2 / 3,
        ..*question
    };
    // The second failure may be of another kind; the first one is what went wrong.
    ask(helper, &shorter, bounds).map_err(|second| {
        if second.class == Class::Cancelled {
            second
        } else {
            first
        }
    })
}

fn ask(
    helper: &mut dyn Helper,
    question: &Question<'_>,
    bounds: Bounds,
) -> Result<String, Failure> {
    let prompt = prompt::write(question);
    let reply: Reply = helper.ask(&Ask {
        prompt: &prompt,
        answer_tokens: question.budget,
    })?;
    let summary = accept::summary(&reply, bounds)?;
    Ok(cut_to(&secrets::redact(&summary), bounds.budget * 2))
}

/// A summary that is not longer than `budget` tokens: whole lines, with a note where some were left out.
fn cut_to(text: &str, budget: u64) -> String {
    if text.is_empty() || tokens::of_text(text) <= budget {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut spent = 12;
    let mut left_out = 0;
    for line in text.lines() {
        let cost = tokens::of_text(line) + 1;
        if spent + cost <= budget {
            spent += cost;
            out.push_str(line);
            out.push('\n');
        } else {
            left_out += 1;
        }
    }
    out.push_str(&format!(
        "[{left_out} lines of the summary were left out for want of room]"
    ));
    out
}

/// The messages as texts of at most about `room` tokens each, without secrets.
fn split(turns: &[Turn<'_>], room: u64) -> Vec<String> {
    let longest = room * 3 / 4;
    let mut parts = Vec::new();
    let mut part = String::new();
    let (mut spent, mut day) = (0, None);
    for turn in turns {
        let cost = turn.tokens.min(longest) + LABEL;
        if spent + cost > room && !part.is_empty() {
            parts.push(finished(&part, room));
            part.clear();
            (spent, day) = (0, None);
        }
        if turn.tokens > longest {
            let text = Cow::Borrowed(&*turn.text);
            let shorter = Turn {
                text: secrets::cut(text, scaled(turn.text.len(), longest, turn.tokens)),
                ..turn.clone()
            };
            prompt::render(&mut part, &shorter, &mut day);
        } else {
            prompt::render(&mut part, turn, &mut day);
        }
        spent += cost;
    }
    if !part.is_empty() {
        parts.push(finished(&part, room));
    }
    thinned(parts)
}

/// At most [`MOST_PARTS`] parts, the first and the last among them; gaps are named.
fn thinned(parts: Vec<String>) -> Vec<String> {
    let count = parts.len();
    if count <= MOST_PARTS {
        return parts;
    }
    let mut before = 0;
    let mut kept = Vec::with_capacity(MOST_PARTS);
    for (place, mut part) in parts.into_iter().enumerate() {
        if place != kept.len() * (count - 1) / (MOST_PARTS - 1) {
            continue;
        }
        if place > before {
            part.insert_str(
                0,
                &format!(
                    "[… {} of {count} parts of the conversation are left out here …]\n",
                    place - before
                ),
            );
        }
        before = place + 1;
        kept.push(part);
    }
    kept
}

/// A part without secrets. What was counted message by message is made sure of.
fn finished(part: &str, room: u64) -> String {
    let clean = secrets::redact(part);
    let tokens = tokens::of_text(&clean);
    if tokens <= room + room / 12 {
        return clean.into_owned();
    }
    secrets::cut(Cow::Borrowed(&clean), scaled(clean.len(), room, tokens)).into_owned()
}

/// `bytes` in the relation of `most` to `tokens`.
fn scaled(bytes: usize, most: u64, tokens: u64) -> usize {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    usize::try_from(bytes.saturating_mul(most) / tokens.max(1)).unwrap_or(usize::MAX)
}

/// The largest share that lets all of them fit the total when none takes more than it.
fn fair_share(mut costs: Vec<u64>, total: u64) -> u64 {
    costs.sort_unstable();
    let mut left = total;
    for (place, cost) in costs.iter().enumerate() {
        let sharers = u64::try_from(costs.len() - place).unwrap_or(1).max(1);
        if cost.saturating_mul(sharers) > left {
            return left / sharers;
        }
        left -= cost;
    }
    u64::MAX / 4
}
