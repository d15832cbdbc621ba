//! From messages to the body of a summary: the helper model in parts that fit its window, and what happens when it fails.
//!
//! Every message is shown. Where all of them together are longer than the parts may be, long ones are shown with beginning
//! and end, and what is left out is named in its place. Each part is read together with the summary of the parts before it.

use hermes_message::Role;

use crate::accept::{self, Bounds};
use crate::extract;
use crate::helper::{Ask, Class, Failure, Helper, Reply};
use crate::prompt::{self, Question};
use crate::secrets;
use crate::tokens;
use crate::turns::Turn;

/// A helper below this window cannot be told what to do and be shown something.
pub const SMALLEST_WINDOW: u64 = 1_024;
/// Below this the instructions are the short ones.
const TERSE_BELOW: u64 = 8_000;
/// Largest part: attention thins out in longer ones, and a failed question costs less.
const LARGEST_PART: u64 = 40_000;
/// Tokens that are read in all where the helper's window is no limit.
const MOST_READ: u64 = 160_000;
/// Parts at most.
const MOST_PARTS: u64 = 16;
/// A window that nobody has told.
const ASSUMED_WINDOW: u64 = 32_768;

/// What to sum up.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Sections of the summary before this one.
    pub previous: &'a str,
    /// What has been said since.
    pub turns: &'a [Turn<'a>],
    /// What to favour; secrets removed.
    pub focus: Option<&'a str>,
    /// What a memory provider adds; secrets removed.
    pub memory: Option<&'a str>,
    /// Longest summary, in tokens.
    pub budget: u64,
    /// Estimate of everything that it stands for.
    pub replaces: u64,
}

/// The summary of the extractive author.
#[must_use]
pub fn without_model(job: &Job<'_>) -> String {
    let Job {
        previous,
        turns,
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
pub fn with_model(job: &Job<'_>, helper: &mut dyn Helper) -> Result<String, Failure> {
    let window = match helper.window() {
        0 => ASSUMED_WINDOW,
        window => window,
    };
    if window < SMALLEST_WINDOW {
        let text = format!(
            "the helper model's window of {window} tokens is too small to summarise with; it takes {SMALLEST_WINDOW} at least"
        );
        return Err(Failure::new(Class::Context, text));
    }
    let mut scale = 1;
    loop {
        match in_parts(job, helper, window / scale) {
            // The helper counts otherwise than we do: smaller parts, twice.
            Err(failure)
                if failure.class == Class::Context
                    && scale < 4
                    && window / (scale * 2) >= SMALLEST_WINDOW =>
            {
                scale *= 2;
            }
            answer => return answer,
        }
    }
}

fn in_parts(job: &Job<'_>, helper: &mut dyn Helper, window: u64) -> Result<String, Failure> {
    let terse = window < TERSE_BELOW;
    let budget = job.budget.min(window / 6).max(96);
    let shape = Question {
        previous: "",
        transcript: "",
        part: (1, 2),
        focus: job.focus,
        memory: job.memory,
        budget,
        terse,
        again: None,
    };
    // Room for the answer, the summary so far, and a tenth for differences in counting.
    let taken = prompt::overhead(&shape) + 2 * budget + window / 10 + 40;
    let room = window.saturating_sub(taken).min(LARGEST_PART);
    if room < 128 {
        let text = format!(
            "the helper model's window of {window} tokens leaves no room for messages beside focus and memory"
        );
        return Err(Failure::new(Class::Context, text));
    }
    let parts = split(job.turns, room);
    let mut summary = cut_to(job.previous, budget);
    for (place, transcript) in parts.iter().enumerate() {
        helper.progress(place, parts.len());
        let last = place + 1 == parts.len();
        let question = Question {
            previous: &summary,
            transcript,
            part: (place + 1, parts.len()),
            memory: if place == 0 { job.memory } else { None },
            ..shape
        };
        // A part's summary may be as long as the part where more is to come: what counts is the whole.
        let replaces = if last {
            job.replaces
        } else {
            job.replaces.max(budget * 2)
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
    let text = prompt::write(question);
    // The parts were cleaned one by one; a secret that two messages share is whole only now.
    let prompt = secrets::redact(&text);
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

/// The messages as texts of at most `room` tokens each.
fn split(turns: &[Turn<'_>], room: u64) -> Vec<String> {
    let total = MOST_READ.min(room * MOST_PARTS).max(room);
    let share = fair_share(turns.iter().map(|turn| turn.tokens), total)
        .min(room * 3 / 4)
        .max(24);
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut spent = 0;
    let mut day = None;
    for turn in turns {
        let bytes = turn.text.len()
            + turn
                .calls
                .iter()
                .map(|(_, arguments)| arguments.len())
                .sum::<usize>();
        let shown = turn.tokens.min(share);
        // So many of its bytes as its share is of its tokens; results of tools say most at both ends.
        let most = if turn.tokens <= share {
            usize::MAX / 4
        } else {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            usize::try_from(bytes.saturating_mul(share) / turn.tokens.max(1))
                .unwrap_or(usize::MAX / 4)
        };
        let most = if turn.role == Role::Tool {
            most.min(6_000)
        } else {
            most
        };
        let cost = shown + 8;
        if spent + cost > room && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            spent = 0;
            day = None;
        }
        prompt::render(&mut part, turn, most, &mut day);
        spent += cost;
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// The largest share that lets all of them fit the total when none takes more than it.
fn fair_share(costs: impl Iterator<Item = u64>, total: u64) -> u64 {
    let mut costs: Vec<u64> = costs.collect();
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
