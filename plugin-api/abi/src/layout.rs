//! The layout of the border as data, so that a host can compare it with its own at load.
//!
//! It catches what the compiler of a Rust engine cannot see: an engine built against a patched or forked
//! copy of this crate. C and C++ have the header's own assertions instead, and export nothing.
//!
//! A library exports one [`LayoutExport`] as a static under [`LAYOUT_SYMBOL`](crate::LAYOUT_SYMBOL). The host
//! reads it in this order, and stops at the first step that says so:
//!
//! 1. The module's `abi_minor` differs from the host's: not compared. Grown argument structs differ in
//!    both directions, and the rules of `struct_size` take care of them.
//! 2. [`LayoutExport::header`] is not [`AbiHeader::is_valid`]: not compared. It was written by another
//!    `abi_stable`, whose layouts this one cannot read.
//! 3. [`compare`] of the two layouts: incompatible is a refusal.

pub use abi_stable::abi_stability::abi_checking::AbiInstabilityErrors;
pub use abi_stable::library::AbiHeader;
pub use abi_stable::type_layout::TypeLayout;

use abi_stable::StableAbi;

use super::{
    Bytes, Call, CommandArgs, CompleteArgs, CompressArgs, CreateArgs, DecideArgs, Engine,
    EngineVtable, Host, Message, Messages, ModelArgs, Module, PassArgs, Registrar, SelectArgs,
    SessionArgs, State, ToolArgs, TurnArgs, Usage,
};

/// Every struct of the border by value, so that none is left out of the comparison. It is never made.
#[repr(C)]
#[derive(Debug, StableAbi)]
#[allow(dead_code)]
pub struct Border {
    bytes: Bytes,
    message: Message,
    messages: Messages,
    call: Call,
    complete_args: CompleteArgs,
    host: Host,
    create_args: CreateArgs,
    usage: Usage,
    model_args: ModelArgs,
    state: State,
    decide_args: DecideArgs,
    session_args: SessionArgs,
    compress_args: CompressArgs,
    pass_args: PassArgs,
    select_args: SelectArgs,
    turn_args: TurnArgs,
    tool_args: ToolArgs,
    command_args: CommandArgs,
    engine: Engine,
    engine_vtable: EngineVtable,
    module: Module,
    registrar: Registrar,
}

/// What stands under [`LAYOUT_SYMBOL`](crate::LAYOUT_SYMBOL).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LayoutExport {
    /// Which `abi_stable` has written the layout. This struct is promised never to change.
    pub header: AbiHeader,
    /// The layout of [`Border`]; only to be read once `header` is valid.
    pub layout: &'static TypeLayout,
}

impl LayoutExport {
    /// The layout of this copy of the crate.
    pub const OURS: Self = Self {
        header: AbiHeader::VALUE,
        layout: Border::LAYOUT,
    };
}

/// Compares a library's layout with our own. The error is a long report for a file, not for a person.
///
/// # Errors
/// Says where the two differ.
pub fn compare(theirs: &'static TypeLayout) -> Result<(), AbiInstabilityErrors> {
    abi_stable::abi_stability::abi_checking::check_layout_compatibility(Border::LAYOUT, theirs)
}
