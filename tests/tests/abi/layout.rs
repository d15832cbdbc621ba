//! The golden file against C, against Rust, and both against the header's text.

use std::any::type_name;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem::offset_of;

use hermes_engine_abi::*;

use crate::header::{Header, camel};
use crate::toolchain::{Compiler, plugin_api, read, sources};

struct Shape {
    name: &'static str,
    size: usize,
    align: usize,
    fields: Vec<Place>,
}

struct Place {
    name: &'static str,
    offset: usize,
    size: usize,
    type_name: &'static str,
}

/// Size and type of what a closure reaches.
fn of<T, F>(_: fn(&T) -> &F) -> (usize, &'static str) {
    (size_of::<F>(), type_name::<F>())
}

macro_rules! shapes {
    ($($c:literal $ty:ident { $($field:ident)* })*) => {
        vec![$({
            // A field that is not listed does not compile.
            let _complete = |value: &$ty| { let $ty { $($field: _),* } = *value; };
            Shape {
                name: $c,
                size: size_of::<$ty>(),
                align: align_of::<$ty>(),
                fields: vec![$({
                    let (size, type_name) = of(|value: &$ty| &value.$field);
                    Place { name: stringify!($field), offset: offset_of!($ty, $field), size, type_name }
                }),*],
            }
        }),*]
    };
}

fn shapes() -> Vec<Shape> {
    shapes! {
        "bytes" Bytes { ptr len }
        "message" Message { json identity uid version role flags tokens caller }
        "messages" Messages { items count stride }
        "call" Call {
            struct_size reserved call_id budget_ms session_id cancelled progress error write
            keep push
        }
        "complete_args" CompleteArgs {
            struct_size reserved request timeout_ms call user on_text on_result
        }
        "host" Host {
            struct_size abi_major abi_minor name version log_level reserved log count_tokens
            complete extension
        }
        "create_args" CreateArgs { struct_size purpose config data_dir plugin_dir context_length }
        "usage" Usage {
            struct_size reserved prompt_tokens completion_tokens total_tokens input_tokens
            output_tokens cache_read_tokens cache_write_tokens reasoning_tokens json
        }
        "model_args" ModelArgs {
            struct_size reserved model provider base_url api_mode context_length
            max_output_tokens helper_context_length threshold_percent model_thresholds
        }
        "state" State {
            struct_size flags last_prompt_tokens last_completion_tokens last_total_tokens
            threshold_tokens context_length compression_count threshold_percent protect_first_n
            protect_last_n
        }
        "decide_args" DecideArgs { struct_size reserved prompt_tokens messages }
        "session_args" SessionArgs {
            struct_size reason flags reserved old_session_id parent_session_id root_session_id
            platform conversation_id hermes_home last_pass_id messages
        }
        "compress_args" CompressArgs {
            struct_size trigger flags incoming messages current_tokens target_tokens focus
            memory_context pass_id
        }
        "pass_args" PassArgs { struct_size outcome pass_id reason messages }
        "select_args" SelectArgs {
            struct_size attempt request conversation incoming reserved budget_tokens
            fixed_tokens
        }
        "turn_args" TurnArgs { struct_size outcome api_calls reserved messages usage turn_id }
        "tool_args" ToolArgs { struct_size reserved name arguments tool_call_id messages }
        "command_args" CommandArgs { struct_size reserved argv }
        "engine_vtable" EngineVtable {
            struct_size reserved create destroy state update_model update_from_response
            session_reset should_compress compress clone session_start session_end pass_result
            preflight select_context turn_complete tool_schemas tool_call status command idle
        }
        "module" Module {
            struct_size abi_major abi_minor flags min_host_minor name version build engine
            extension
        }
        "registrar" Registrar {
            struct_size abi_major abi_minor host create register_context_engine extension
        }
    }
}

