//! What a library exports, and how it registers.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ptr;

use super::{
    ABI_MAJOR, ABI_MINOR, Bytes, Call, CommandArgs, CompressArgs, CreateArgs, DecideArgs, Host,
    ModelArgs, PassArgs, SelectArgs, SessionArgs, State, Status, ToolArgs, TurnArgs, Usage,
};

/// An instance. Only the library that made it knows what it is.
#[repr(C)]
#[derive(Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Engine {
    _private: [u8; 0],
    // Neither `Send` nor `Sync`: which thread may enter is the caller's knowledge.
    _marker: PhantomData<*mut u8>,
}

/// The slots of an engine, all of them `[serial]`. A slot exists when it lies inside `struct_size` and is
/// not `NULL`. On `create` and `clone` the instance is the new one; `clone` is `[serial]` on its source.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct EngineVtable {
    /// Size of this struct as the engine knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,

    /// Required. Makes an instance.
    pub create: Option<
        unsafe extern "C" fn(
            host: *const Host,
            call: *const Call,
            args: *const CreateArgs,
            out: *mut *mut Engine,
        ) -> Status,
    >,
    /// Required. Ends an instance, once and never during a call; its threads are joined first.
    pub destroy: Option<unsafe extern "C" fn(this: *mut Engine)>,
    /// Required. Shows the engine's state.
    pub state: Option<unsafe extern "C" fn(this: *const Engine, out: *mut State) -> Status>,
    /// Required. The model, or something about it, is another now.
    pub update_model: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const ModelArgs,
        ) -> Status,
    >,
    /// Required. What a model call of the conversation has used.
    pub update_from_response: Option<
        unsafe extern "C" fn(this: *mut Engine, call: *const Call, usage: *const Usage) -> Status,
    >,
    /// Required. The session is over for the user; per-session state goes.
    pub session_reset: Option<unsafe extern "C" fn(this: *mut Engine, call: *const Call) -> Status>,
    /// Required. Whether to compress now; `write` says why not.
    pub should_compress: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const DecideArgs,
            yes: *mut u32,
        ) -> Status,
    >,
    /// Required. Emits the shorter list.
    pub compress: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const CompressArgs,
        ) -> Status,
    >,

    /// Optional; `NULL` means: `create` again. Makes the instance of one agent from the registered one.
    pub clone: Option<
        unsafe extern "C" fn(
            source: *const Engine,
            host: *const Host,
            call: *const Call,
            out: *mut *mut Engine,
        ) -> Status,
    >,
    /// Optional. A session begins, goes on, or has got another id.
    pub session_start: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const SessionArgs,
        ) -> Status,
    >,
    /// Optional. A session has really ended.
    pub session_end: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const SessionArgs,
        ) -> Status,
    >,
    /// Optional. Once per `compress` that returned `OK`: what became of it.
    pub pass_result: Option<
        unsafe extern "C" fn(this: *mut Engine, call: *const Call, args: *const PassArgs) -> Status,
    >,
    /// Optional. A cheap look before the model call: whether to ask for one pass.
    pub preflight: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const DecideArgs,
            yes: *mut u32,
        ) -> Status,
    >,
    /// Optional. Chooses the messages of one request.
    pub select_context: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const SelectArgs,
        ) -> Status,
    >,
    /// Optional. A turn has ended.
    pub turn_complete: Option<
        unsafe extern "C" fn(this: *mut Engine, call: *const Call, args: *const TurnArgs) -> Status,
    >,
    /// Optional. Writes a JSON array of tool schemas.
    pub tool_schemas: Option<unsafe extern "C" fn(this: *mut Engine, call: *const Call) -> Status>,
    /// Optional. Runs one of its tools and writes JSON.
    pub tool_call: Option<
        unsafe extern "C" fn(this: *mut Engine, call: *const Call, args: *const ToolArgs) -> Status,
    >,
    /// Optional. Writes a JSON object for people to look at.
    pub status: Option<unsafe extern "C" fn(this: *mut Engine, call: *const Call) -> Status>,
    /// Optional. Writes text for a person.
    pub command: Option<
        unsafe extern "C" fn(
            this: *mut Engine,
            call: *const Call,
            args: *const CommandArgs,
        ) -> Status,
    >,
    /// Optional. Called between turns for as long as it answers `MORE`; cancelled when a turn begins.
    pub idle: Option<unsafe extern "C" fn(this: *mut Engine, call: *const Call) -> Status>,
}

