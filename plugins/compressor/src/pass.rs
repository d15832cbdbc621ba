//! One pass, from messages to a new list. Pure: the same messages, settings and answers of the helper always give the
//! same list, byte for byte.

use std::collections::BTreeMap;

use hermes_message::Role;

use crate::Settings;
use crate::anchors;
use crate::assemble::{self, Step};
use crate::boundaries::{self, Bounds, Wishes};
use crate::carrier::{self, Earlier};
use crate::fit::{self, Cut, Room};
use crate::helper::{Class, Failure, Helper};
use crate::proactive;
use crate::row::{Body, Row};
use crate::secrets;
use crate::settings::TailMode;
use crate::summarize::{self, Job};
use crate::tokens;
use crate::turns::{self, Skip};

/// What set the pass off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host, because the conversation has grown.
    Automatic,
    /// The provider refused a request as too long: without a pass the conversation cannot go on.
    Overflow,
    /// A person.
    Manual,
    /// Old tool results only.
    Prune,
}

/// The circumstances of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What set it off.
    pub cause: Cause,
    /// Size of the whole request, where known.
    pub current_tokens: Option<u64>,
    /// The result should be below this; `None` = the trigger.
    pub target_tokens: Option<u64>,
    /// The model's window; 0 = not known.
    pub window: u64,
    /// What of it is kept for the answer.
    pub output_reserve: u64,
    /// The trigger; 0 = not known.
    pub threshold: u64,
    /// What to favour.
    pub focus: Option<&'a str>,
    /// What a memory provider adds.
    pub memory: Option<&'a str>,
    /// Named in the summary as the place of the originals.
    pub session_id: &'a str,
    /// The conversation has been compressed before.
    pub compressed_before: bool,
    /// The last pass was of no use.
    pub has_strike: bool,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self {
            cause: Cause::Automatic,
            current_tokens: None,
            target_tokens: None,
            window: 0,
            output_reserve: 0,
            threshold: 0,
            focus: None,
            memory: None,
            session_id: "",
            compressed_before: false,
            has_strike: false,
        }
    }
}

/// Who wrote the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Author {
    /// The helper model.
    Model,
    /// The extractive author, because there is no helper model.
    Extractive,
    /// The extractive author, because the helper model failed.
    Fallback(Failure),
    /// Nobody: messages were only shortened.
    None,
}

/// A new list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The list.
    pub steps: Vec<Step>,
    /// Who wrote the summary in it.
    pub author: Author,
    /// Estimate of the old list.
    pub before: u64,
    /// Estimate of the new one.
    pub after: u64,
    /// Estimate of what a pass cannot touch: what stands beside the list in a request, and the system prompt.
    pub fixed: u64,
}

/// Why the list stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is nothing that could be summed up or shortened.
    NothingToDo,
    /// A new list would be no shorter.
    NoGain,
    /// The helper model failed.
    HelperFailed(Failure),
}

/// What came of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new list.
    Made(Made),
    /// The list stays, and a sentence for a person.
    Unchanged(Why, String),
}

/// A carrier without any summary takes about so many tokens.
const FRAME: u64 = 220;
/// Longest summary.
const LONGEST_SUMMARY: u64 = 10_000;
/// Shortest budget, where the window allows.
const LEAST_SUMMARY: u64 = 2_000;

