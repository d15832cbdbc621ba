//! The author's value behind the opaque pointer.

use hermes_engine_abi as abi;

use crate::emit::Emit;
use crate::engine::{ContextEngine, Verdict};
use crate::error::EngineError;
use crate::export::call::{Call, Sinks};
use crate::export::host::Host;
use crate::export::{panics, read};

/// What an `*mut abi::Engine` of this SDK points to.
pub(crate) struct Instance<T> {
    engine: T,
    host: Host,
    /// A panic has passed through it: nothing enters the author's code any more.
    dead: bool,
}

impl<T: ContextEngine> Instance<T> {
    /// Puts a new engine behind a pointer for the host.
    pub(crate) fn into_raw(engine: T, host: Host) -> *mut abi::Engine {
        Box::into_raw(Box::new(Self {
            engine,
            host,
            dead: false,
        }))
        .cast()
    }

    /// Drops what [`into_raw`](Self::into_raw) made. A panic of the destructor ends in the log.
    ///
    /// # Safety
    /// `this` is NULL or came from `into_raw`, and nobody uses it afterwards.
    pub(crate) unsafe fn destroy(this: *mut abi::Engine) {
        if this.is_null() {
            return;
        }
        // SAFETY: the caller's promise.
        let instance = unsafe { Box::from_raw(this.cast::<Self>()) };
        let host = instance.host.clone();
        if let Err(text) = panics::guarded(&host, move || drop(instance)) {
            host.log(
                crate::Level::Error,
                &format!("engine {} panicked while it was dropped: {text}", T::NAME),
            );
        }
        host.close();
    }

    /// The engine for reading, and its host, unless it is dead.
    ///
    /// # Safety
    /// `this` is NULL or came from `into_raw`, and no other call is inside it.
    pub(crate) unsafe fn peek<'a>(this: *const abi::Engine) -> Option<(&'a T, &'a Host)> {
        if this.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        let instance = unsafe { &*this.cast::<Self>() };
        (!instance.dead).then_some((&instance.engine, &instance.host))
    }

    /// Runs one slot on the instance: the single choke point between the border and the author's methods. It checks the
    /// pointer and that the instance is alive, catches panics, and turns every outcome into a status and a text.
    ///
    /// # Safety
    /// `this` is NULL or came from `into_raw`; `call` is the record of this slot call, or NULL; no other call is inside
    /// the instance.
    pub(crate) unsafe fn enter(
        this: *mut abi::Engine,
        call: *const abi::Call,
        slot: &str,
        work: impl FnOnce(&mut T, &Call<'_>, Sinks<'_>) -> Result<abi::Status, EngineError>,
    ) -> abi::Status {
        if this.is_null() {
            return abi::ERR_INVALID;
        }
        // SAFETY: the caller's promise: nobody else is inside.
        let instance = unsafe { &mut *this.cast::<Self>() };
        // SAFETY: the record lasts as long as this function.
        let cx = unsafe { Call::from_raw(call, &instance.host) };
        // SAFETY: one set reports the outcome after `work`, which has the other, is done; both stay on this thread.
        let (report, results) = unsafe { (cx.sinks(), cx.sinks()) };
        if instance.dead {
            report.error(&format!(
                "engine {} panicked earlier and is not entered again",
                T::NAME
            ));
            return abi::ERR_PANIC;
        }
        let engine = &mut instance.engine;
        let (status, died) = settle(&report, T::NAME, slot, cx.host(), || {
            work(engine, &cx, results)
        });
        instance.dead = died;
        status
    }
}

/// Runs author's code that has no instance yet, or only reads one.
pub(crate) fn settle(
    report: &Sinks<'_>,
    name: &str,
    slot: &str,
    host: &Host,
    work: impl FnOnce() -> Result<abi::Status, EngineError>,
) -> (abi::Status, bool) {
    match panics::guarded(host, work) {
        Ok(Ok(status)) => (status, false),
        Ok(Err(error)) => {
            report.error(&error.to_string());
            (error.status(), false)
        }
        Err(panic) => {
            let text = format!("engine {name} panicked in {slot}: {panic}");
            report.error(&text);
            host.log(crate::Level::Error, &text);
            (abi::ERR_PANIC, true)
        }
    }
}

/// Runs a slot that emits messages.
pub(crate) fn emitting(
    results: Sinks<'_>,
    work: impl FnOnce(&mut Emit<'_>) -> Result<Verdict, EngineError>,
) -> Result<abi::Status, EngineError> {
    // The reason of an unchanged list goes out as the header says: by `error`. Emit and it are never used at once.
    let reasons = results.twin();
    match work(&mut Emit::new(results))? {
        Verdict::Done => Ok(abi::OK),
        Verdict::Unchanged(reason) => {
            if !reason.is_empty() {
                reasons.error(&reason);
            }
            Ok(abi::UNCHANGED)
        }
    }
}

/// Fills an out struct: nothing beyond the size that the caller has set.
///
/// # Safety
/// `out` is NULL or points to a struct whose first four bytes are its size, all of it writable.
pub(crate) unsafe fn fill_state(out: *mut abi::State, state: abi::State) -> abi::Status {
    if out.is_null() {
        return abi::ERR_INVALID;
    }
    // SAFETY: the caller's promise.
    let room = unsafe { out.cast::<u32>().read() };
    let length = (room as usize).min(size_of::<abi::State>());
    if length < size_of::<u32>() {
        return abi::ERR_INVALID;
    }
    let filled = abi::State {
        struct_size: room,
        ..state
    };
    if length == size_of::<abi::State>() {
        // SAFETY: the caller's room is at least a whole struct of this build.
        unsafe { out.write(filled) };
        return abi::OK;
    }
    // SAFETY: `length` is within both structs, which do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const filled).cast::<u8>(), out.cast::<u8>(), length)
    };
    abi::OK
}

/// The arguments of `create` as safe values.
///
/// # Safety
/// `args` is NULL or as the header says, readable for `'a`.
pub(crate) unsafe fn create_args<'a>(
    args: *const abi::CreateArgs,
    host: &'a Host,
) -> Result<crate::Create<'a>, EngineError> {
    // SAFETY: the caller's promise, here and for each text below.
    unsafe {
        let args = read::prefix(args);
        let config = match read::text(args.config) {
            "" => serde_json::Value::Object(serde_json::Map::new()),
            json => serde_json::from_str(json).map_err(|error| {
                EngineError::Invalid(format!("the settings are not JSON: {error}"))
            })?,
        };
        Ok(crate::Create {
            config,
            data_dir: read::text(args.data_dir),
            plugin_dir: read::text(args.plugin_dir),
            context_length: args.context_length,
            purpose: args.purpose.into(),
            host,
        })
    }
}
