//! What a replay found, in the shape that `--json` prints.

use serde::Serialize;
use std::time::Duration;

/// One conversation, through every engine.
#[derive(Clone, Debug, Serialize)]
pub struct ConversationReport {
    /// The file it stands in.
    pub file: String,
    /// Its number in that file, from 0.
    pub conversation: usize,
    /// How many messages it has.
    pub messages: usize,
    /// The window it was replayed with.
    pub context_length: u64,
    /// How tokens were counted.
    pub tokens: &'static str,
    /// What the recording itself breaks and every request had to mend.
    pub repairs: Vec<RepairLine>,
    /// One entry an engine, in the order they were named.
    pub engines: Vec<EngineReport>,
}

/// A fault of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepairLine {
    /// The message it concerns, from 0.
    pub message: usize,
    /// The rule of a valid request that it breaks.
    pub rule: String,
}

/// One engine on one conversation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EngineReport {
    /// The engine that served.
    pub engine: String,
    /// `built-in`, or the library's path.
    pub loaded_from: String,
    /// Set when another engine was configured, or when this one was taken out on the way.
    pub fallback: Option<Fallback>,
    /// How many requests were made.
    pub requests: usize,
    /// Prompt tokens of all requests.
    pub prompt_tokens: u64,
    /// Of the largest request.
    pub peak_tokens: u64,
    /// Committed passes.
    pub compressions: usize,
    /// Passes that were refused or failed.
    pub refused: usize,
    /// The share of all request bytes that repeated the request before from its start.
    pub prefix_reuse: f64,
    /// Every rule that the engine's raw output, or a final request, breaks.
    pub violations: Vec<ViolationLine>,
    /// Messages in the transcript at the end.
    pub final_messages: usize,
    /// The host's own time for a request, in microseconds.
    pub host_us: Percentiles,
    /// The engine's time for a request, in microseconds.
    pub engine_us: Percentiles,
    /// Requests in which the engine chose other messages than the transcript's.
    pub selections: usize,
    /// Passes that the built-in took because this engine's had failed and the request did not fit.
    pub rescued: usize,
    /// Requests that exceed the window all the same.
    pub over_window: usize,
    /// What the user would have been told, once each.
    pub warnings: Vec<String>,
}

/// Why another engine than the configured one served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The configured name.
    pub wanted: String,
    /// What is wrong with it.
    pub reason: String,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ViolationLine {
    /// `compress`, `select_context` or `request`.
    pub at: &'static str,
    /// The request in which it happened, from 0.
    pub request: usize,
    /// The rule.
    pub rule: String,
    /// The message in the list that breaks it, from 0; `null` if it is the list as a whole.
    pub message: Option<usize>,
    /// The rule broken, in words.
    pub detail: String,
}

/// Two points of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// Exceeded by one in a hundred.
    pub p99: f64,
}

impl Percentiles {
    /// Of these durations, in microseconds; 0 for none.
    #[must_use]
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |hundredth: usize| {
            let index = (times.len() * hundredth).div_ceil(100).saturating_sub(1);
            // Tenths of a microsecond are what the clock can tell.
            times
                .get(index)
                .map_or(0.0, |time| (time.as_secs_f64() * 1e7).round() / 10.0)
        };
        Percentiles {
            p50: at(50),
            p99: at(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_micros).collect();
        assert_eq!(
            Percentiles::of(times),
            Percentiles {
                p50: 100.0,
                p99: 198.0
            }
        );
        assert_eq!(
            Percentiles::of(vec![Duration::from_nanos(1500)]),
            Percentiles { p50: 1.5, p99: 1.5 }
        );
        assert_eq!(Percentiles::of(Vec::new()), Percentiles::default());
    }
}
