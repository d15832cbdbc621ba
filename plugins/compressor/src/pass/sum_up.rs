//! The middle of a pass: from the messages that go to the text that stands for them.

use crate::Settings;
use crate::anchors::Extras;
use crate::boundaries::Bounds;
use crate::carrier::Earlier;
use crate::helper::{Class, Failure, Helper};
use crate::pass::sizes::Sizes;
use crate::pass::{Author, Carriers, Cause, FRAME, Request};
use crate::row::Row;
use crate::secrets;
use crate::summarize::{self, Job, Reading};
use crate::turns::{self, Skip};

/// Shortest budget of a summary, where the window allows.
const LEAST_SUMMARY: u64 = 2_000;
/// First line of a summary that no model wrote. The extractive author passes it over when it meets it again.
const EXTRACTED: &str = "(extracted from the text itself, without a model)";
/// Bytes of a memory provider's text.
const MEMORY: usize = 6_000;

/// What is summed up, and under which circumstances.
pub(crate) struct Middle<'a> {
    pub(crate) rows: &'a [Row<'a>],
    pub(crate) settings: &'a Settings,
    pub(crate) request: &'a Request<'a>,
    pub(crate) bounds: &'a Bounds,
    pub(crate) carriers: &'a Carriers,
    pub(crate) sizes: Sizes,
    /// Estimate of the messages that go.
    pub(crate) tokens: u64,
}

impl Middle<'_> {
    /// The text of the carrier, and who wrote it.
    ///
    /// # Errors
    /// The helper model failed, and nothing takes its place.
    pub(crate) fn sum_up(
        &self,
        helper: Option<&mut dyn Helper>,
    ) -> Result<(String, Author), Failure> {
        let Self {
            request,
            sizes,
            tokens,
            ..
        } = *self;
        let mut previous = Earlier::default();
        for parts in self.carriers.values() {
            previous.merge(parts.earlier.clone());
        }
        let given = |text: Option<&'_ str>| {
            text.map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let focus = given(request.focus).map(|focus| secrets::redact(&focus).into_owned());
        let memory = given(request.memory).map(|memory| {
            let mut out = String::new();
            secrets::cut_into(&mut out, &secrets::redact(&memory), MEMORY);
            out
        });
        // Never more than what is replaced, or nothing would be won.
        let budget = (tokens / 5)
            .max(LEAST_SUMMARY)
            .min(sizes.summary)
            .min(tokens.saturating_sub(FRAME) * 3 / 4)
            .max(48);
        let body = secrets::redact(&previous.body).into_owned();
        let mut job = Job {
            previous: &body,
            focus: focus.as_deref(),
            memory: memory.as_deref(),
            budget,
            replaces: tokens,
        };

        let reading = match &helper {
            None => Ok(Reading::without_model()),
            Some(helper) => Reading::with_model(helper.window(), &job, self.costs()),
        };
        let share = reading
            .as_ref()
            .map_or(Reading::without_model().share, |reading| reading.share);
        let mut turns = turns::read(
            self.rows,
            self.bounds.head_end..self.bounds.tail_start,
            share,
            |at| self.skip(at),
        );
        let extras = Extras::gather(&previous, &turns, tokens, sizes.all, self.settings);
        job.budget = budget.saturating_sub(extras.cost / 2).max(48);

        let written = match helper {
            None => Err(None),
            Some(helper) => reading
                .and_then(|reading| summarize::with_model(&job, &turns, reading, helper))
                .map_err(Some),
        };
        let (body, author) = match written {
            Ok(body) => (body, Author::Model),
            Err(Some(failure)) if !self.may_do_without(&failure) => return Err(failure),
            Err(failure) => {
                let author = match failure {
                    Some(failure) if failure.class != Class::Missing => Author::Fallback(failure),
                    _ => Author::Extractive,
                };
                (
                    format!(
                        "{EXTRACTED}\n{}",
                        summarize::without_model(&job, &mut turns)
                    ),
                    author,
                )
            }
        };
        let carrier = Earlier {
            body,
            anchors: extras.anchors,
            quotes: extras.quotes,
        };
        Ok((carrier.write(&footer(request.session_id)), author))
    }

    fn costs(&self) -> impl Iterator<Item = u64> {
        let range = self.bounds.head_end..self.bounds.tail_start;
        range
            .filter(|at| self.bounds.is_middle(*at) && !self.carriers.contains_key(at))
            .map(|at| self.rows[at].cost())
    }

    fn skip(&self, at: usize) -> Option<Skip> {
        if self.bounds.pinned == Some(at) {
            return Some(Skip::Whole);
        }
        self.carriers
            .get(&at)
            .map(|parts| parts.own.clone().map_or(Skip::Whole, Skip::Own))
    }

    /// Whether the extractive author takes over. A pass that is not urgent would rather wait for the helper: nothing is
    /// lost while the list stays as it is. A request that does not fit cannot wait.
    fn may_do_without(&self, failure: &Failure) -> bool {
        if failure.class == Class::Cancelled || self.settings.abort_on_summary_failure {
            return false;
        }
        let usable = self.request.usable();
        let overflows = usable > 0 && self.request.current_tokens.is_some_and(|n| n >= usable);
        let urgent = self.request.cause == Cause::Overflow || overflows;
        urgent || matches!(failure.class, Class::Missing | Class::Other)
    }
}

fn footer(session_id: &str) -> String {
    let session = if session_id.is_empty() {
        String::new()
    } else {
        format!(" (session {session_id})")
    };
    format!(
        "The messages that this summary stands for are left out here. Where the host keeps sessions, they are in the session store{session}: search it to read them."
    )
}
