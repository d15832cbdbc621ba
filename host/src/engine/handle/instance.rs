//! One instance of an engine: the raw pointer, and every call that goes through it.

use std::collections::HashSet;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_engine_abi as abi;

use super::call::CallRecord;
use super::host::HostRecord;
use super::raw_args::{
    index, optional, or_null, outcome, raw_model, raw_session, raw_usage, trigger,
};
use crate::engine::args::{PassOutcome, SlotArgs};
use crate::engine::messages::bytes;
use crate::engine::{EngineState, MessageList, Services, Slot};
use crate::plugin::{EngineModule, RegisteredInstance};

/// The addresses of all living instances of one template and its clones: an engine that hands out the
/// same one twice would have it destroyed twice.
pub(crate) type Living = Arc<Mutex<HashSet<usize>>>;

/// One instance. Dropping it calls `destroy`, so it must be dropped on its lane.
pub(crate) struct Instance {
    this: NonNull<abi::Engine>,
    module: EngineModule,
    /// Alive until `destroy` has returned; `None` for an instance that was made with a table that lives
    /// as long as the process.
    _host: Option<Arc<HostRecord>>,
    living: Living,
}

// SAFETY: the header lets any thread enter an instance, one at a time. An `Instance` is the only handle
// to it, cannot be cloned, and every entry takes `&mut self` or happens on the lane that owns it.
unsafe impl Send for Instance {}

/// What `create` is told.
#[derive(Clone, Debug)]
pub(crate) struct CreateInfo {
    pub(crate) purpose: u32,
    pub(crate) config: String,
    pub(crate) data_dir: String,
    pub(crate) plugin_dir: String,
    pub(crate) context_length: u64,
}

/// Why there is no new instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotMade {
    /// The slot answered with this status.
    Status(abi::Status),
    /// It answered OK and gave NULL.
    Null,
    /// It answered OK and gave an instance that exists already.
    Same,
}

impl Instance {
    /// Calls `create`.
    pub(crate) fn create(
        module: &EngineModule,
        services: &Services,
        living: &Living,
        record: &CallRecord,
        info: &CreateInfo,
    ) -> Result<Self, NotMade> {
        let Some(create) = module.vtable().create else {
            return Err(NotMade::Status(abi::ERR_UNSUPPORTED));
        };
        let host = HostRecord::new(module.name(), services);
        let args = abi::CreateArgs {
            purpose: info.purpose,
            config: bytes(&info.config),
            data_dir: bytes(&info.data_dir),
            plugin_dir: bytes(&info.plugin_dir),
            context_length: info.context_length,
            ..abi::CreateArgs::EMPTY
        };
        let mut out = ptr::null_mut();
        // SAFETY: the slot comes from the module's table; table, record and arguments live until it has
        // returned, and the table until the instance is destroyed, below.
        let status = unsafe {
            create(
                HostRecord::as_raw(&host),
                record.as_raw(),
                &raw const args,
                &raw mut out,
            )
        };
        Self::adopt(status, out, module, host, living)
    }

    /// Calls `clone`. `None` when the engine has no such slot.
    pub(crate) fn copy(
        &self,
        services: &Services,
        record: &CallRecord,
    ) -> Option<Result<Self, NotMade>> {
        let clone = self.module.vtable().clone?;
        let host = HostRecord::new(self.module.name(), services);
        let mut out = ptr::null_mut();
        // SAFETY: as in `create`; the source is alive, and nothing else is inside it.
        let status = unsafe {
            clone(
                self.this.as_ptr(),
                HostRecord::as_raw(&host),
                record.as_raw(),
                &raw mut out,
            )
        };
        Some(Self::adopt(status, out, &self.module, host, &self.living))
    }

    /// Takes over an instance that a plugin has made itself.
    pub(crate) fn registered(
        module: &EngineModule,
        registered: &RegisteredInstance,
        living: &Living,
    ) -> Option<Self> {
        let this = NonNull::new(registered.instance())?;
        remember(living, this).then(|| Self {
            this,
            module: module.clone(),
            _host: None,
            living: Arc::clone(living),
        })
    }

