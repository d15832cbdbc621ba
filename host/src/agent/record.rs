//! A conversation's rows: what the store has of it, and what it does not have yet.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hermes_message::Message;

use crate::context::{Conversation, PassStore, Stored};
use crate::store::{self, Mark, NewSession, PassLock, Refreshed, Store, StoreError};

/// How long a pass keeps its session without a sign of life.
const LEASE: Duration = Duration::from_secs(300);
/// How often a pass shows that it lives.
const REFRESH: Duration = Duration::from_secs(60);

/// What a session's row says beside its messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) source: String,
    pub(crate) model: String,
    pub(crate) system_prompt: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) directory: Option<String>,
    /// JSON for the session's `model_config`.
    pub(crate) model_config: Option<String>,
}

impl Facts {
    fn row<'a>(&'a self, id: Option<&'a str>) -> NewSession<'a> {
        NewSession {
            id,
            source: &self.source,
            model: Some(&self.model),
            model_config: self.model_config.as_deref(),
            system_prompt: self.system_prompt.as_deref(),
            parent: self.parent.as_deref(),
            cwd: self.directory.as_deref(),
            ..NewSession::default()
        }
    }
}

/// The rows of one agent's session.
///
/// A message that could not be written stays in the transcript and is written with the next ones: nothing is lost
/// because a disk was full for a while.
#[derive(Debug)]
pub(crate) struct Record {
    /// `None`: nothing is kept, because the store could not be opened.
    store: Option<Arc<Store>>,
    agent: String,
    session: String,
    facts: Facts,
    mark: Mark,
    /// The session's row exists. It is made with the first message, so that a chat nobody says anything in leaves none.
    exists: bool,
    in_place: bool,
    /// How many messages at the transcript's end have no row yet.
    unsaved: usize,
    told_unsaved: bool,
    /// Others have changed what this agent knows of the session.
    is_stale: bool,
    /// How many messages were written since that was so.
    stray: usize,
    pass: Option<Pass>,
}

/// A pass that holds the session.
#[derive(Debug)]
struct Pass {
    lock: PassLock,
    stop: Sender<()>,
    refresher: Option<JoinHandle<()>>,
}

impl Record {
    pub(crate) fn new(
        store: Option<Arc<Store>>,
        agent: &str,
        facts: Facts,
        in_place: bool,
    ) -> Self {
        Record {
            store,
            agent: agent.to_owned(),
            session: store::new_session_id(),
            facts,
            mark: Mark::default(),
            exists: false,
            in_place,
            unsaved: 0,
            told_unsaved: false,
            is_stale: false,
            stray: 0,
            pass: None,
        }
    }

    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether messages wait to be written.
    pub(crate) fn has_unsaved(&self) -> bool {
        self.unsaved > 0
    }

    /// Whether the session has a row.
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    /// A session that nobody has said anything in.
    pub(crate) fn begin_anew(&mut self) {
        self.session = store::new_session_id();
        self.mark = Mark::default();
        self.exists = false;
        self.unsaved = 0;
        self.told_unsaved = false;
        self.is_stale = false;
        self.stray = 0;
    }

    /// A stored session goes on.
    pub(crate) fn bind(&mut self, session: &str, mark: Mark) {
        session.clone_into(&mut self.session);
        self.mark = mark;
        self.exists = true;
        self.unsaved = 0;
        self.told_unsaved = false;
        self.is_stale = false;
        self.stray = 0;
    }

