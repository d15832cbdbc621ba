//! An engine under test: each slot as a method, by the rules of the border.

use std::fmt;

use hermes_engine_abi as abi;
use hermes_message::Message;
use serde_json::Value;

use super::host::TestHost;
use super::record::{Emitted, Lists, Record};
use super::{Failure, Kit, absent};
use crate::export::read;

/// One engine under test. Dropping it destroys it.
pub struct Instance {
    kit: Kit,
    vtable: abi::EngineVtable,
    raw: *mut abi::Engine,
    session_id: String,
    // After `raw`: the table outlives `destroy`.
    host: Box<TestHost>,
}

// SAFETY: instance calls are `[serial]`, from any thread; `&mut self` keeps them apart.
unsafe impl Send for Instance {}

impl Instance {
    pub(super) fn of(
        kit: Kit,
        vtable: abi::EngineVtable,
        raw: *mut abi::Engine,
        host: Box<TestHost>,
        slot: &'static str,
    ) -> Result<Self, Failure> {
        if raw.is_null() {
            return Err(Failure {
                slot,
                status: abi::OK,
                text: "answered OK and gave no instance".to_owned(),
            });
        }
        Ok(Self {
            kit,
            vtable,
            raw,
            session_id: "test".to_owned(),
            host,
        })
    }

    /// The vtable, to see which slots there are.
    pub fn vtable(&self) -> &abi::EngineVtable {
        &self.vtable
    }

    /// What the engine has logged: level and text.
    pub fn logs(&self) -> Vec<(u32, String)> {
        self.host
            .logs
            .lock()
            .map(|logs| logs.clone())
            .unwrap_or_default()
    }

    /// The figures that it shows. All zero where it refuses, which no living engine does.
    pub fn state(&self) -> abi::State {
        let mut state = abi::State {
            threshold_percent: 0.0,
            protect_first_n: 0,
            protect_last_n: 0,
            ..abi::State::INITIAL
        };
        if let Some(read_state) = self.vtable.state {
            // SAFETY: a living instance, an out struct with its size set, and nobody else inside.
            unsafe { read_state(self.raw, &mut state) };
        }
        state
    }

    /// Runs one slot.
    fn call(
        &mut self,
        slot: &'static str,
        lists: Lists<'_>,
        run: impl FnOnce(*mut abi::Engine, *const abi::Call) -> abi::Status,
    ) -> Result<Emitted, Failure> {
        let record = Record::new(&self.session_id, lists);
        let status = run(self.raw, record.as_raw());
        record.finish(slot, status)
    }

    /// `update_model`.
    ///
    /// # Errors
    /// What the engine answered, here and for every slot below.
    pub fn update_model(
        &mut self,
        model: &str,
        context_length: u64,
        thresholds: &Value,
    ) -> Result<(), Failure> {
        let map = thresholds.as_object().cloned().unwrap_or_default();
        let percent = crate::resolve_model_threshold(&map, model, "test").unwrap_or(0.0);
        let map = Value::Object(map).to_string();
        let args = abi::ModelArgs {
            model: read::bytes(model),
            provider: read::bytes("test"),
            context_length,
            threshold_percent: percent,
            model_thresholds: read::bytes(&map),
            ..abi::ModelArgs::EMPTY
        };
        let slot = self
            .vtable
            .update_model
            .ok_or_else(|| absent("update_model"))?;
        // SAFETY: a living instance and arguments that outlive the call; the same holds for every slot below.
        self.call("update_model", Lists::NONE, |this, call| unsafe {
            slot(this, call, &args)
        })
        .map(drop)
    }