    fn adopt(
        status: abi::Status,
        out: *mut abi::Engine,
        module: &EngineModule,
        host: Arc<HostRecord>,
        living: &Living,
    ) -> Result<Self, NotMade> {
        if status != abi::OK {
            // What a failed call leaves in `out` belongs to nobody the host could ask.
            return Err(NotMade::Status(status));
        }
        let this = NonNull::new(out).ok_or(NotMade::Null)?;
        if !remember(living, this) {
            return Err(NotMade::Same);
        }
        Ok(Self {
            this,
            module: module.clone(),
            _host: Some(host),
            living: Arc::clone(living),
        })
    }

    pub(crate) fn module(&self) -> &EngineModule {
        &self.module
    }

    /// Calls `state`; `None` when it fails.
    pub(crate) fn state(&self) -> Option<EngineState> {
        let state = self.module.vtable().state?;
        let mut out = abi::State::INITIAL;
        // SAFETY: the instance is alive and nothing else is inside it; `out` says how long it is.
        let status = unsafe { state(self.this.as_ptr(), &raw mut out) };
        (status == abi::OK).then(|| EngineState::read(&out))
    }

    /// Calls one of the other slots. The number is the slot's `yes`, where it has one.
    pub(crate) fn call(
        &mut self,
        slot: Slot,
        record: &CallRecord,
        args: &SlotArgs,
    ) -> (abi::Status, u32) {
        let mut yes = 0;
        let status = self.enter(slot, record, args, &mut yes);
        (status.unwrap_or(abi::ERR_UNSUPPORTED), yes)
    }

