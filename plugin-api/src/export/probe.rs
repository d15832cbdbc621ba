//! Which slots a type has, decided by the compiler.
//!
//! `Probe::<X>::SELECT_CONTEXT` names an inherent constant where `X` implements the trait, because an inherent item
//! shadows a trait's; elsewhere the bound of the inherent `impl` fails, and the `None` of [`Absent`] is what is left. So
//! there is no list that an author could forget to extend, and a method that `cfg` has removed is gone here as well.

use std::marker::PhantomData;

use hermes_engine_abi as abi;

use crate::engine::ContextEngine;
use crate::export::slots;
use crate::groups::{
    CloneForAgent, Commands, Idle, Passes, Preflight, SelectContext, Sessions, Status, Tools,
    TurnComplete,
};

type Simple = unsafe extern "C" fn(*mut abi::Engine, *const abi::Call) -> abi::Status;
type With<A> = unsafe extern "C" fn(*mut abi::Engine, *const abi::Call, *const A) -> abi::Status;
type Decide = unsafe extern "C" fn(
    *mut abi::Engine,
    *const abi::Call,
    *const abi::DecideArgs,
    *mut u32,
) -> abi::Status;
type Copy = unsafe extern "C" fn(
    *const abi::Engine,
    *const abi::Host,
    *const abi::Call,
    *mut *mut abi::Engine,
) -> abi::Status;

/// Asks what `T` implements.
pub struct Probe<T>(PhantomData<T>);

/// The answer where a type does not implement a trait.
#[expect(missing_docs, reason = "each constant is the slot of its name")]
pub trait Absent {
    const CLONE_FOR_AGENT: Option<Copy> = None;
    const CLONE_FROM: Option<Copy> = None;
    const SESSION_START: Option<With<abi::SessionArgs>> = None;
    const SESSION_END: Option<With<abi::SessionArgs>> = None;
    const PASS_RESULT: Option<With<abi::PassArgs>> = None;
    const PREFLIGHT: Option<Decide> = None;
    const SELECT_CONTEXT: Option<With<abi::SelectArgs>> = None;
    const TURN_COMPLETE: Option<With<abi::TurnArgs>> = None;
    const TOOL_SCHEMAS: Option<Simple> = None;
    const TOOL_CALL: Option<With<abi::ToolArgs>> = None;
    const STATUS: Option<Simple> = None;
    const COMMAND: Option<With<abi::CommandArgs>> = None;
    const IDLE: Option<Simple> = None;
}

impl<T> Absent for Probe<T> {}

macro_rules! present {
    ($($bound:path => $($slot:ident: $kind:ty = $function:ident),+;)*) => {$(
        #[expect(missing_docs, reason = "each constant is the slot of its name")]
        impl<T: $bound> Probe<T> {
            $(pub const $slot: Option<$kind> = Some(slots::$function::<T>);)+
        }
    )*};
}

/// Engines that can be copied.
pub trait Copyable: ContextEngine + Clone {}
impl<T: ContextEngine + Clone> Copyable for T {}

present! {
    CloneForAgent => CLONE_FOR_AGENT: Copy = clone_for_agent;
    Copyable => CLONE_FROM: Copy = clone_from;
    Sessions => SESSION_START: With<abi::SessionArgs> = session_start, SESSION_END: With<abi::SessionArgs> = session_end;
    Passes => PASS_RESULT: With<abi::PassArgs> = pass_result;
    Preflight => PREFLIGHT: Decide = preflight;
    SelectContext => SELECT_CONTEXT: With<abi::SelectArgs> = select_context;
    TurnComplete => TURN_COMPLETE: With<abi::TurnArgs> = turn_complete;
    Tools => TOOL_SCHEMAS: Simple = tool_schemas, TOOL_CALL: With<abi::ToolArgs> = tool_call;
    Status => STATUS: Simple = status;
    Commands => COMMAND: With<abi::CommandArgs> = command;
    Idle => IDLE: Simple = idle;
}

/// The author's own way to copy comes before `Clone`.
pub const fn first(own: Option<Copy>, derived: Option<Copy>) -> Option<Copy> {
    match own {
        Some(_) => own,
        None => derived,
    }
}

/// The engine's name as bytes that end with NUL, for the symbol that a host reads without running the library.
///
/// # Panics
/// At compile time, when `N` is not the length with the NUL, or the name holds a NUL.
pub const fn name_bytes<const N: usize>(name: &str) -> [u8; N] {
    let bytes = name.as_bytes();
    assert!(bytes.len() + 1 == N, "one byte more than the name");
    let mut out = [0; N];
    let mut at = 0;
    while at < bytes.len() {
        assert!(bytes[at] != 0, "the name of an engine holds no NUL");
        out[at] = bytes[at];
        at += 1;
    }
    out
}

/// The rules for names of engines, checked at compile time: not empty, at most 64 bytes, no separators, no control
/// characters, no blanks, not `..`, and not the built-in's name unless it is the built-in.
///
/// # Panics
/// At compile time, with the rule that is broken.
pub const fn check_name(name: &str) {
    let bytes = name.as_bytes();
    assert!(!bytes.is_empty(), "ContextEngine::NAME is empty");
    assert!(
        bytes.len() <= 64,
        "ContextEngine::NAME is longer than 64 bytes"
    );
    assert!(bytes[0] != b'.', "ContextEngine::NAME begins with a dot");
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        assert!(
            byte > b' ' && byte != 0x7f,
            "ContextEngine::NAME holds a blank or a control character"
        );
        assert!(
            byte != b'/' && byte != b'\\',
            "ContextEngine::NAME holds a path separator"
        );
        at += 1;
    }
}