/// Runs a pass. Without a helper the extractive author writes.
#[must_use]
pub fn compress(
    rows: &[Row<'_>],
    settings: &Settings,
    mut helper: Option<&mut dyn Helper>,
    request: &Request<'_>,
) -> Outcome {
    if request.cause == Cause::Prune {
        return proactive::prune(rows, settings, request);
    }
    let before: u64 = rows.iter().map(Row::cost).sum();
    let found = find_carriers(rows);
    let sizes = Sizes::of(rows, settings, request, before);

    let carriers: Vec<usize> = found.keys().copied().collect();
    let first = request.compressed_before || !found.is_empty();
    let wishes = Wishes {
        protect_first: if first {
            0
        } else {
            usize::try_from(settings.protect_first_n).unwrap_or(usize::MAX)
        },
        protect_last: usize::try_from(settings.protect_last_n).unwrap_or(usize::MAX),
        users: usize::try_from(settings.min_tail_user_messages).unwrap_or(1),
        tail_budget: sizes.tail,
        lean: settings.tail_mode == TailMode::Lean,
    };
    let mut bounds = boundaries::find(rows, &carriers, wishes);
    assemble::skip_blank(rows, &mut bounds);
    assemble::avoid_join(rows, &mut bounds, &carriers, sizes.tail / 4);

    let middle: u64 = (0..rows.len())
        .filter(|at| bounds.is_middle(*at))
        .map(|at| rows[at].cost())
        .sum();
    let worth_it = bounds.middle() >= 2
        && middle > FRAME + 60
        && !(request.has_strike
            && request.cause == Cause::Automatic
            && middle.saturating_mul(10) < request.threshold);
    let mut author = Author::None;
    let mut text = None;
    if worth_it {
        match summary(
            rows,
            settings,
            helper.as_mut().map(|h| &mut **h as &mut dyn Helper),
            request,
            &bounds,
            &found,
            middle,
            &sizes,
        ) {
            Ok(made) => (text, author) = (Some(made.0), made.1),
            Err(failure) => {
                let sentence = format!("the conversation stays as it is: {}", failure.message);
                return Outcome::Unchanged(Why::HelperFailed(failure), sentence);
            }
        }
    }
    if text.is_none() {
        // Nothing is summed up, so everything stays; what is too large is still cut.
        bounds = Bounds {
            head_end: bounds.head_end.min(bounds.tail_start),
            tail_start: bounds.head_end,
            pinned: None,
            ..bounds
        };
    }
    let summary_tokens = text.as_deref().map_or(0, tokens::of_text);
    let room = Room {
        tail: if text.is_some() {
            sizes.tail
        } else {
            sizes.all
        },
        all: sizes.all.saturating_sub(summary_tokens),
        hard: sizes.hard.saturating_sub(summary_tokens),
    };
    let cuts = if text.is_none() && before <= sizes.all && sizes.fits {
        BTreeMap::new()
    } else {
        fit::plan(rows, &bounds, settings, room)
    };
    if text.is_none() && cuts.is_empty() {
        return Outcome::Unchanged(Why::NothingToDo, nothing_to_do(&bounds, request));
    }
    finish(
        rows,
        &bounds,
        &cuts,
        text.as_deref(),
        &carriers,
        author,
        before,
        sizes.fixed,
    )
}

#[expect(
    clippy::too_many_arguments,
    reason = "the last step of one function, apart for its length"
)]
fn finish(
    rows: &[Row<'_>],
    bounds: &Bounds,
    cuts: &BTreeMap<usize, Cut>,
    text: Option<&str>,
    carriers: &[usize],
    author: Author,
    before: u64,
    fixed: u64,
) -> Outcome {
    let steps = assemble::write(rows, bounds, cuts, text, carriers);
    let after = total(rows, &steps);
    let shortened = text.is_some() || steps.iter().any(|step| !matches!(step, Step::Keep(_)));
    if !shortened {
        return Outcome::Unchanged(Why::NothingToDo, "nothing can be shortened".to_owned());
    }
    if after >= before {
        let sentence =
            format!("a compressed list would be no shorter ({after} tokens instead of {before})");
        return Outcome::Unchanged(Why::NoGain, sentence);
    }
    Outcome::Made(Made {
        steps,
        author,
        before,
        after,
        fixed,
    })
}

/// Estimate of a new list.
#[must_use]
pub fn total(rows: &[Row<'_>], steps: &[Step]) -> u64 {
    steps
        .iter()
        .map(|step| match step {
            Step::Keep(range) => rows[range.clone()].iter().map(Row::cost).sum(),
            Step::Edit { json, .. } | Step::Push { json } => of_message(json),
        })
        .sum()
}

/// The host's estimate of a message.
pub(crate) fn of_message(json: &str) -> u64 {
    hermes_message::Message::parse(json).map_or_else(
        |_| tokens::of_text(json),
        |message| u64::from(message.tokens()),
    )
}

fn nothing_to_do(bounds: &Bounds, request: &Request<'_>) -> String {
    if bounds.newest_user.is_none() {
        return "there is no user message to keep".to_owned();
    }
    match request.cause {
        Cause::Manual => {
            "nothing to compress yet: the whole conversation is what must stay".to_owned()
        }
        _ => "nothing to compress: all of the conversation is what must stay".to_owned(),
    }
}

/// The earlier summaries of a transcript, by message, and the own words of messages that they had joined.
type Carriers = BTreeMap<usize, carrier::Found>;

fn find_carriers(rows: &[Row<'_>]) -> Carriers {
    let mut found = BTreeMap::new();
    for (at, row) in rows
        .iter()
        .enumerate()
        .filter(|(_, row)| carrier::may_carry(row))
    {
        if let Some(parts) = carrier::take_apart(&Body::read(row.json).text, row.summary) {
            found.insert(at, parts);
        }
    }
    found
}

/// The budgets of a pass.
struct Sizes {
    tail: u64,
    /// The list should be below this.
    all: u64,
    /// The list must be below this.
    hard: u64,
    /// The list is below `all` already.
    fits: bool,
    summary: u64,
    fixed: u64,
}

impl Sizes {
    fn of(rows: &[Row<'_>], settings: &Settings, request: &Request<'_>, before: u64) -> Self {
        let beside = request
            .current_tokens
            .unwrap_or(before)
            .saturating_sub(before);
        let system = rows
            .first()
            .filter(|row| row.role == Role::System)
            .map_or(0, Row::cost);
        let usable = request.window - request.output_reserve.min(request.window / 2);
        let wanted = request
            .target_tokens
            .filter(|n| *n > 0)
            .unwrap_or(request.threshold);
        let (wanted, usable) = match (wanted, usable) {
            (0, 0) => (u64::MAX / 4, u64::MAX / 4),
            (0, usable) => (usable, usable),
            (wanted, 0) => (wanted, wanted.saturating_mul(2)),
            (wanted, usable) => (wanted.min(usable), usable),
        };
        let all = wanted.saturating_sub(beside).max(256);
        let hard = (usable - usable / 20).saturating_sub(beside).max(256);
        let tail = boundaries::tail_budget(request.window, request.threshold, settings)
            .min(all / 2)
            .max(64);
        Self {
            tail,
            all,
            hard,
            fits: before <= all,
            summary: (all / 5).clamp(96, LONGEST_SUMMARY),
            fixed: beside + system,
        }
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "one step of one function, apart for its length"
)]
fn summary(
    rows: &[Row<'_>],
    settings: &Settings,
    helper: Option<&mut dyn Helper>,
    request: &Request<'_>,
    bounds: &Bounds,
    found: &Carriers,
    middle: u64,
    sizes: &Sizes,
) -> Result<(String, Author), Failure> {
    let mut previous = Earlier::default();
    for parts in found.values() {
        previous.merge(parts.earlier.clone());
    }
    let range = bounds.head_end..bounds.tail_start;
    let turns = turns::read(rows, range, |at| {
        if bounds.pinned == Some(at) {
            return Some(Skip::Whole);
        }
        found
            .get(&at)
            .map(|parts| parts.own.clone().map_or(Skip::Whole, Skip::Own))
    });
    // Never more than what is replaced, or nothing would be won.
    let budget = (middle / 5)
        .max(LEAST_SUMMARY)
        .min(sizes.summary)
        .min((middle.saturating_sub(FRAME)) * 3 / 4)
        .max(48);
    let focus = request
        .focus
        .map(str::trim)
        .filter(|focus| !focus.is_empty())
        .map(secrets::redact);
    let memory = request
        .memory
        .map(str::trim)
        .filter(|memory| !memory.is_empty())
        .map(bounded_memory);
    let extras = anchors::Extras::gather(&previous, &turns, middle, sizes.all, settings);
    let job = Job {
        previous: &secrets::redact(&previous.body),
        turns: &turns,
        focus: focus.as_deref(),
        memory: memory.as_deref(),
        budget: budget.saturating_sub(extras.cost / 2).max(48),
        replaces: middle,
    };
    let (body, author) = match helper {
        None => (summarize::without_model(&job), Author::Extractive),
        Some(helper) => match summarize::with_model(&job, helper) {
            Ok(body) => (body, Author::Model),
            Err(failure) if falls_back(&failure, settings, request) => {
                (summarize::without_model(&job), Author::Fallback(failure))
            }
            Err(failure) => return Err(failure),
        },
    };
    let body = match author {
        Author::Model | Author::None => body,
        Author::Extractive | Author::Fallback(_) => format!("{EXTRACTED}\n{body}"),
    };
    let earlier = Earlier {
        body,
        anchors: extras.anchors,
        quotes: extras.quotes,
    };
    Ok((earlier.write(&footer(request.session_id)), author))
}

/// First line of a summary that no model wrote. The extractive author passes it over when it meets it again.
const EXTRACTED: &str = "(extracted from the text itself, without a model)";

/// Whether the extractive author takes over. A pass that is not urgent would rather wait for the helper: nothing is lost
/// while the list stays as it is. A request that no longer fits cannot wait.
fn falls_back(failure: &Failure, settings: &Settings, request: &Request<'_>) -> bool {
    if failure.class == Class::Cancelled || settings.abort_on_summary_failure {
        return false;
    }
    let urgent = request.cause == Cause::Overflow
        || (request.window > 0
            && request.current_tokens.is_some_and(|n| {
                n >= request.window - request.output_reserve.min(request.window / 2)
            }));
    urgent || matches!(failure.class, Class::Missing | Class::Other)
}

fn footer(session_id: &str) -> String {
    if session_id.is_empty() {
        "The messages that this summary stands for are kept in the session store; search the session to read them."
            .to_owned()
    } else {
        format!(
            "The messages that this summary stands for are kept in the session store (session {session_id}); search the session to read them."
        )
    }
}

/// A memory provider's text: secrets removed, the middle of a long one left out.
fn bounded_memory(text: &str) -> String {
    let mut out = String::new();
    crate::prompt::shorten_into(&mut out, &secrets::redact(text), 6_000);
    out
}