    /// Whether the transcript has to be read again before the next request.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale && self.unsaved == 0
    }

    /// How many messages at the transcript's end were written after others had changed the session.
    pub(crate) fn stray(&self) -> usize {
        self.stray
    }

    /// Appends messages to the transcript and to the session, in one synced transaction. Returns what to tell the
    /// user: the conversation goes on without the store, and catches up with it.
    pub(crate) fn write(
        &mut self,
        conversation: &mut Conversation,
        messages: Vec<Message>,
    ) -> Option<String> {
        if self.unsaved > 0 {
            self.unsaved += messages.len();
            for message in messages {
                conversation.push(message);
            }
            return self.flush(conversation);
        }
        let mut batch = messages;
        let result = self.append(&mut batch);
        let count = batch.len();
        for message in batch {
            conversation.push(message);
        }
        match result {
            Ok(()) => None,
            Err(error) => {
                self.unsaved += count;
                self.warn(&error)
            }
        }
    }

    /// Writes what could not be written before.
    pub(crate) fn flush(&mut self, conversation: &mut Conversation) -> Option<String> {
        if self.unsaved == 0 {
            return None;
        }
        let messages = conversation.transcript().messages();
        let kept = messages.len().saturating_sub(self.unsaved);
        let mut batch = messages[kept..].to_vec();
        match self.append(&mut batch) {
            Err(error) => self.warn(&error),
            Ok(()) => {
                // The live messages get their ids, once (UID-10).
                let all: Vec<Message> = messages[..kept].iter().cloned().chain(batch).collect();
                let pass = conversation.last_pass_id().to_owned();
                conversation.restore(&all, &pass);
                self.unsaved = 0;
                self.told_unsaved = false;
                None
            }
        }
    }

    fn append(&mut self, batch: &mut [Message]) -> Result<(), StoreError> {
        let Some(store) = &self.store else {
            for message in batch.iter_mut() {
                *message = store::stamp(message);
            }
            return Ok(());
        };
        if !self.exists {
            store.create_session(&self.facts.row(Some(&self.session)))?;
            self.exists = true;
        }
        let written = match store.append(&self.session, batch, &mut self.mark) {
            // Somebody has deleted it meanwhile. What is said from now on is not lost with it.
            Err(StoreError::NoSession { .. }) => {
                self.mark = Mark::default();
                store.create_session(&self.facts.row(Some(&self.session)))?;
                store.append(&self.session, batch, &mut self.mark)?
            }
            other => other?,
        };
        if written.foreign > 0 || written.generation != self.mark.generation {
            self.is_stale = true;
        }
        if self.is_stale {
            self.stray += batch.len();
        }
        Ok(())
    }

    fn warn(&mut self, error: &StoreError) -> Option<String> {
        tracing::warn!(session = self.session, %error, "messages wait to be saved");
        let first = !std::mem::replace(&mut self.told_unsaved, true);
        first.then(|| {
            format!("{error}. The conversation goes on in memory; what is missing is saved as soon as that works again")
        })
    }

    /// Ends the session's row.
    pub(crate) fn end(&self, reason: &str) -> Result<(), StoreError> {
        match &self.store {
            Some(store) if self.exists => store.end_session(&self.session, reason),
            _ => Ok(()),
        }
    }

    /// Why no pass can have the session now.
    fn lock(&mut self) -> Result<(), String> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        if self.unsaved > 0 {
            return Err("the newest messages could not be saved yet".to_owned());
        }
        if !self.exists {
            return Ok(());
        }
        let lock = store
            .begin_pass(&self.session, &self.mark, &self.agent, LEASE)
            .map_err(|error| {
                let changed = matches!(
                    error,
                    StoreError::OutOfDate { .. } | StoreError::AlreadyRotated { .. }
                );
                self.is_stale |= changed;
                error.to_string()
            })?;
        self.pass = Some(Pass::new(Arc::clone(store), lock));
        Ok(())
    }
}

impl PassStore for Record {
    fn begin(&mut self) -> Result<(), String> {
        self.lock()
    }

    fn commit(&mut self, pass_id: &str, messages: Vec<Message>) -> Result<Stored, String> {
        let (Some(store), Some(pass)) = (&self.store, &self.pass) else {
            // Nothing of this session is in the store.
            return Ok(Stored {
                messages: messages.iter().map(store::stamp).collect(),
                session_id: None,
            });
        };
        let committed = if self.in_place {
            store.commit_in_place(&pass.lock, pass_id, &messages)
        } else {
            let new = NewSession {
                parent: Some(&self.session),
                ..self.facts.row(None)
            };
            store.commit_rotation(&pass.lock, pass_id, &new, &messages)
        };
        let committed = committed.map_err(|error| {
            self.is_stale |= matches!(error, StoreError::PassSuperseded { .. });
            error.to_string()
        })?;
        self.mark = committed.mark;
        let moved = committed.session != self.session;
        if moved {
            self.facts.parent = Some(std::mem::replace(
                &mut self.session,
                committed.session.clone(),
            ));
        }
        Ok(Stored {
            messages: committed.messages,
            session_id: moved.then_some(committed.session),
        })
    }

    fn end(&mut self) {
        self.end_pass();
    }
}

impl Record {
    /// Gives the session back that a pass holds, if one does.
    pub(crate) fn end_pass(&mut self) {
        if let (Some(store), Some(pass)) = (&self.store, self.pass.take())
            && let Err(error) = store.end_pass(&pass.into_lock())
        {
            tracing::warn!(%error, "the session's lock ends with its lease");
        }
    }
}

impl Pass {
    /// Keeps the lock alive for as long as the pass takes.
    fn new(store: Arc<Store>, lock: PassLock) -> Self {
        let (stop, stopped) = channel();
        let kept = lock.clone();
        let refresher = std::thread::Builder::new()
            .name("hermes-pass-lock".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
                    match store.refresh_pass(&kept) {
                        Ok(Refreshed::Held) => {}
                        // The commit finds out by itself.
                        Ok(Refreshed::Lost) => return,
                        Err(error) => tracing::warn!(%error, "a pass could not renew its lock"),
                    }
                }
            });
        Pass {
            lock,
            stop,
            refresher: refresher.ok(),
        }
    }

    fn into_lock(self) -> PassLock {
        drop(self.stop);
        if let Some(refresher) = self.refresher {
            // It ends at once; one that is in the store waits for what it waits for.
            let _ = refresher.join();
        }
        self.lock
    }
}
