//! A pass that only shortens old tool results, without any summary. It costs the prompt cache, so it must free something.

use std::collections::{BTreeMap, HashMap};

use hermes_message::Role;

use crate::Settings;
use crate::assemble::Step;
use crate::boundaries::{self, Wishes};
use crate::fit::may_edit;
use crate::pass::{Author, Made, Outcome, Request, Why, total};
use crate::prune;
use crate::row::{Body, Row};
use crate::settings::TailMode;

/// Results of at least so many bytes become a hint to a later one with the same text.
const REPEAT_FROM: usize = 200;
/// The newest results with images keep them.
const IMAGES: usize = 3;

/// Shortens what lies before the tail.
#[must_use]
pub fn prune(rows: &[Row<'_>], settings: &Settings, request: &Request<'_>) -> Outcome {
    let before: u64 = rows.iter().map(Row::cost).sum();
    let tail_budget = boundaries::tail_budget(request.window, request.threshold, settings);
    let wishes = Wishes {
        protect_first: 0,
        protect_last: usize::try_from(settings.protect_last_n).unwrap_or(usize::MAX),
        users: 1,
        tail_budget,
        lean: settings.tail_mode == TailMode::Lean,
    };
    let end = boundaries::find(rows, &[], wishes).tail_start;
    let edits = edits(rows, end, settings.prune_min_result_chars);

    let mut steps: Vec<Step> = Vec::new();
    let mut from = 0;
    for (index, json) in edits {
        if from < index {
            steps.push(Step::Keep(from..index));
        }
        from = index + 1;
        steps.push(Step::Edit { index, json });
    }
    if from < rows.len() {
        steps.push(Step::Keep(from..rows.len()));
    }
    let after = total(rows, &steps);
    let gain = before.saturating_sub(after);
    if gain == 0 {
        return Outcome::Unchanged(
            Why::NothingToDo,
            "no old tool output can be shortened".to_owned(),
        );
    }
    if gain < settings.prune_min_reclaim_tokens {
        let sentence = format!(
            "shortening old tool output would free {gain} tokens, less than compression.proactive_prune_min_reclaim_tokens ({})",
            settings.prune_min_reclaim_tokens
        );
        return Outcome::Unchanged(Why::NoGain, sentence);
    }
    Outcome::Made(Made {
        steps,
        author: Author::None,
        before,
        after,
        fixed: before.saturating_sub(gain),
    })
}

/// The shortened messages before `end`.
fn edits(rows: &[Row<'_>], end: usize, long: usize) -> BTreeMap<usize, String> {
    let mut edits = BTreeMap::new();
    let mut seen: HashMap<String, ()> = HashMap::new();
    let mut images = 0;
    for (at, row) in rows.iter().enumerate().rev() {
        if row.role == Role::Assistant
            && row.calls
            && at < end
            && may_edit(rows, at)
            && let Some(json) = prune::cut_arguments(row.json)
        {
            edits.insert(at, json);
        }
        if row.role != Role::Tool || row.json.len() < REPEAT_FROM {
            continue;
        }
        let body = Body::read(row.json);
        let has_images = body.media.images > 0;
        images += usize::from(has_images);
        let repeated =
            body.text.len() >= REPEAT_FROM && seen.insert(body.text.to_string(), ()).is_some();
        if at >= end || !may_edit(rows, at) {
            continue;
        }
        let json = if repeated && !has_images {
            prune::back_reference(row.json)
        } else if body.text.len() >= long {
            prune::one_line(row.json)
        } else if has_images && images > IMAGES {
            prune::without_images(row.json)
        } else {
            None
        };
        if let Some(json) = json {
            edits.insert(at, json);
        }
    }
    edits
}
