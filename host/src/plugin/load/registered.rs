//! An instance that a plugin's `register(ctx)` has made and handed over.

use hermes_engine_abi as abi;

/// An instance from `register_context_engine(ctx, module, instance)`, and the host table it was made with.
///
/// Whoever takes it owns it: it is the engine's template, and `destroy` is called on it once, or never.
#[derive(Debug)]
pub struct RegisteredInstance {
    instance: *mut abi::Engine,
    host: &'static abi::Host,
}

// SAFETY: the header demands that an instance may be entered from any thread, one at a time; this value is its only
// handle, and taking it moves that right.
unsafe impl Send for RegisteredInstance {}

impl RegisteredInstance {
    /// `None` when the plugin handed over no instance: then the host makes it with `create`.
    #[allow(dead_code)] // until libraries are loaded
    pub(crate) fn new(instance: *mut abi::Engine, host: &'static abi::Host) -> Option<Self> {
        (!instance.is_null()).then_some(Self { instance, host })
    }

    /// The instance; never NULL.
    #[must_use]
    pub fn instance(&self) -> *mut abi::Engine {
        self.instance
    }

    /// The host table that the plugin was given when it made the instance. It lives as long as the process.
    #[must_use]
    pub fn host(&self) -> &'static abi::Host {
        self.host
    }
}
