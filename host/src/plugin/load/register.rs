//! Calls a plugin's `register(ctx)` and keeps what it registers.

use std::sync::{Mutex, PoisonError};

use hermes_engine_abi as abi;

use super::raw::{ModuleCopy, copy_module};
use super::registered::RegisteredInstance;
use super::services::PROCESS_HOST;
use super::{CreateTexts, OpenError, Refusal};

/// What a plugin has registered.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) module: ModuleCopy,
    pub(crate) instance: Option<RegisteredInstance>,
}

/// What came of `register(ctx)`.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// The engine, if it registered one.
    pub(crate) engine: Option<Registration>,
    /// Names of engines that were refused because there was one already.
    pub(crate) refused: Vec<String>,
}

/// The registrar, with what the callback collects behind it.
#[repr(C)]
struct Collector {
    registrar: abi::Registrar,
    /// Taken by another plugin already.
    taken: bool,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    registered: Registered,
    broken: Option<Refusal>,
}

/// Calls the entry of a general plugin.
///
/// # Safety
/// `entry` is the function that the library exports under `REGISTER_SYMBOL`, and the library stays loaded.
pub(super) unsafe fn call(
    entry: abi::RegisterFn,
    texts: &CreateTexts,
    purpose: u32,
    taken: bool,
) -> Result<Registered, Refusal> {
    let collector = Collector {
        registrar: abi::Registrar {
            host: &raw const PROCESS_HOST,
            create: texts.args(purpose),
            register_context_engine: Some(register_context_engine),
            ..abi::Registrar::EMPTY
        },
        taken,
        found: Mutex::default(),
    };
    // SAFETY: the entry has this type by the header; the registrar is the collector's first field and lives until
    // after the call.
    let status = unsafe { entry((&raw const collector).cast()) };
    let found = collector
        .found
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match (found.broken, status) {
        (Some(broken), _) => Err(broken),
        (None, abi::OK) => Ok(found.registered),
        // It was told that its engine is refused, and passed that on.
        (None, abi::ERR_UNSUPPORTED) if !found.registered.refused.is_empty() => {
            Ok(found.registered)
        }
        (None, status) => Err(OpenError::RegisterFailed { status }.into()),
    }
}

unsafe extern "C" fn register_context_engine(
    ctx: *const abi::Registrar,
    module: *const abi::Module,
    instance: *mut abi::Engine,
) -> abi::Status {
    if ctx.is_null() {
        return abi::ERR_INVALID;
    }
    // SAFETY: plugins pass on the pointer that they were given, which `call` has made from a collector; the plugin may
    // call from a thread of its own, but only during `register(ctx)`.
    let collector = unsafe { &*ctx.cast::<Collector>() };
    // SAFETY: the header's rule for modules.
    let copy = unsafe { copy_module(module) };
    let mut found = collector
        .found
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    match copy {
        Err(error) => {
            found.broken = Some(Refusal::Module(error));
            abi::ERR_INVALID
        }
        Ok(copy) if collector.taken || found.registered.engine.is_some() => {
            found.registered.refused.push(copy.name);
            abi::ERR_UNSUPPORTED
        }
        Ok(module) => {
            let instance = RegisteredInstance::new(instance, &PROCESS_HOST);
            found.registered.engine = Some(Registration { module, instance });
            abi::OK
        }
    }
}
