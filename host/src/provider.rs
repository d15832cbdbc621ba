//! The model on the other side.
//!
//! A [`Provider`] sends one request, once, and gives back the answer or what went wrong. It never retries: which
//! messages a retry carries is for the conversation to decide (an engine chooses anew each time), and how long to
//! wait before it is [`retry`]'s.

mod assemble;
pub(crate) mod chain;
mod check;
mod classify;
pub mod complete;
mod environment;
pub mod http;
pub mod models;
mod names;
pub mod open;
mod overflow;
pub mod retry;
mod runtime;
pub mod scripted;
mod sse;
mod usage;

pub use check::check;
pub use complete::ModelCompleter;
pub use http::{HttpOptions, HttpProvider};
pub use models::{Window, WindowSource, window};
pub use open::{NoModel, Opened, Wishes, open};
pub use retry::RetryPolicy;
pub use scripted::Scripted;

use std::fmt;
use std::time::Duration;

use hermes_message::Message;
use tokio_util::sync::CancellationToken;

use crate::engine::Usage;

/// Cancels a request from any thread: an interrupt, a stop of the process.
pub type Cancel = CancellationToken;

/// A model that answers chat requests.
///
/// Implementations are shared by all agents of a process and called from their threads, several at once.
pub trait Provider: Send + Sync + fmt::Debug {
    /// A name for people: an address, `scripted`.
    fn name(&self) -> &str;

    /// Members that every request body of a conversation carries behind its messages and tools, as JSON without the
    /// outer braces (`"stream":true,"max_tokens":4096`); may be empty. The same bytes as long as the provider lives.
    fn parameters(&self) -> &str;

    /// Sends one request and blocks until the answer is complete, has failed, or was cancelled.
    ///
    /// `body` is the whole JSON body, [`Provider::parameters`] included. `on` hears the answer as it arrives.
    ///
    /// # Errors
    /// One [`Failure`], with what had arrived by then.
    fn send(
        &self,
        body: &str,
        cancel: &Cancel,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>>;

    /// The window of a model, if the provider says so; may ask it over the network, bounded in time.
    fn context_length(&self, model: &str) -> Option<u64>;
}

/// A part of an answer that has just arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Text of the model's reasoning, where the provider shows it.
    Reasoning(&'a str),
    /// The model begins to call this tool.
    ToolCall(&'a str),
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The assistant's message. Every tool call has an id (`UID-20`) and a name.
    pub message: Message,
    /// Why the model stopped.
    pub finish: Finish,
    /// What the request used, in the five buckets; `None` if the provider did not say.
    pub usage: Option<Usage>,
    /// What was wrong with the answer and could be mended, as sentences for the user.
    pub notes: Vec<String>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It was done.
    Stop,
    /// It calls tools.
    ToolCalls,
    /// The answer reached its longest length; the end is missing.
    Length,
    /// The provider's content policy cut it off.
    Filter,
}

/// Why there is no complete answer.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What happened, where, and what to do: one sentence for the user. Never holds a key.
    pub message: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
    /// What had arrived: an assistant message with the text so far and the tool calls that were complete; `None` if
    /// nothing had.
    pub partial: Option<Message>,
    /// What the failed request used, where the provider said so.
    pub usage: Option<Usage>,
}

/// The kinds of failure that are treated differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The request is too long: a pass, then again.
    Overflow {
        /// The window in tokens, where the error text names it.
        limit: Option<u64>,
        /// The request's size in tokens, where the error text names it.
        requested: Option<u64>,
        /// It was the size in bytes (413), not in tokens.
        payload: bool,
    },
    /// 429: wait, and again.
    RateLimited,
    /// 5xx: wait, and again.
    Server,
    /// No connection, or it broke: wait, and again.
    Connection,
    /// Nothing arrived for too long: again.
    Stalled,
    /// An answer that says nothing, or is not what the protocol says: again.
    BadAnswer,
    /// The provider's content policy refuses the request.
    Blocked,
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// There is nothing left to spend: credit or quota is used up.
    Quota,
    /// The request itself is refused; again would change nothing.
    Refused,
    /// The caller cancelled it.
    Cancelled,
}

impl FailureKind {
    /// Whether the same request may succeed a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::Server | Self::Connection | Self::Stalled | Self::BadAnswer
        )
    }
}

impl Failure {
    /// A failure of which nothing more is known.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            partial: None,
            usage: None,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
