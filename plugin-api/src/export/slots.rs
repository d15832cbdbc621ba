//! The functions in the vtable: each turns raw arguments into safe ones and enters the author's method through
//! [`Instance::enter`].
//!
//! All of them are `[serial]`: the host calls them from any thread, never two at once on one instance, with arguments
//! that are readable until the function returns. That is what their `SAFETY` reasons rest on.

use hermes_engine_abi as abi;

use crate::args::{ToolCall, Turn};
use crate::engine::{ContextEngine, Decision};
use crate::error::EngineError;
use crate::export::call::Call;
use crate::export::host::Host;
use crate::export::instance::{Instance, create_args, emitting, fill_state, settle};
use crate::export::view::Messages;
use crate::export::{panics, read};
use crate::groups::{
    CloneForAgent, Commands, Idle, Passes, Preflight, SelectContext, Sessions, Status, Tools,
    TurnComplete,
};

/// Says that this is a library of its own; called by the entry function.
pub fn is_a_library() {
    panics::is_a_library();
}

/// The slots that every engine has.
pub const fn required<T: ContextEngine>() -> abi::EngineVtable {
    abi::EngineVtable {
        create: Some(create::<T>),
        destroy: Some(destroy::<T>),
        state: Some(state::<T>),
        update_model: Some(update_model::<T>),
        update_from_response: Some(update_from_response::<T>),
        session_reset: Some(session_reset::<T>),
        should_compress: Some(should_compress::<T>),
        compress: Some(compress::<T>),
        ..abi::EngineVtable::EMPTY
    }
}

