//! One conversation at work: drives [`crate::context`] from a provider and a store.
//!
//! A [`Host`] is what all conversations of a program share: the configuration, the registered engine, the model, the
//! store. An [`Agent`] is one conversation with its own clone of the engine (CLONE-1) and its own session.
//!
//! ```no_run
//! use hermes::agent::{AgentOptions, Event, Host, HostOptions};
//!
//! let host = Host::open(HostOptions::default())?;
//! let mut agent = host.agent(AgentOptions::default())?;
//! let report = agent.turn("What is in this directory?", &mut |event| {
//!     if let Event::Text(text) = event {
//!         print!("{text}");
//!     }
//! });
//! println!("\n{:?}, {} requests", report.outcome, report.api_calls);
//! agent.close("done");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A turn, in this order: the user's message is written to the session (ids are minted); passes that the engine asks
//! for; the request is assembled, the engine may choose its messages, it is made valid and sent; the answer is
//! written; tools are called, their results written, and the next request follows. Every turn ends in one place,
//! whatever happened in it.

mod event;
mod exchange;
mod host;
mod indexer;
mod instead;
mod interrupt;
mod lifecycle;
mod open_sessions;
mod passes;
mod prompt;
mod record;
pub mod registry;
mod rescue;
mod status;
mod toolbox;
pub mod tools;
mod turn;

pub use event::{Event, Sink, TurnReport};
pub use host::{Host, HostError, HostOptions};
pub use interrupt::Interrupt;
pub use lifecycle::{Closed, Rewound};
pub use status::{AgentStatus, Manager};

use std::collections::HashSet;
use std::time::SystemTime;

use hermes_message::build;

use crate::config::HermesHome;
use crate::context::request::Frame;
use crate::context::{AgentEngine, Conversation, Engine, Settings};
use crate::engine::StartReason;
use crate::store::{Session, StoreError};
use instead::Instead;
use open_sessions::Held;
use record::{Facts, Record};
use toolbox::Toolbox;
use tools::{HostTool, Place};

/// Which session an agent begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// A new one.
    #[default]
    New,
    /// The stored one whose id is, or begins with, this text.
    Resume(String),
    /// The stored one that was used last; a new one if there is none.
    Latest,
}

impl Begin {
    /// The id of the stored session, if there is one to go on with.
    fn session(&self, host: &Host) -> Result<Option<String>, AgentError> {
        let store = host.store();
        match self {
            Begin::New => Ok(None),
            Begin::Resume(prefix) => {
                let store = store.ok_or(AgentError::NoStore("resume"))?;
                Ok(Some(store.find_session(prefix)?))
            }
            Begin::Latest => {
                let newest =
                    store.map_or_else(|| Ok(Vec::new()), |store| store.sessions(LATEST))?;
                // A sub-agent's session is not the person's.
                let mut persons = newest
                    .into_iter()
                    .filter(|session| session.message_count > 0 && !is_delegates(session));
                Ok(persons.next().map(|session| session.id))
            }
        }
    }
}

/// What an agent is made of.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Its session.
    pub begin: Begin,
    /// Another model than the host's.
    pub model: Option<String>,
    /// The system message of a new session. Default: `agent.system_prompt` of the configuration, else the host's own.
    pub system_prompt: Option<String>,
    /// The surface's own name of the conversation, told to the engine.
    pub conversation_id: String,
    /// Whether the host's own tools are offered.
    pub tools: bool,
    /// Tools of the program that embeds the host, in the order in which requests list them: behind the host's own, before
    /// the engine's. One whose name is taken already, or that no provider would take, is left out with a warning; an
    /// engine's tool of such a name is left out, too.
    pub host_tools: Vec<HostTool>,
    /// No routine status lines.
    pub quiet: bool,
}

impl Default for AgentOptions {
    fn default() -> Self {
        AgentOptions {
            begin: Begin::New,
            model: None,
            system_prompt: None,
            conversation_id: String::new(),
            tools: true,
            host_tools: Vec::new(),
            quiet: false,
        }
    }
}

