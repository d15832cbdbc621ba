//! How an agent's session begins, goes on elsewhere, and ends. The engine is told of each, and never left bound to an
//! old one (LIFE-2, LIFE-3, LIFE-4).

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use hermes_message::Message;

use super::{Agent, AgentError, Parent, rescue};
use crate::context::Engine;
use crate::engine::{IdleOutcome, PassControl, StartReason};
use crate::store::{NewSession, Resumed, Session};

/// Turns that were taken back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewound {
    /// The user message that the conversation stands before now.
    pub target: Message,
    /// How many messages went.
    pub removed: usize,
    /// How many compactions had to be undone.
    pub passes_undone: usize,
}

/// How an agent has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// The store has the whole conversation. If not, a warning says where it is.
    pub is_saved: bool,
    /// What is to be told.
    pub warnings: Vec<String>,
}

impl Agent {
    /// `/new` and `/reset`: the session ends and an empty one begins. The engine's instance, its back ends and its
    /// model stay (LIFE-2).
    pub fn new_session(&mut self) {
        let old = self.leave_session("new_session");
        self.record.facts_mut().system_prompt = None;
        self.record.facts_mut().parent = None;
        self.begin_new(StartReason::New, &old, None);
    }

    /// Goes on with another stored session, found by the beginning of its id.
    ///
    /// # Errors
    /// When there is none, or it cannot be read; the session at hand then goes on.
    pub fn resume(&mut self, prefix: &str) -> Result<(), AgentError> {
        const DOING: &str = "resume";
        let store = self.store(DOING)?;
        let id = store.find_session(prefix)?;
        let resumed = store.resume(&id)?;
        if resumed.session.id == self.record.session() {
            return Ok(());
        }
        // Whether it can be had is known before the old one is left.
        let held = self.hold(&resumed.session.id)?;
        let old = self.leave_session("resumed_other");
        self.held = held;
        self.take_up(resumed, StartReason::Resume, &old)
    }

    /// Goes on in a copy of this session; the session itself stays as it is.
    ///
    /// # Errors
    /// When there is nothing to copy yet, or the store cannot be written; the session at hand then goes on.
    pub fn branch(&mut self) -> Result<(), AgentError> {
        const DOING: &str = "branch";
        let store = self.store(DOING)?;
        if !self.record.exists() {
            return Err(AgentError::Store(crate::store::StoreError::NoSession {
                id: self.record.session().to_owned(),
            }));
        }
        let new = NewSession {
            source: &self.host.inner.platform,
            ..NewSession::default()
        };
        let resumed = store.branch(self.record.session(), &new)?;
        let held = self.hold(&resumed.session.id)?;
        let old = self.leave_session("branched");
        self.held = held;
        self.take_up(resumed, StartReason::Branch, &old)
    }

    /// Takes the last `turns` user turns back, over a compaction too.
    ///
    /// # Errors
    /// When there are fewer, or the store cannot be written; nothing has changed then.
    pub fn rewind(&mut self, turns: usize) -> Result<Rewound, AgentError> {
        const DOING: &str = "rewind";
        let store = self.store(DOING)?;
        let rewound = store.rewind(self.record.session(), turns)?;
        // A rewind over a rotation leads back into the session before it.
        let session = store.session(&rewound.session)?;
        let last_pass = session.last_pass_id.clone();
        let old = self.record.session().to_owned();
        self.record.bind(&rewound.session, rewound.mark);
        if rewound.session != old {
            // Back into the session before a rotation, whose place is further up.
            let parent = self.origin(&session);
            let (parent, root) = parent.map_or_else(Default::default, |at| (at.session, at.root));
            self.conversation.move_to(&rewound.session);
            self.conversation.set_origin(&parent, &root);
        }
        self.conversation
            .restore(&rewound.messages, last_pass.as_deref().unwrap_or_default());
        self.follow_session();
        self.conversation
            .start_after(&mut self.engine, StartReason::Rewind, &old);
        self.gather_warnings();
        Ok(Rewound {
            target: rewound.target,
            removed: rewound.removed,
            passes_undone: rewound.passes_undone,
        })
    }