impl EngineVtable {
    /// A table without slots, to be filled by struct update.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        create: None,
        destroy: None,
        state: None,
        update_model: None,
        update_from_response: None,
        session_reset: None,
        should_compress: None,
        compress: None,
        clone: None,
        session_start: None,
        session_end: None,
        pass_result: None,
        preflight: None,
        select_context: None,
        turn_complete: None,
        tool_schemas: None,
        tool_call: None,
        status: None,
        command: None,
        idle: None,
    };
}

/// `Module::flags`: panics and exceptions can be caught inside.
pub const MODULE_UNWINDS: u32 = 1;

/// What a library says about itself. It and all it points to live as long as the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Module {
    /// Size of this struct as the engine knows it.
    pub struct_size: u32,
    /// [`ABI_MAJOR`] of the engine.
    pub abi_major: u16,
    /// [`ABI_MINOR`] of the engine.
    pub abi_minor: u16,
    /// A set of `MODULE_*`.
    pub flags: u32,
    /// The oldest minor of a host that the engine can work with.
    pub min_host_minor: u32,
    /// The engine's name, equal to what the user writes in `context.engine`.
    pub name: Bytes,
    /// The engine's version.
    pub version: Bytes,
    /// How it was built, for people; or empty.
    pub build: Bytes,
    /// The slots.
    pub engine: *const EngineVtable,
    /// `[entry]` A table of a later minor, by its id, or `NULL`. May be `NULL` itself.
    pub extension: Option<unsafe extern "C" fn(id: *const c_char) -> *const c_void>,
}

impl Module {
    /// A module of this version without a name and without an engine, to be filled by struct update.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        flags: 0,
        min_host_minor: 0,
        name: Bytes::EMPTY,
        version: Bytes::EMPTY,
        build: Bytes::EMPTY,
        engine: ptr::null(),
        extension: None,
    };
}

// SAFETY: addresses and numbers; moving them to another thread reads nothing. What they point to is
// static and never written, as the header demands of every module.
unsafe impl Send for Module {}
// SAFETY: as above, and nothing in it can change through a shared reference.
unsafe impl Sync for Module {}

/// What the host hands to the entry of a general plugin, `register(ctx)`. It is valid during that call,
/// its `host` for as long as the process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Registrar {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// [`ABI_MAJOR`] of the host.
    pub abi_major: u16,
    /// [`ABI_MINOR`] of the host.
    pub abi_minor: u16,
    /// The services, for an instance that the plugin makes itself.
    pub host: *const Host,
    /// The arguments for such an instance.
    pub create: CreateArgs,
    /// Registers an engine. Without an `instance` the host makes it; a given one becomes the template.
    /// `ERR_UNSUPPORTED`: another engine is registered already, and stays.
    pub register_context_engine: Option<
        unsafe extern "C" fn(
            ctx: *const Registrar,
            module: *const Module,
            instance: *mut Engine,
        ) -> Status,
    >,
    /// A table of a later minor, by its id, or `NULL`.
    pub extension:
        Option<unsafe extern "C" fn(ctx: *const Registrar, id: *const c_char) -> *const c_void>,
}

impl Registrar {
    /// A registrar of this version that takes nothing, to be filled by struct update.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        host: ptr::null(),
        create: CreateArgs::EMPTY,
        register_context_engine: None,
        extension: None,
    };
}

/// The entry under [`ENTRY_SYMBOL`](crate::ENTRY_SYMBOL): `[entry]`, starts nothing, always answers the same.
pub type EntryFn = unsafe extern "C" fn() -> *const Module;
/// The entry under [`REGISTER_SYMBOL`](crate::REGISTER_SYMBOL): `[entry]`, once.
pub type RegisterFn = unsafe extern "C" fn(ctx: *const Registrar) -> Status;