/// Why there is no agent, or why it could not do something with sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The store cannot do it.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// There is no store.
    #[error(
        "nothing of this conversation is kept, so there is nothing to {0}; see the warning at the start"
    )]
    NoStore(&'static str),
    /// The newest messages are not in the store yet.
    #[error(
        "could not {0}: the newest messages could not be saved yet. Free some space or unlock the store, and try again"
    )]
    Unsaved(&'static str),
    /// Another process has the session open.
    #[error(
        "session {0} is open in another process; close it there first, or branch it: `hermes sessions branch {0}`"
    )]
    Open(String),
    /// Not even the built-in engine could be made.
    #[error("no context engine for this agent: {0}")]
    Engine(String),
}

/// One conversation. It may move between threads, and is used by one at a time.
///
/// Dropped, it ends its session as [`Agent::close`] does.
pub struct Agent {
    host: Host,
    id: String,
    engine: AgentEngine,
    conversation: Conversation,
    record: Record,
    toolbox: Toolbox,
    place: Place,
    interrupt: Interrupt,
    /// The conversation's own model, and its window.
    model: String,
    window: u64,
    /// Who is asked in its stead.
    instead: Option<Instead>,
    options: AgentOptions,
    held: Option<Held>,
    turns: u32,
    /// Sessions that this agent has begun or taken up.
    begun: u32,
    compressions: u32,
    last_active: Option<SystemTime>,
    told: HashSet<String>,
    /// What is to be told with the next turn.
    pending: Vec<String>,
    is_closed: bool,
}

impl Agent {
    fn open(host: Host, options: AgentOptions) -> Result<Self, AgentError> {
        Self::open_held(host, options, None)
    }

    /// `held`: the session is this process's already.
    fn open_held(
        host: Host,
        options: AgentOptions,
        held: Option<Held>,
    ) -> Result<Self, AgentError> {
        Self::make(host, options, held, None)
    }

    /// A child agent: its own clone of the engine, its own budget and its own session below this one's. Nothing that
    /// happens to it changes this agent (CLONE-2).
    ///
    /// # Errors
    /// When no instance can be made for it.
    pub fn child(&self, options: AgentOptions) -> Result<Agent, AgentError> {
        let parent = Parent {
            session: self.record.session().to_owned(),
            root: self.root().to_owned(),
            is_stored: self.record.exists(),
        };
        let options = AgentOptions {
            begin: Begin::New,
            ..options
        };
        Self::make(self.host.clone(), options, None, Some(parent))
    }

    fn make(
        host: Host,
        options: AgentOptions,
        held: Option<Held>,
        parent: Option<Parent>,
    ) -> Result<Self, AgentError> {
        let inner = &host.inner;
        let resumed = match (options.begin.session(&host)?, &inner.store) {
            (Some(session), Some(store)) => Some(store.resume(&session)?),
            _ => None,
        };
        let model = options.model.clone().unwrap_or_else(|| inner.model.clone());
        let window = host.window(&model);
        let id = uuid::Uuid::new_v4().simple().to_string();
        let instead = Instead::now(&inner.chain, 0, None);
        let info = instead::info(&host, &model, window.tokens, instead.as_ref());
        let handle = host.engine_for_agent()?;
        let mut engine = inner.registry.agent_engine(handle, &info);
        let interrupt = Interrupt::default();
        let watched = interrupt.clone();
        engine.watch(Box::new(move |pass| watched.watch(pass)));
        let own = if options.tools {
            tools::built_in()
        } else {
            Vec::new()
        };
        let (toolbox, left_out) = Toolbox::new(own, &options.host_tools);
        let directory =
            std::fs::canonicalize(&inner.directory).unwrap_or_else(|_| inner.directory.clone());
        let compression = inner.registry.config().compression();
        let in_place = compression.in_place;
        let facts = Facts {
            source: inner.platform.clone(),
            model: model.clone(),
            system_prompt: None,
            parent: parent
                .as_ref()
                .filter(|parent| parent.is_stored)
                .map(|parent| parent.session.clone()),
            directory: Some(directory.display().to_string()),
            model_config: parent
                .as_ref()
                .map(|parent| serde_json::json!({DELEGATE: parent.session}).to_string()),
        };
        let record = Record::new(inner.store.clone(), &id, facts, in_place);
        let mut agent = Agent {
            id: id[..12].to_owned(),
            engine,
            conversation: Conversation::new(Settings::default(), Frame::new("", &[])),
            record,
            toolbox,
            place: Place {
                directory,
                kept_back: std::fs::canonicalize(inner.home.path()).ok(),
                cancel: crate::provider::Cancel::new(),
            },
            interrupt,
            model,
            window: window.tokens,
            instead,
            held,
            turns: 0,
            begun: 0,
            compressions: 0,
            last_active: None,
            told: HashSet::new(),
            pending: if options.model.is_some() {
                window.warning.into_iter().collect()
            } else {
                // The host has said it.
                Vec::new()
            },
            options,
            // The engine has not heard of a session yet.
            is_closed: true,
            host,
        };
        agent.tell_later(left_out);
        match resumed {
            Some(resumed) => agent.take_up(resumed, StartReason::Resume, "")?,
            None => {
                let (reason, parent) = match parent {
                    None => (StartReason::New, None),
                    Some(parent) => (StartReason::Delegate, Some(parent)),
                };
                agent.begin_new(reason, "", parent);
            }
        }
        agent.is_closed = false;
        Ok(agent)
    }

