//! One conversation's context: what an engine sees, what a provider gets, and when a pass runs. No I/O, no clock.
//!
//! The story of one request, as both drivers (a replay, an agent) tell it:
//!
//! 1. [`Conversation::push`] the new messages; the [`Transcript`] keeps every list and total as it grows.
//! 2. [`Conversation::prepare`] asks the engine whether to compress, and runs the passes ([`pass`]) that
//!    [`backoff`] allows. A result is checked ([`checks`]) and adopted whole, or the transcript stays as it was.
//! 3. [`Conversation::request`] lets the engine choose this call's messages ([`selection`]), makes them valid
//!    ([`assembly`]) and joins them into a body ([`request`]). Refused as too long: [`Conversation::overflow`], and
//!    again.
//! 4. [`Conversation::answered`] takes the usage; the provider's own figure outranks the estimate ([`accounting`]).
//! 5. At the end of a turn, [`Conversation::turn_complete`].

pub mod accounting;
pub mod assembly;
pub mod backoff;
pub mod checks;
mod drive;
mod handle;
pub mod pass;
mod passes;
pub mod port;
pub mod request;
mod run;
pub mod selection;
pub mod threshold;
pub mod transcript;

use std::collections::HashSet;

use hermes_message::Message;
use hermes_message::repair::RepairNote;

use accounting::Accounting;
use assembly::Assembly;
use backoff::BackOff;
pub use handle::{AgentEngine, Watcher};
pub use pass::Outcome;
use pass::PassMachine;
pub use port::{Engine, PassStore, Stored};
use request::{Body, Frame};
pub use transcript::Transcript;

/// What steers one conversation, from the configuration and the model.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The session's id.
    pub session_id: String,
    /// What the ids of this agent's passes begin with: unique, because a session can be resumed.
    pub pass_prefix: String,
    /// The model's window; 0 = unknown.
    pub context_length: u64,
    /// `compression.enabled`: whether passes run without being asked for by the user.
    pub automatic: bool,
    /// `compression.max_attempts`: passes in one turn.
    pub max_attempts: u32,
    /// The first session of the lineage; empty = this one.
    pub root_session_id: String,
    /// The session that this one was made from; empty = none.
    pub parent_session_id: String,
    /// The surface's own name of the conversation; empty = none.
    pub conversation_id: String,
    /// The surface, for the engine.
    pub platform: String,
    /// The user's folder of the host, for the engine.
    pub hermes_home: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            session_id: String::new(),
            pass_prefix: String::new(),
            context_length: 0,
            automatic: true,
            max_attempts: 3,
            root_session_id: String::new(),
            parent_session_id: String::new(),
            conversation_id: String::new(),
            platform: String::new(),
            hermes_home: String::new(),
        }
    }
}

/// One conversation's context.
#[derive(Debug)]
pub struct Conversation {
    settings: Settings,
    frame: Frame,
    transcript: Transcript,
    whole: Assembly,
    chosen: Assembly,
    account: Accounting,
    backoff: BackOff,
    machine: PassMachine,
    /// Whether the back-off lets passes run for the request at hand; asked once for each.
    leave: Option<bool>,
    /// How large the last request was that a pass was run for because it did not fit.
    overflowed: Option<u64>,
    /// Whether that pass was the built-in's.
    built_in_tried: bool,
    /// How large the request was for which the last automatic pass ran.
    asked_at: u64,
    passes: u64,
    last_pass_id: String,
    told: HashSet<Told>,
    warnings: Vec<String>,
}

/// What the user is told once a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Told {
    Refused,
    Unchanged,
    Blocked,
    NothingToAnswer,
    Skipped,
    /// The built-in took a pass; the engine could have been asked, or not.
    InPlace {
        is_held_up: bool,
    },
}

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The body.
    pub body: Body,
    /// The messages in it.
    pub messages: Vec<Message>,
    /// The estimate of those messages, without the frame's overhead.
    pub message_tokens: u64,
    /// The best figure for the whole request.
    pub tokens: u64,
    /// What had to be mended, with indexes into the list before.
    pub repairs: Vec<RepairNote>,
    /// The engine's own list, if it chose one: raw, before anything was mended.
    pub selected: Option<Vec<Message>>,
    /// A list that the engine chose and that is not in the request, because mending left nothing to answer in it.
    pub unusable: Option<Vec<Message>>,
}