/// Makes an instance with `make` and hands it to the host.
///
/// # Safety
/// The arguments are those of `create` or `clone`.
unsafe fn make<T: ContextEngine>(
    host: *const abi::Host,
    call: *const abi::Call,
    out: *mut *mut abi::Engine,
    slot: &str,
    make: impl FnOnce(&Host, &Call<'_>) -> Result<T, EngineError>,
) -> abi::Status {
    if out.is_null() {
        return abi::ERR_INVALID;
    }
    // SAFETY: the host's table lives until `destroy` of this instance has returned.
    let host = unsafe { Host::from_raw(host) };
    panics::install(&host);
    // SAFETY: the record lasts as long as this function.
    let cx = unsafe { Call::from_raw(call, &host) };
    // SAFETY: the only set of this call.
    let report = unsafe { cx.sinks() };
    let mut made = None;
    let (status, _) = settle(&report, T::NAME, slot, &host, || {
        made = Some(make(&host, &cx)?);
        Ok(abi::OK)
    });
    match made {
        Some(engine) if status == abi::OK => {
            let raw = Instance::into_raw(engine, host.clone());
            // SAFETY: not NULL, and the host made room for a pointer.
            unsafe { out.write(raw) };
        }
        _ => host.close(),
    }
    status
}

pub(crate) unsafe extern "C" fn create<T: ContextEngine>(
    host: *const abi::Host,
    call: *const abi::Call,
    args: *const abi::CreateArgs,
    out: *mut *mut abi::Engine,
) -> abi::Status {
    // SAFETY: the arguments of `create`, readable until it returns.
    unsafe {
        make(host, call, out, "create", |host, _| {
            T::create(&create_args(args, host)?)
        })
    }
}

pub(crate) unsafe extern "C" fn clone_from<T: ContextEngine + Clone>(
    source: *const abi::Engine,
    host: *const abi::Host,
    call: *const abi::Call,
    out: *mut *mut abi::Engine,
) -> abi::Status {
    // SAFETY: the arguments of `clone`, which is `[serial]` on the source.
    unsafe { copy(source, host, call, out, |source: &T, _| Ok(source.clone())) }
}

pub(crate) unsafe extern "C" fn clone_for_agent<T: CloneForAgent>(
    source: *const abi::Engine,
    host: *const abi::Host,
    call: *const abi::Call,
    out: *mut *mut abi::Engine,
) -> abi::Status {
    // SAFETY: the arguments of `clone`, which is `[serial]` on the source.
    unsafe {
        copy(source, host, call, out, |source: &T, cx| {
            source.clone_for_agent(cx)
        })
    }
}

/// # Safety
/// The arguments are those of `clone`.
unsafe fn copy<T: ContextEngine>(
    source: *const abi::Engine,
    host: *const abi::Host,
    call: *const abi::Call,
    out: *mut *mut abi::Engine,
    copy: impl FnOnce(&T, &Call<'_>) -> Result<T, EngineError>,
) -> abi::Status {
    // SAFETY: the source is one of ours, and no other call is inside it.
    let source = unsafe { Instance::<T>::peek(source) };
    // SAFETY: the arguments of `clone`.
    unsafe {
        make(host, call, out, "clone", |_, cx| match source {
            Some((source, _)) => copy(source, cx),
            None => Err(EngineError::Failed(format!(
                "engine {} panicked earlier and cannot be copied",
                T::NAME
            ))),
        })
    }
}

pub(crate) unsafe extern "C" fn destroy<T: ContextEngine>(this: *mut abi::Engine) {
    // SAFETY: once, never during a call.
    unsafe { Instance::<T>::destroy(this) };
}

pub(crate) unsafe extern "C" fn state<T: ContextEngine>(
    this: *const abi::Engine,
    out: *mut abi::State,
) -> abi::Status {
    // SAFETY: `[serial]`.
    let Some((engine, host)) = (unsafe { Instance::<T>::peek(this) }) else {
        return if this.is_null() {
            abi::ERR_INVALID
        } else {
            abi::ERR_PANIC
        };
    };
    match panics::guarded(host, || engine.state()) {
        // SAFETY: the host's out struct.
        Ok(state) => unsafe { fill_state(out, state.to_abi()) },
        Err(_) => abi::ERR_PANIC,
    }
}

pub(crate) unsafe extern "C" fn update_model<T: ContextEngine>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::ModelArgs,
) -> abi::Status {
    // SAFETY: `[serial]`, with arguments that are readable until it returns.
    unsafe {
        Instance::<T>::enter(this, call, "update_model", |engine, cx, _| {
            engine.update_model(cx, &read::model(args))?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn update_from_response<T: ContextEngine>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    usage: *const abi::Usage,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "update_from_response", |engine, cx, _| {
            engine.update_from_response(cx, &read::usage(usage).unwrap_or_default())?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn session_reset<T: ContextEngine>(
    this: *mut abi::Engine,
    call: *const abi::Call,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "session_reset", |engine, cx, _| {
            engine.session_reset(cx)?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn should_compress<T: ContextEngine>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::DecideArgs,
    yes: *mut u32,
) -> abi::Status {
    if yes.is_null() {
        return abi::ERR_INVALID;
    }
    // SAFETY: as in `update_model`; `yes` is not NULL and the host's.
    unsafe {
        Instance::<T>::enter(this, call, "should_compress", |engine, cx, results| {
            let decision =
                engine.should_compress(cx, read::known(read::prefix(args).prompt_tokens))?;
            yes.write(u32::from(decision == Decision::Yes));
            if let Decision::Blocked(reason) = decision {
                results.write(&reason)?;
            }
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn compress<T: ContextEngine>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::CompressArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "compress", |engine, cx, results| {
            let input = read::compress(args);
            emitting(results, |out| engine.compress(cx, &input, out))
        })
    }
}

pub(crate) unsafe extern "C" fn session_start<T: Sessions>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::SessionArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "session_start", |engine, cx, _| {
            engine.session_start(cx, &read::session(args))?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn session_end<T: Sessions>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::SessionArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "session_end", |engine, cx, _| {
            engine.session_end(cx, &read::session(args))?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn pass_result<T: Passes>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::PassArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "pass_result", |engine, cx, _| {
            engine.pass_result(cx, &read::pass(args))?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn preflight<T: Preflight>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::DecideArgs,
    yes: *mut u32,
) -> abi::Status {
    if yes.is_null() {
        return abi::ERR_INVALID;
    }
    // SAFETY: as in `should_compress`.
    unsafe {
        Instance::<T>::enter(this, call, "preflight", |engine, cx, _| {
            let args = read::prefix(args);
            let messages = Messages::from_raw(args.messages).unwrap_or(Messages::EMPTY);
            yes.write(u32::from(engine.preflight(
                cx,
                read::known(args.prompt_tokens),
                messages,
            )?));
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn select_context<T: SelectContext>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::SelectArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "select_context", |engine, cx, results| {
            let input = read::select(args);
            emitting(results, |out| engine.select_context(cx, &input, out))
        })
    }
}

pub(crate) unsafe extern "C" fn turn_complete<T: TurnComplete>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::TurnArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "turn_complete", |engine, cx, _| {
            let args = read::prefix(args);
            let turn = Turn {
                messages: Messages::from_raw(args.messages).unwrap_or(Messages::EMPTY),
                usage: read::usage(args.usage),
                turn_id: read::text(args.turn_id),
                outcome: args.outcome.into(),
                api_calls: args.api_calls,
            };
            engine.turn_complete(cx, &turn)?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn tool_schemas<T: Tools>(
    this: *mut abi::Engine,
    call: *const abi::Call,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "tool_schemas", |engine, cx, results| {
            results.write(&engine.tool_schemas(cx)?)?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn tool_call<T: Tools>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::ToolArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "tool_call", |engine, cx, results| {
            let args = read::prefix(args);
            let tool = ToolCall {
                name: read::text(args.name),
                arguments: read::text(args.arguments),
                tool_call_id: read::text(args.tool_call_id),
                messages: Messages::from_raw(args.messages),
            };
            results.write(&engine.tool_call(cx, &tool)?)?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn status<T: Status>(
    this: *mut abi::Engine,
    call: *const abi::Call,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "status", |engine, cx, results| {
            results.write(&engine.status(cx)?)?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn command<T: Commands>(
    this: *mut abi::Engine,
    call: *const abi::Call,
    args: *const abi::CommandArgs,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "command", |engine, cx, results| {
            let argv: Vec<String> = serde_json::from_str(read::text(read::prefix(args).argv))
                .map_err(|error| {
                    EngineError::Invalid(format!(
                        "the command is not a JSON array of strings: {error}"
                    ))
                })?;
            results.write(&engine.command(cx, &argv)?)?;
            Ok(abi::OK)
        })
    }
}

pub(crate) unsafe extern "C" fn idle<T: Idle>(
    this: *mut abi::Engine,
    call: *const abi::Call,
) -> abi::Status {
    // SAFETY: as in `update_model`.
    unsafe {
        Instance::<T>::enter(this, call, "idle", |engine, cx, _| {
            Ok(if engine.idle(cx)? { abi::MORE } else { abi::OK })
        })
    }
}
