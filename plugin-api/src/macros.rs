//! From a type to what a host loads.

/// The module of an engine without any exported symbol: for linking it into a program, and for tests.
/// The crate's front page has an example.
#[macro_export]
macro_rules! engine_module {
    ($engine:ty) => {{
        #[cfg(panic = "abort")]
        ::core::compile_error!(
            "a context engine must be built with `panic = \"unwind\"`: with \"abort\" a panic of the engine ends the \
             host. Remove `panic = \"abort\"` from the profile in Cargo.toml."
        );
        #[allow(unused_imports, reason = "not needed where every group is implemented")]
        use $crate::__private::Absent as _;
        const _: () = $crate::__private::check_name(<$engine as $crate::ContextEngine>::NAME);
        static VTABLE: $crate::abi::EngineVtable = $crate::abi::EngineVtable {
            clone: $crate::__private::first(
                $crate::__private::Probe::<$engine>::CLONE_FOR_AGENT,
                $crate::__private::Probe::<$engine>::CLONE_FROM,
            ),
            session_start: $crate::__private::Probe::<$engine>::SESSION_START,
            session_end: $crate::__private::Probe::<$engine>::SESSION_END,
            pass_result: $crate::__private::Probe::<$engine>::PASS_RESULT,
            preflight: $crate::__private::Probe::<$engine>::PREFLIGHT,
            select_context: $crate::__private::Probe::<$engine>::SELECT_CONTEXT,
            turn_complete: $crate::__private::Probe::<$engine>::TURN_COMPLETE,
            tool_schemas: $crate::__private::Probe::<$engine>::TOOL_SCHEMAS,
            tool_call: $crate::__private::Probe::<$engine>::TOOL_CALL,
            status: $crate::__private::Probe::<$engine>::STATUS,
            command: $crate::__private::Probe::<$engine>::COMMAND,
            idle: $crate::__private::Probe::<$engine>::IDLE,
            ..$crate::__private::required::<$engine>()
        };
        static MODULE: $crate::abi::Module = $crate::abi::Module {
            flags: $crate::abi::MODULE_UNWINDS,
            name: $crate::abi::Bytes::of_static(<$engine as $crate::ContextEngine>::NAME),
            version: $crate::abi::Bytes::of_static(::core::env!("CARGO_PKG_VERSION")),
            build: $crate::abi::Bytes::of_static(::core::concat!(
                ::core::env!("CARGO_PKG_NAME"),
                " ",
                ::core::env!("CARGO_PKG_VERSION")
            )),
            engine: &raw const VTABLE,
            ..$crate::abi::Module::EMPTY
        };
        &MODULE
    }};
}

/// Exports an engine from a library: the entry function, the engine's name as data, and with the feature `layout` the
/// layout of the border.
///
/// Once per crate, at its top level, in a crate with `crate-type = ["cdylib"]`.
#[macro_export]
macro_rules! export_engine {
    ($engine:ty) => {
        /// The entry of the library: `[entry]` in `hermes_engine.h`.
        #[unsafe(no_mangle)]
        pub extern "C" fn hermes_context_engine_v1() -> *const $crate::abi::Module {
            $crate::__private::is_a_library();
            let module: &'static $crate::abi::Module = $crate::engine_module!($engine);
            module
        }

        /// The engine's name as data, which a host reads without running the library.
        #[unsafe(no_mangle)]
        #[allow(
            non_upper_case_globals,
            reason = "the name of the symbol is part of the border"
        )]
        pub static hermes_engine_name: [u8; <$engine as $crate::ContextEngine>::NAME.len() + 1] =
            $crate::__private::name_bytes(<$engine as $crate::ContextEngine>::NAME);

        $crate::__export_layout!();
    };
}

/// The layout of the border as an optional symbol.
#[cfg(feature = "layout")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_layout {
    () => {
        /// The layout of the border's types in this build.
        #[unsafe(no_mangle)]
        #[allow(
            non_upper_case_globals,
            reason = "the name of the symbol is part of the border"
        )]
        pub static hermes_context_engine_rust_layout_v1: $crate::abi::layout::LayoutExport =
            $crate::abi::layout::LayoutExport::OURS;
    };
}

/// Without the feature `layout` there is nothing to export.
#[cfg(not(feature = "layout"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_layout {
    () => {};
}