    /// `update_from_response` with the three figures that every provider gives.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn update_from_response(&mut self, prompt: i64, completion: i64) -> Result<(), Failure> {
        let args = abi::Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt.saturating_add(completion),
            ..abi::Usage::UNKNOWN
        };
        let slot = self
            .vtable
            .update_from_response
            .ok_or_else(|| absent("update_from_response"))?;
        // SAFETY: as in `update_model`.
        self.call("update_from_response", Lists::NONE, |this, call| unsafe {
            slot(this, call, &args)
        })
        .map(drop)
    }

    /// `session_reset`.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn session_reset(&mut self) -> Result<(), Failure> {
        let slot = self
            .vtable
            .session_reset
            .ok_or_else(|| absent("session_reset"))?;
        // SAFETY: as in `update_model`.
        self.call("session_reset", Lists::NONE, |this, call| unsafe {
            slot(this, call)
        })
        .map(drop)
    }

    /// `should_compress`: whether, and why not.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn should_compress(
        &mut self,
        prompt_tokens: Option<u64>,
    ) -> Result<(bool, String), Failure> {
        let args = abi::DecideArgs {
            prompt_tokens: prompt_tokens.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX)),
            ..abi::DecideArgs::EMPTY
        };
        let slot = self
            .vtable
            .should_compress
            .ok_or_else(|| absent("should_compress"))?;
        let mut yes = 0;
        // SAFETY: as in `update_model`.
        let done = self.call("should_compress", Lists::NONE, |this, call| unsafe {
            slot(this, call, &args, &mut yes)
        })?;
        Ok((yes != 0, done.text))
    }

    /// `compress` as an automatic pass without figures.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn compress(&mut self, messages: &[Message]) -> Result<Emitted, Failure> {
        self.compress_with(messages, |_| {})
    }

    /// `compress` with arguments that `change` has set.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn compress_with(
        &mut self,
        messages: &[Message],
        change: impl FnOnce(&mut abi::CompressArgs),
    ) -> Result<Emitted, Failure> {
        let lists = Lists::of(messages, &[]);
        let main = lists.main();
        let incoming = messages
            .iter()
            .rposition(|m| m.role() == hermes_message::Role::User);
        let mut args = abi::CompressArgs {
            incoming: incoming
                .and_then(|i| u32::try_from(i).ok())
                .unwrap_or(abi::NONE),
            messages: &main,
            pass_id: read::bytes("test-pass"),
            ..abi::CompressArgs::EMPTY
        };
        change(&mut args);
        let slot = self.vtable.compress.ok_or_else(|| absent("compress"))?;
        // SAFETY: as in `update_model`.
        self.call("compress", lists, |this, call| unsafe {
            slot(this, call, &args)
        })
    }

    /// `select_context` on a request and the transcript behind it.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn select_context(
        &mut self,
        request: &[Message],
        conversation: &[Message],
        budget: u64,
    ) -> Result<Emitted, Failure> {
        let lists = Lists::of(request, conversation);
        let (main, behind) = (lists.main(), lists.conversation());
        let args = abi::SelectArgs {
            request: &main,
            conversation: &behind,
            budget_tokens: budget,
            ..abi::SelectArgs::EMPTY
        };
        let slot = self
            .vtable
            .select_context
            .ok_or_else(|| absent("select_context"))?;
        // SAFETY: as in `update_model`.
        self.call("select_context", lists, |this, call| unsafe {
            slot(this, call, &args)
        })
    }

    /// `turn_complete` of a turn that ended well.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn turn_complete(&mut self, messages: &[Message]) -> Result<(), Failure> {
        let lists = Lists::of(messages, &[]);
        let main = lists.main();
        let args = abi::TurnArgs {
            messages: &main,
            api_calls: 1,
            turn_id: read::bytes("test-turn"),
            ..abi::TurnArgs::EMPTY
        };
        let slot = self
            .vtable
            .turn_complete
            .ok_or_else(|| absent("turn_complete"))?;
        // SAFETY: as in `update_model`.
        self.call("turn_complete", lists, |this, call| unsafe {
            slot(this, call, &args)
        })
        .map(drop)
    }

    /// `preflight`.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn preflight(&mut self, messages: &[Message]) -> Result<bool, Failure> {
        let lists = Lists::of(messages, &[]);
        let main = lists.main();
        let args = abi::DecideArgs {
            messages: &main,
            ..abi::DecideArgs::EMPTY
        };
        let slot = self.vtable.preflight.ok_or_else(|| absent("preflight"))?;
        let mut yes = 0;
        // SAFETY: as in `update_model`.
        self.call("preflight", lists, |this, call| unsafe {
            slot(this, call, &args, &mut yes)
        })?;
        Ok(yes != 0)
    }

    /// `session_start`; later calls carry this session's id.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn session_start(
        &mut self,
        session_id: &str,
        reason: u32,
        last_pass_id: &str,
        messages: &[Message],
    ) -> Result<(), Failure> {
        self.session_id = session_id.to_owned();
        let slot = self
            .vtable
            .session_start
            .ok_or_else(|| absent("session_start"))?;
        self.session("session_start", slot, reason, last_pass_id, messages)
    }

    /// `session_end`.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn session_end(&mut self, messages: &[Message]) -> Result<(), Failure> {
        let slot = self
            .vtable
            .session_end
            .ok_or_else(|| absent("session_end"))?;
        self.session("session_end", slot, abi::START_NEW, "", messages)
    }

    fn session(
        &mut self,
        name: &'static str,
        slot: unsafe extern "C" fn(
            *mut abi::Engine,
            *const abi::Call,
            *const abi::SessionArgs,
        ) -> abi::Status,
        reason: u32,
        last_pass_id: &str,
        messages: &[Message],
    ) -> Result<(), Failure> {
        let lists = Lists::of(messages, &[]);
        let main = lists.main();
        let args = abi::SessionArgs {
            reason,
            last_pass_id: read::bytes(last_pass_id),
            messages: &main,
            ..abi::SessionArgs::EMPTY
        };
        // SAFETY: as in `update_model`.
        self.call(name, lists, |this, call| unsafe { slot(this, call, &args) })
            .map(drop)
    }

    /// `pass_result` for the pass of [`compress`](Self::compress).
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn pass_result(&mut self, committed: bool, messages: &[Message]) -> Result<(), Failure> {
        let lists = Lists::of(messages, &[]);
        let main = lists.main();
        let args = abi::PassArgs {
            outcome: if committed {
                abi::PASS_COMMITTED
            } else {
                abi::PASS_DISCARDED
            },
            pass_id: read::bytes("test-pass"),
            messages: if committed { &main } else { std::ptr::null() },
            ..abi::PassArgs::EMPTY
        };
        let slot = self
            .vtable
            .pass_result
            .ok_or_else(|| absent("pass_result"))?;
        // SAFETY: as in `update_model`.
        self.call("pass_result", lists, |this, call| unsafe {
            slot(this, call, &args)
        })
        .map(drop)
    }

    /// `tool_schemas`: the JSON that it wrote.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn tool_schemas(&mut self) -> Result<String, Failure> {
        let slot = self
            .vtable
            .tool_schemas
            .ok_or_else(|| absent("tool_schemas"))?;
        // SAFETY: as in `update_model`.
        self.call("tool_schemas", Lists::NONE, |this, call| unsafe {
            slot(this, call)
        })
        .map(|done| done.text)
    }

    /// `tool_call`: the JSON that it wrote.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn tool_call(&mut self, name: &str, arguments: &str) -> Result<String, Failure> {
        let args = abi::ToolArgs {
            name: read::bytes(name),
            arguments: read::bytes(arguments),
            tool_call_id: read::bytes("call_test"),
            ..abi::ToolArgs::EMPTY
        };
        let slot = self.vtable.tool_call.ok_or_else(|| absent("tool_call"))?;
        // SAFETY: as in `update_model`.
        self.call("tool_call", Lists::NONE, |this, call| unsafe {
            slot(this, call, &args)
        })
        .map(|done| done.text)
    }

    /// `status`: the JSON that it wrote.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn status(&mut self) -> Result<String, Failure> {
        let slot = self.vtable.status.ok_or_else(|| absent("status"))?;
        // SAFETY: as in `update_model`.
        self.call("status", Lists::NONE, |this, call| unsafe {
            slot(this, call)
        })
        .map(|done| done.text)
    }

    /// `command`: the text that it wrote.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn command(&mut self, argv: &[&str]) -> Result<String, Failure> {
        let argv = Value::from(argv.to_vec()).to_string();
        let args = abi::CommandArgs {
            argv: read::bytes(&argv),
            ..abi::CommandArgs::EMPTY
        };
        let slot = self.vtable.command.ok_or_else(|| absent("command"))?;
        // SAFETY: as in `update_model`.
        self.call("command", Lists::NONE, |this, call| unsafe {
            slot(this, call, &args)
        })
        .map(|done| done.text)
    }

    /// `idle`: whether there is more to do.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn idle(&mut self) -> Result<bool, Failure> {
        let slot = self.vtable.idle.ok_or_else(|| absent("idle"))?;
        // SAFETY: as in `update_model`.
        self.call("idle", Lists::NONE, |this, call| unsafe {
            slot(this, call)
        })
        .map(|done| done.status == abi::MORE)
    }

    /// An agent's own copy: by `clone`, or by `create` where the slot is absent.
    #[expect(clippy::missing_errors_doc, reason = "see `update_model`")]
    pub fn clone_for_agent(&self) -> Result<Self, Failure> {
        let Some(clone) = self.vtable.clone else {
            return self.kit.create();
        };
        let host = TestHost::new(self.kit.completer.clone());
        let record = Record::new("", Lists::NONE);
        let mut raw = std::ptr::null_mut();
        // SAFETY: a living source that nobody else is inside of; `host` outlives the new instance.
        let status = unsafe { clone(self.raw, host.as_raw(), record.as_raw(), &mut raw) };
        record.expect_ok("clone", status)?;
        Self::of(self.kit.clone(), self.vtable, raw, host, "clone")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(destroy) = self.vtable.destroy {
            // SAFETY: once, and nobody is inside.
            unsafe { destroy(self.raw) };
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