impl Conversation {
    /// A conversation that begins with an empty transcript.
    #[must_use]
    pub fn new(settings: Settings, frame: Frame) -> Self {
        Conversation {
            account: Accounting::new(frame.tool_tokens()),
            settings,
            frame,
            transcript: Transcript::default(),
            whole: Assembly::default(),
            chosen: Assembly::default(),
            backoff: BackOff::default(),
            machine: PassMachine::default(),
            leave: None,
            overflowed: None,
            built_in_tried: false,
            asked_at: 0,
            passes: 0,
            last_pass_id: String::new(),
            told: HashSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Appends a message to the transcript.
    pub fn push(&mut self, message: Message) {
        self.transcript.push(message);
    }

    /// The live transcript.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The token account.
    #[must_use]
    pub fn account(&self) -> &Accounting {
        &self.account
    }

    /// The best figure for a request that carries the whole transcript.
    #[must_use]
    pub fn next_tokens(&self) -> u64 {
        self.account.request(self.transcript.request_tokens())
    }

    /// Committed passes so far, and the id of the newest; empty = none.
    #[must_use]
    pub fn last_pass_id(&self) -> &str {
        &self.last_pass_id
    }

    /// Puts a system message before every request. It is the host's own: no pass sees it, so none can lose or
    /// double it. A transcript that begins with one of its own keeps that.
    pub fn set_system(&mut self, system: Option<Message>) {
        self.transcript.set_system(system);
        self.account.forget_anchor();
    }

    /// Another list takes the place of the whole transcript: a resumed session, a rewind, what another process made
    /// of it. `last_pass_id` is the newest pass committed to it.
    pub fn restore(&mut self, messages: &[Message], last_pass_id: &str) {
        self.transcript.replace(messages);
        self.account.forget_anchor();
        last_pass_id.clone_into(&mut self.last_pass_id);
    }

    /// The conversation goes on in another session of the same lineage.
    pub fn move_to(&mut self, session_id: &str) {
        if self.settings.session_id == session_id {
            return;
        }
        let old = std::mem::replace(&mut self.settings.session_id, session_id.to_owned());
        if self.settings.root_session_id.is_empty() {
            self.settings.root_session_id.clone_from(&old);
        }
        self.settings.parent_session_id = old;
    }

    /// Where the session at hand comes from, as the store knows it; empty = nowhere.
    pub fn set_origin(&mut self, parent_session_id: &str, root_session_id: &str) {
        parent_session_id.clone_into(&mut self.settings.parent_session_id);
        root_session_id.clone_into(&mut self.settings.root_session_id);
    }

    /// Whatever ran a pass is not there any more; nothing of it was adopted.
    pub fn break_off(&mut self) {
        self.machine = PassMachine::default();
    }

    /// The provider takes less than was thought.
    pub fn set_window(&mut self, context_length: u64) {
        self.settings.context_length = context_length;
    }

    /// The tools have changed: other schemas in the frame, and their size in the account.
    pub fn set_frame(&mut self, frame: Frame) {
        self.account.set_fixed(frame.tool_tokens());
        self.frame = frame;
    }

    /// What the user is to be told now. Each kind comes once a session.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The model has changed: another frame and window, and nothing learnt about the old one counts.
    pub fn switch_model(&mut self, frame: Frame, context_length: u64) {
        self.account = Accounting::new(frame.tool_tokens());
        self.frame = frame;
        self.settings.context_length = context_length;
        self.backoff.clear();
        self.overflowed = None;
        self.built_in_tried = false;
    }

    fn tell_once(&mut self, what: Told, text: impl FnOnce() -> String) {
        if self.told.insert(what) {
            self.warnings.push(text());
        }
    }
}