    /// `None` when the slot is absent, or does not go with these arguments.
    fn enter(
        &mut self,
        slot: Slot,
        record: &CallRecord,
        args: &SlotArgs,
        yes: &mut u32,
    ) -> Option<abi::Status> {
        let table = *self.module.vtable();
        let this = self.this.as_ptr();
        let call = record.as_raw();
        // SAFETY (of every block below): the slot comes from the module's table; the instance is alive,
        // and `&mut self` keeps everybody else out; the record, the arguments on this stack, and the
        // owned values they point into live until the slot has returned.
        Some(match (slot, args) {
            (Slot::UpdateModel, SlotArgs::Model(model)) => {
                let args = raw_model(model);
                // SAFETY: see above.
                unsafe { table.update_model?(this, call, &raw const args) }
            }
            (Slot::UpdateFromResponse, SlotArgs::Usage(usage)) => {
                let args = raw_usage(usage);
                // SAFETY: see above.
                unsafe { table.update_from_response?(this, call, &raw const args) }
            }
            (Slot::SessionReset, _) => {
                // SAFETY: see above.
                unsafe { table.session_reset?(this, call) }
            }
            (
                Slot::ShouldCompress | Slot::Preflight,
                SlotArgs::Decide {
                    prompt_tokens,
                    messages,
                },
            ) => {
                let messages = messages.as_ref().map(MessageList::raw);
                let args = abi::DecideArgs {
                    prompt_tokens: prompt_tokens.unwrap_or(-1),
                    messages: or_null(messages.as_ref()),
                    ..abi::DecideArgs::EMPTY
                };
                let decide = if slot == Slot::Preflight {
                    table.preflight
                } else {
                    table.should_compress
                };
                // SAFETY: see above.
                unsafe { decide?(this, call, &raw const args, yes) }
            }
            (Slot::Compress, SlotArgs::Compress(request)) => {
                let messages = request.messages.raw();
                let args = abi::CompressArgs {
                    trigger: trigger(request.trigger),
                    flags: if request.force {
                        abi::COMPRESS_FORCE
                    } else {
                        0
                    },
                    incoming: index(request.incoming),
                    messages: &raw const messages,
                    current_tokens: request.current_tokens.unwrap_or(-1),
                    target_tokens: request.target_tokens.unwrap_or(0),
                    focus: optional(request.focus.as_deref()),
                    memory_context: optional(request.memory_context.as_deref()),
                    pass_id: bytes(&request.pass_id),
                    ..abi::CompressArgs::EMPTY
                };
                // SAFETY: see above.
                unsafe { table.compress?(this, call, &raw const args) }
            }
            (Slot::SelectContext, SlotArgs::Select(request)) => {
                let (wire, conversation) = (request.request.raw(), request.conversation.raw());
                let args = abi::SelectArgs {
                    attempt: request.attempt,
                    request: &raw const wire,
                    conversation: &raw const conversation,
                    incoming: index(request.incoming),
                    budget_tokens: request.budget_tokens,
                    fixed_tokens: request.fixed_tokens,
                    ..abi::SelectArgs::EMPTY
                };
                // SAFETY: see above.
                unsafe { table.select_context?(this, call, &raw const args) }
            }
            (Slot::SessionStart | Slot::SessionEnd, SlotArgs::Session(session)) => {
                let messages = session.messages.as_ref().map(MessageList::raw);
                let args = abi::SessionArgs {
                    messages: or_null(messages.as_ref()),
                    ..raw_session(session)
                };
                let boundary = if slot == Slot::SessionStart {
                    table.session_start
                } else {
                    table.session_end
                };
                // SAFETY: see above.
                unsafe { boundary?(this, call, &raw const args) }
            }
            (Slot::PassResult, SlotArgs::Pass { pass_id, outcome }) => {
                let messages = match outcome {
                    PassOutcome::Committed(messages) => Some(messages.raw()),
                    PassOutcome::Discarded(_) => None,
                };
                let (outcome, reason) = match outcome {
                    PassOutcome::Committed(_) => (abi::PASS_COMMITTED, ""),
                    PassOutcome::Discarded(reason) => (abi::PASS_DISCARDED, reason.as_str()),
                };
                let args = abi::PassArgs {
                    outcome,
                    pass_id: bytes(pass_id),
                    reason: bytes(reason),
                    messages: or_null(messages.as_ref()),
                    ..abi::PassArgs::EMPTY
                };
                // SAFETY: see above.
                unsafe { table.pass_result?(this, call, &raw const args) }
            }
            (Slot::TurnComplete, SlotArgs::Turn(turn)) => {
                let messages = turn.messages.raw();
                let usage = turn.usage.as_ref().map(raw_usage);
                let args = abi::TurnArgs {
                    outcome: outcome(turn.outcome),
                    api_calls: turn.api_calls,
                    messages: &raw const messages,
                    usage: or_null(usage.as_ref()),
                    turn_id: bytes(&turn.turn_id),
                    ..abi::TurnArgs::EMPTY
                };
                // SAFETY: see above.
                unsafe { table.turn_complete?(this, call, &raw const args) }
            }
            (Slot::ToolSchemas, _) => {
                // SAFETY: see above.
                unsafe { table.tool_schemas?(this, call) }
            }
            (Slot::ToolCall, SlotArgs::Tool(tool)) => {
                let messages = tool.messages.as_ref().map(MessageList::raw);
                let args = abi::ToolArgs {
                    name: bytes(&tool.name),
                    arguments: bytes(&tool.arguments),
                    tool_call_id: bytes(&tool.tool_call_id),
                    messages: or_null(messages.as_ref()),
                    ..abi::ToolArgs::EMPTY
                };
                // SAFETY: see above.
                unsafe { table.tool_call?(this, call, &raw const args) }
            }
            (Slot::Status, _) => {
                // SAFETY: see above.
                unsafe { table.status?(this, call) }
            }
            (Slot::Command, SlotArgs::Command(argv)) => {
                let args = abi::CommandArgs {
                    argv: bytes(argv),
                    ..abi::CommandArgs::EMPTY
                };
                // SAFETY: see above.
                unsafe { table.command?(this, call, &raw const args) }
            }
            (Slot::Idle, _) => {
                // SAFETY: see above.
                unsafe { table.idle?(this, call) }
            }
            _ => return None,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Before `destroy`: from then on the engine may hand the address out again.
        self.living
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.this.addr().get());
        if let Some(destroy) = self.module.vtable().destroy {
            // SAFETY: the only handle is going away, on its lane, with no call inside; the host table
            // is dropped after this.
            unsafe { destroy(self.this.as_ptr()) };
        }
    }
}

/// False when that address is known already.
fn remember(living: &Living, this: NonNull<abi::Engine>) -> bool {
    living
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(this.addr().get())
}
