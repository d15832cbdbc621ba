//! A recorded conversation, played to an engine as if it happened now: no network, no key, no store.
//!
//! [`session`] drives [`crate::context`] the way an agent does from a provider; where the agent would wait for an
//! answer, the recorded one follows. [`watch`] puts a stopwatch and a notebook between the two, [`count`] says how
//! many tokens a request has, [`report`] is what comes out.

pub mod count;
pub mod report;
pub mod session;
pub mod summarizer;
pub mod watch;

pub use count::{Counter, Tokens};
pub use session::{Player, SentRequest};
pub use summarizer::Summarizer;
pub use watch::Watched;
