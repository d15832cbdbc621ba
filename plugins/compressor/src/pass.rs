//! One pass, from messages to a new list. Pure: the same messages, settings and answers of the helper always give the
//! same list, byte for byte.

mod sizes;
mod sum_up;

use std::collections::BTreeMap;

use crate::Settings;
use crate::assemble::{self, Step};
use crate::boundaries::{self, Bounds, Wishes};
use crate::carrier;
use crate::fit::{self, Cut, Room};
use crate::helper::{Failure, Helper};
use crate::proactive;
use crate::row::{Body, Row};
use crate::settings::TailMode;
use crate::tokens;
use sizes::Sizes;
use sum_up::Middle;

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

impl Request<'_> {
    /// The window without what is kept for the answer; 0 = not known.
    #[must_use]
    pub fn usable(&self) -> u64 {
        self.window - self.output_reserve.min(self.window / 2)
    }
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

/// So often a plan that did not come out is made again.
const REPLANS: usize = 4;
/// A carrier without any summary takes about so many tokens.
const FRAME: u64 = 220;

/// Runs a pass. Without a helper the extractive author writes.
#[must_use]
pub fn compress(
    rows: &[Row<'_>],
    settings: &Settings,
    helper: Option<&mut dyn Helper>,
    request: &Request<'_>,
) -> Outcome {
    if request.cause == Cause::Prune {
        return proactive::prune(rows, settings, request);
    }
    let sizes = Sizes::of(rows, settings, request);
    let found = find_carriers(rows);
    let carriers: Vec<usize> = found.keys().copied().collect();
    let bounds = cuts(rows, settings, request, &carriers, sizes.tail);

    let tokens: u64 = (0..rows.len())
        .filter(|at| bounds.is_middle(*at))
        .map(|at| rows[at].cost())
        .sum();
    let futile =
        request.has_strike && request.cause == Cause::Automatic && tokens * 10 < request.threshold;
    if bounds.middle() < 2 || tokens <= FRAME + 60 || futile {
        return shorten(rows, settings, request, bounds, &carriers, sizes);
    }
    let middle = Middle {
        rows,
        settings,
        request,
        bounds: &bounds,
        carriers: &found,
        sizes,
        tokens,
    };
    let (text, author) = match middle.sum_up(helper) {
        Ok(written) => written,
        Err(failure) => {
            let sentence = format!("the conversation stays as it is: {}", failure.message);
            return Outcome::Unchanged(Why::HelperFailed(failure), sentence);
        }
    };
    let spent = tokens::of_text(&text);
    let room = Room {
        tail: sizes.tail,
        all: sizes.all.saturating_sub(spent),
        hard: sizes.hard.saturating_sub(spent),
    };
    let steps = fitted(rows, &bounds, settings, room, sizes.hard, |cuts| {
        assemble::write(rows, &bounds, cuts, Some(&text), &carriers)
    });
    finish(rows, steps, author, sizes)
}

/// Where the transcript is cut.
fn cuts(
    rows: &[Row<'_>],
    settings: &Settings,
    request: &Request<'_>,
    carriers: &[usize],
    tail: u64,
) -> Bounds {
    let size = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let first_time = !request.compressed_before && carriers.is_empty();
    let wishes = Wishes {
        protect_first: if first_time {
            size(settings.protect_first_n)
        } else {
            0
        },
        protect_last: size(settings.protect_last_n),
        users: size(settings.min_tail_user_messages),
        tail_budget: tail,
        lean: settings.tail_mode == TailMode::Lean,
    };
    let mut bounds = boundaries::find(rows, carriers, wishes);
    assemble::skip_blank(rows, &mut bounds);
    assemble::avoid_join(rows, &mut bounds, carriers, tail / 4);
    assemble::free_place(rows, &mut bounds);
    bounds
}

/// Nothing is summed up, so everything stays; what is too large for the request is still cut.
fn shorten(
    rows: &[Row<'_>],
    settings: &Settings,
    request: &Request<'_>,
    bounds: Bounds,
    carriers: &[usize],
    sizes: Sizes,
) -> Outcome {
    if sizes.before <= sizes.all {
        return Outcome::Unchanged(Why::NothingToDo, nothing_to_do(request));
    }
    let first = bounds.first();
    let bounds = Bounds {
        head_end: first,
        tail_start: first,
        pinned: None,
        ..bounds
    };
    let room = Room {
        tail: sizes.all,
        all: sizes.all,
        hard: sizes.hard,
    };
    let steps = fitted(rows, &bounds, settings, room, sizes.hard, |cuts| {
        assemble::write(rows, &bounds, cuts, None, carriers)
    });
    if steps.iter().all(|step| matches!(step, Step::Keep(_))) {
        return Outcome::Unchanged(Why::NothingToDo, nothing_to_do(request));
    }
    finish(rows, steps, Author::None, sizes)
}

fn finish(rows: &[Row<'_>], steps: Vec<Step>, author: Author, sizes: Sizes) -> Outcome {
    let Sizes { before, fixed, .. } = sizes;
    let after = total(rows, &steps);
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

/// The list with what stays shortened until it can be sent. A cut message can turn out larger than planned, so the plan
/// is made again with less room while that helps.
fn fitted(
    rows: &[Row<'_>],
    bounds: &Bounds,
    settings: &Settings,
    mut room: Room,
    limit: u64,
    write: impl Fn(&BTreeMap<usize, Cut>) -> Vec<Step>,
) -> Vec<Step> {
    let mut steps = write(&fit::plan(rows, bounds, settings, room));
    let mut size = total(rows, &steps);
    for _ in 0..REPLANS {
        if size <= limit {
            break;
        }
        room.hard = room.hard.saturating_sub(size - limit);
        let again = write(&fit::plan(rows, bounds, settings, room));
        let smaller = total(rows, &again);
        if smaller >= size {
            break;
        }
        (steps, size) = (again, smaller);
    }
    steps
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

fn nothing_to_do(request: &Request<'_>) -> String {
    match request.cause {
        Cause::Manual => {
            "nothing to compress yet: the whole conversation is what must stay".to_owned()
        }
        _ => "nothing to compress: all of the conversation is what must stay".to_owned(),
    }
}

/// The earlier summaries of a transcript, by message, and the own words of messages that they had joined.
pub(crate) type Carriers = BTreeMap<usize, carrier::Found>;

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