    /// Talks to another model from now on. The engine learns its window before the next request, and what was learnt
    /// of the old model's counts is forgotten.
    pub fn switch_model(&mut self, model: &str) {
        let window = self.host.window(model);
        self.tell_later(window.warning);
        model.clone_into(&mut self.model);
        self.window = window.tokens;
        self.record.facts_mut().model = self.model.clone();
        // Nobody answers in the stead of a model that has not been asked yet.
        self.host.inner.chain.forgive_main();
        self.instead = None;
        self.tell_model();
    }

    /// The end: `on_session_end` with the real final messages, once, and the session's row is closed with `reason`.
    ///
    /// Returns what is to be told of it.
    pub fn close(mut self, reason: &str) -> Closed {
        self.finish(reason);
        Closed {
            is_saved: !self.record.has_unsaved(),
            warnings: self.take_warnings(),
        }
    }

    pub(super) fn finish(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.leave_session(reason);
        }
    }

    /// Lets the engine work between turns, if it wants to, until `control` is cancelled. Returns when it has nothing
    /// more to do.
    pub fn idle(&mut self, control: &PassControl) {
        while !control.is_cancelled() && self.engine.handle.idle(control) == IdleOutcome::More {}
    }

    /// Ends the session for the engine and in the store; returns its id.
    fn leave_session(&mut self, reason: &str) -> String {
        let warning = self.record.flush(&mut self.conversation);
        self.tell_later(warning);
        if self.record.has_unsaved() {
            self.rescue();
        }
        self.conversation.end(&mut self.engine);
        if let Err(error) = self.record.end(reason) {
            self.tell_later([error.to_string()]);
        }
        // Whoever copies the file of an ended session has all of it, though the program goes on.
        if let (Some(store), true) = (self.record.store(), self.record.exists()) {
            store.tidy();
        }
        self.host.inner.indexer.nudge();
        self.gather_warnings();
        self.held = None;
        self.record.session().to_owned()
    }

    /// The store does not take the newest messages, and this agent is about to forget them.
    fn rescue(&mut self) {
        let kept = rescue::keep(self.host.home(), self.messages());
        let told = match kept {
            Ok(path) => format!(
                "the newest messages could not be saved; the whole conversation is in {path}, `hermes sessions import {path}` takes it in",
                path = path.display()
            ),
            Err(error) => format!(
                "the newest messages of this session are lost: neither the store nor a file could be written ({error})"
            ),
        };
        self.tell_later([told]);
    }

    /// An empty session begins. `old`: the one that it follows.
    pub(super) fn begin_new(&mut self, reason: StartReason, old: &str, parent: Option<Parent>) {
        self.record.begin_anew();
        let session = self.record.session().to_owned();
        // Nobody else can know this id.
        self.held = self.hold(&session).unwrap_or_default();
        self.start_session(reason, old, parent, &[], "");
    }

    /// A stored session goes on. `old`: the one that it follows in this agent.
    pub(super) fn take_up(
        &mut self,
        resumed: Resumed,
        reason: StartReason,
        old: &str,
    ) -> Result<(), AgentError> {
        let session = &resumed.session;
        if self.held.is_none() {
            self.held = self.hold(&session.id)?;
        }
        if session.ended_at.is_some()
            && let Some(Err(error)) = self
                .record
                .store()
                .map(|store| store.reopen_session(&session.id))
        {
            self.tell_later([error.to_string()]);
        }
        self.last_active = session
            .last_active
            .filter(|at| at.is_finite() && *at >= 0.0)
            .and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs_f64(at)));
        self.record.bind(&session.id, resumed.mark);
        // Made once, and never again: the front of every request stays the same bytes.
        self.record.facts_mut().system_prompt = session.system_prompt.clone();
        self.record.facts_mut().parent = session.parent.clone();
        let pass = session.last_pass_id.clone().unwrap_or_default();
        let parent = self.origin(session);
        self.start_session(reason, old, parent, &resumed.messages, &pass);
        Ok(())
    }

    /// Where a stored session comes from: the one that it was branched, rotated or delegated from, and the first of
    /// them all.
    fn origin(&self, session: &Session) -> Option<Parent> {
        let (store, parent) = (self.record.store()?, session.parent.clone()?);
        let mut seen = HashSet::from([session.id.clone()]);
        let mut root = parent.clone();
        while seen.insert(root.clone()) {
            // One that was deleted is where the trail ends.
            match store.session(&root).ok().and_then(|row| row.parent) {
                Some(before) => root = before,
                None => break,
            }
        }
        Some(Parent {
            session: parent,
            root,
            is_stored: true,
        })
    }

    fn start_session(
        &mut self,
        reason: StartReason,
        old: &str,
        parent: Option<Parent>,
        messages: &[Message],
        last_pass_id: &str,
    ) {
        if !old.is_empty() {
            // Between the end of the old session and the start of the next one.
            self.engine.handle.session_reset();
            self.told.clear();
        }
        self.fresh_conversation(parent);
        self.conversation.restore(messages, last_pass_id);
        self.conversation.start_after(&mut self.engine, reason, old);
        // The start may have been what took the engine out, or brought it back.
        self.sync_tools();
        self.gather_warnings();
    }

    /// What others made of the session takes the place of what this agent knows of it.
    pub(super) fn adopt(&mut self) {
        let Some(store) = self.record.store().cloned() else {
            return;
        };
        let old = self.record.session().to_owned();
        match store.resume(&old) {
            Err(error) => self.tell_later([error.to_string()]),
            Ok(resumed) => {
                let session = resumed.session.id;
                let stray = if session == old {
                    Vec::new()
                } else {
                    self.stray()
                };
                self.record.bind(&session, resumed.mark);
                self.conversation.move_to(&session);
                let pass = resumed.session.last_pass_id.unwrap_or_default();
                self.conversation.restore(&resumed.messages, &pass);
                if !stray.is_empty() {
                    let warning = self.record.write(&mut self.conversation, stray);
                    self.tell_later(warning);
                }
                self.follow_session();
                self.conversation
                    .start_after(&mut self.engine, StartReason::Resume, &old);
            }
        }
    }

    /// What this agent has written to a session that had gone on elsewhere by then.
    fn stray(&self) -> Vec<Message> {
        let messages = self.conversation.transcript().messages();
        messages[messages.len().saturating_sub(self.record.stray())..].to_vec()
    }

    /// The conversation may have moved to another session: that is the one to be held.
    pub(super) fn follow_session(&mut self) {
        let session = self.record.session();
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.session() != session)
        {
            self.held = self.hold(session).unwrap_or_default();
        }
    }

    /// The engine's tools are those of the engine that serves (TOOL-4): another one may serve than at the last
    /// request.
    pub(super) fn sync_tools(&mut self) {
        if self.toolbox.is_outdated(&self.engine) {
            let warnings = self.toolbox.refresh(&mut self.engine);
            self.tell_later(warnings);
            let frame = self.frame();
            self.conversation.set_frame(frame);
        }
    }

    fn store(
        &self,
        doing: &'static str,
    ) -> Result<std::sync::Arc<crate::store::Store>, AgentError> {
        let store = self.record.store().ok_or(AgentError::NoStore(doing))?;
        if self.record.has_unsaved() {
            return Err(AgentError::Unsaved(doing));
        }
        Ok(std::sync::Arc::clone(store))
    }

    /// Takes a session for this process.
    pub(super) fn hold(&self, session: &str) -> Result<Option<super::Held>, AgentError> {
        if self.record.store().is_none() {
            return Ok(None);
        }
        match self.host.inner.open.hold(session) {
            Ok(Some(held)) => Ok(Some(held)),
            Ok(None) => Err(AgentError::Open(session.to_owned())),
            Err(error) => {
                // It can be used all the same; only its end after a crash is not noticed.
                tracing::info!(%error, session, "open sessions cannot be noted");
                Ok(None)
            }
        }
    }

    /// How long ago the last turn of this conversation ended.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        self.last_active?.elapsed().ok()
    }

    /// The name of the engine that serves.
    #[must_use]
    pub fn engine(&self) -> &str {
        self.engine.name()
    }
}
