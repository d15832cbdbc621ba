//! Sizes that are frozen with the border, checked when the crate is compiled.

use super::{
    Bytes, Call, CommandArgs, CompleteArgs, CompressArgs, CreateArgs, DecideArgs, EngineVtable,
    Host, Message, Messages, ModelArgs, Module, PassArgs, Registrar, SelectArgs, SessionArgs,
    State, ToolArgs, TurnArgs, Usage,
};

const _: () = assert!(
    size_of::<usize>() == 8,
    "context engines are 64-bit only in ABI major 1"
);

/// Gives each struct its `SIZE` for `struct_size`, and states the bytes it must have in this minor.
macro_rules! sizes {
    ($($name:ident = $size:literal;)*) => {$(
        impl $name {
            /// Size of this struct in bytes, the value of `struct_size` where it has one.
            pub const SIZE: u32 = $size;
        }
        const _: () = assert!(size_of::<$name>() == $size && align_of::<$name>() == 8);
    )*};
}

sizes! {
    Bytes = 16;
    Message = 72;
    Messages = 24;
    Call = 88;
    CompleteArgs = 64;
    Host = 80;
    CreateArgs = 64;
    Usage = 88;
    ModelArgs = 120;
    State = 72;
    DecideArgs = 24;
    SessionArgs = 136;
    CompressArgs = 88;
    PassArgs = 48;
    SelectArgs = 48;
    TurnArgs = 48;
    ToolArgs = 64;
    CommandArgs = 24;
    EngineVtable = 168;
    Module = 80;
    Registrar = 96;
}