fn constants() -> Vec<(&'static str, i64)> {
    macro_rules! constants {
        ($($name:ident)*) => { vec![$((stringify!($name), i64::from($name))),*] };
    }
    constants! {
        ABI_MAJOR ABI_MINOR NONE OK UNCHANGED MORE ERR_FAILED ERR_PANIC ERR_CANCELLED
        ERR_INVALID ERR_UNSUPPORTED ERR_LIMIT ERR_UNAVAILABLE ROLE_OTHER ROLE_SYSTEM ROLE_USER
        ROLE_ASSISTANT ROLE_TOOL MSG_TOOL_CALLS MSG_MULTIMODAL MSG_SUMMARY MSG_ABSORBED
        MSG_SYNTHETIC FOR_TEMPLATE FOR_AGENT FOR_PROBE STATE_QUIET START_NEW START_RESUME
        START_BRANCH START_REWIND START_COMPRESSION START_DELEGATE START_RECOVER
        START_CARRY_OVER TRIGGER_PREFLIGHT TRIGGER_TOOLS TRIGGER_OVERFLOW TRIGGER_IDLE
        TRIGGER_MANUAL TRIGGER_PRUNE COMPRESS_FORCE PASS_DISCARDED PASS_COMMITTED TURN_OK
        TURN_INTERRUPTED TURN_FAILED TURN_BLOCKED MODULE_UNWINDS
    }
}

fn as_rust_sees_it() -> String {
    let mut text = String::new();
    for shape in shapes() {
        writeln!(text, "{} {} {}", shape.name, shape.size, shape.align).expect("a string");
        for field in &shape.fields {
            writeln!(text, "  {} {} {}", field.name, field.offset, field.size).expect("a string");
        }
    }
    for (name, value) in constants() {
        writeln!(text, "{name} {value}").expect("a string");
    }
    text
}

const WHY: &str = "tests/abi/v1.layout is the frozen shape of ABI 1. A released line in it never changes; \
    a new field or constant is a new line, in the header, in border.list, in the mirror and here";

fn golden() -> String {
    read(&sources().join("v1.layout"))
}

// contract: SAFE-1
#[test]
fn rust_has_the_frozen_shape() {
    assert_eq!(as_rust_sees_it(), golden(), "{WHY}");
}

// contract: SAFE-1
#[test]
fn c_has_the_frozen_shape() {
    let program = Compiler::new("c11")
        .file(sources().join("layout.c"))
        .built();
    assert_eq!(program.run(&[]), golden(), "{WHY}");
}

/// The golden file knows offsets and sizes; this also sees a swapped argument or a wrong sign.
#[test]
fn header_and_mirror_have_the_same_types() {
    let header = Header::parse(&read(&plugin_api().join("include/hermes_engine.h")));
    let mut mirrored = BTreeSet::new();
    for shape in shapes() {
        let declared = header.structs.get(shape.name);
        let declared = declared.unwrap_or_else(|| panic!("the header has no {}", shape.name));
        let here: Vec<(String, String)> = shape
            .fields
            .iter()
            .map(|field| (field.name.into(), without_paths(field.type_name)))
            .collect();
        let there: Vec<(String, String)> = declared
            .iter()
            .map(|field| (field.name.clone(), field.ty.clone()))
            .collect();
        assert_eq!(here, there, "{}", camel(shape.name));
        mirrored.insert(shape.name.to_owned());
    }
    let declared: BTreeSet<String> = header.structs.into_keys().collect();
    assert_eq!(mirrored, declared, "structs");
    let mirrored: BTreeSet<String> = constants().iter().map(|(name, _)| (*name).into()).collect();
    let declared: BTreeSet<String> = header.constants.into_keys().collect();
    assert_eq!(mirrored, declared, "constants");
}

/// `core::option::Option<a::B>` as `Option<B>`.
fn without_paths(type_name: &str) -> String {
    let mut short = String::new();
    for part in type_name.split_inclusive("::") {
        match part.strip_suffix("::") {
            Some(path) => {
                short.push_str(path.trim_end_matches(|c: char| c == '_' || c.is_alphanumeric()))
            }
            None => short.push_str(part),
        }
    }
    short
}

#[test]
fn symbols_are_the_header_s() {
    let header = Header::parse(&read(&plugin_api().join("include/hermes_engine.h")));
    for symbol in [ENTRY_SYMBOL, REGISTER_SYMBOL, NAME_SYMBOL] {
        let found = header
            .functions
            .iter()
            .filter(|f| f.contains(symbol))
            .count();
        assert_eq!(found, 1, "{symbol}");
    }
}
