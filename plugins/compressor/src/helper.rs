//! The model that writes summaries, as the algorithm sees it.

use std::time::Duration;

/// Why a helper gave no summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The key or the rights are not in order.
    Auth,
    /// Nothing left to spend.
    Quota,
    /// The connection failed, broke off or took too long.
    Network,
    /// The provider has too much to do, or an error of its own.
    Overload,
    /// The request does not fit the helper's window.
    Context,
    /// No text came back.
    Empty,
    /// The text breaks off.
    Truncated,
    /// A refusal, an error text or too few words to be a summary.
    Unusable,
    /// Longer than what it would replace. Not the model's fault.
    TooLong,
    /// The pass was given up.
    Cancelled,
    /// There is no helper, or it was not granted.
    Missing,
    /// Anything else.
    Other,
}

/// A helper that gave no summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub class: Class,
    /// What it said; secrets removed.
    pub message: String,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure without a waiting time.
    #[must_use]
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            retry_after: None,
        }
    }
}

/// One question.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The one user message.
    pub prompt: &'a str,
    /// How many tokens the answer should have at most.
    pub answer_tokens: u64,
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// Why it ended; `length` means that it breaks off.
    pub finish_reason: String,
}

/// A model that writes summaries.
pub trait Helper {
    /// Its window in tokens, 0 when that is not known.
    fn window(&self) -> u64;

    /// Asks it.
    ///
    /// # Errors
    /// Whatever kept it from answering.
    fn ask(&mut self, ask: &Ask<'_>) -> Result<Reply, Failure>;

    /// Tells that `done` of `total` parts have been read.
    fn progress(&mut self, done: usize, total: usize) {
        let _ = (done, total);
    }
}