    /// The settings of a conversation in the session at hand.
    fn settings(&self, parent: Option<Parent>) -> Settings {
        let compression = self.host.config().compression();
        let (root, parent) = match parent {
            Some(parent) => (parent.root, parent.session),
            None => (String::new(), String::new()),
        };
        Settings {
            session_id: self.record.session().to_owned(),
            // A session can be resumed, and its passes go on being told apart.
            pass_prefix: format!("{}-{}-", self.id, self.begun),
            context_length: self.asked_window(),
            automatic: compression.enabled,
            max_attempts: u32::try_from(compression.max_attempts).unwrap_or(u32::MAX),
            root_session_id: root,
            parent_session_id: parent,
            conversation_id: self.options.conversation_id.clone(),
            platform: self.host.inner.platform.clone(),
            hermes_home: self.host.home().display().to_string(),
        }
    }

    fn frame(&self) -> Frame {
        Frame::new(self.asked_model(), self.toolbox.schemas())
            .with_parameters(self.asked_provider().parameters())
    }

    /// A conversation object for the session at hand, with the engine's tools as they are now.
    fn fresh_conversation(&mut self, parent: Option<Parent>) {
        let warnings = self.toolbox.refresh(&mut self.engine);
        self.tell_later(warnings);
        self.begun += 1;
        let settings = self.settings(parent);
        self.conversation = Conversation::new(settings, self.frame());
        let prompt = self.system_prompt();
        self.conversation
            .set_system((!prompt.is_empty()).then(|| build::system(&prompt)));
        self.record.facts_mut().system_prompt = Some(prompt);
    }

    fn system_prompt(&self) -> String {
        let own = self.record.facts().system_prompt.clone();
        own.or_else(|| self.options.system_prompt.clone())
            .or_else(|| self.host.config().agent().system_prompt.clone())
            .unwrap_or_else(|| prompt::default(&self.place.directory, self.options.tools))
    }

    fn root(&self) -> &str {
        let settings = self.conversation.settings();
        match settings.root_session_id.as_str() {
            "" => &settings.session_id,
            root => root,
        }
    }

    /// Stops what this agent is doing, from another thread.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// What is to be told with the next turn, or now.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.gather_warnings();
        std::mem::take(&mut self.pending)
    }

    /// What the engine and the conversation have to say, each once a session.
    fn gather_warnings(&mut self) {
        let mut warnings = self.engine.take_notices();
        warnings.extend(self.conversation.take_warnings());
        self.tell_later(warnings);
    }

    fn tell_later(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            if self.told.insert(warning.clone()) {
                tracing::warn!(session = self.record.session(), "{warning}");
                self.pending.push(warning);
            }
        }
    }
}

/// Whether somebody, here or in another process, has the session open.
#[must_use]
pub fn is_open(home: &HermesHome, session: &str) -> bool {
    let open = open_sessions::OpenSessions::below(home.path());
    // Where nothing can be noted, nothing is known to be open.
    open.hold(session).is_ok_and(|held| held.is_none())
}

/// How far back the newest conversation of a person is looked for.
const LATEST: usize = 64;

fn is_delegates(session: &Session) -> bool {
    let config = session.model_config.as_deref().unwrap_or_default();
    config.contains(DELEGATE)
}

/// Marks the session of a child agent, as the original does.
const DELEGATE: &str = "_delegate_from";

/// Where a child agent comes from.
#[derive(Clone, Debug)]
struct Parent {
    session: String,
    root: String,
    is_stored: bool,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("session", &self.record.session())
            .field("engine", &self.engine)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.finish("dropped");
    }
}
