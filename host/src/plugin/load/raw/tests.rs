//! Every way in which a module can be wrong, on tables made here.

use hermes_engine_abi as abi;

use super::*;

macro_rules! stub {
    ($($name:ident($($arg:ty),*) $(-> $out:ty)?;)+) => { $(
        #[allow(clippy::unused_unit)]
        unsafe extern "C" fn $name($(_: $arg),*) $(-> $out)? { $( { let none: $out = abi::ERR_FAILED; none } )? }
    )+ };
}
stub! {
    create(*const abi::Host, *const abi::Call, *const abi::CreateArgs, *mut *mut abi::Engine) -> abi::Status;
    destroy(*mut abi::Engine);
    state(*const abi::Engine, *mut abi::State) -> abi::Status;
    update_model(*mut abi::Engine, *const abi::Call, *const abi::ModelArgs) -> abi::Status;
    usage(*mut abi::Engine, *const abi::Call, *const abi::Usage) -> abi::Status;
    reset(*mut abi::Engine, *const abi::Call) -> abi::Status;
    should(*mut abi::Engine, *const abi::Call, *const abi::DecideArgs, *mut u32) -> abi::Status;
    compress(*mut abi::Engine, *const abi::Call, *const abi::CompressArgs) -> abi::Status;
}

fn whole() -> abi::EngineVtable {
    abi::EngineVtable {
        create: Some(create),
        destroy: Some(destroy),
        state: Some(state),
        update_model: Some(update_model),
        update_from_response: Some(usage),
        session_reset: Some(reset),
        should_compress: Some(should),
        compress: Some(compress),
        idle: Some(reset),
        ..abi::EngineVtable::EMPTY
    }
}

fn module(vtable: abi::EngineVtable) -> abi::Module {
    abi::Module {
        name: abi::Bytes::of_static("probe"),
        version: abi::Bytes::of_static("1.2.3"),
        engine: Box::leak(Box::new(vtable)),
        ..abi::Module::EMPTY
    }
}

fn check(module: abi::Module) -> Result<ModuleCopy, ModuleError> {
    copy_static(Box::leak(Box::new(module)))
}

// contract: ENG-18
#[test]
fn each_missing_required_slot_is_named() {
    macro_rules! without {
        ($($slot:ident),+) => { [$((stringify!($slot), abi::EngineVtable { $slot: None, ..whole() })),+] };
    }
    for (name, vtable) in without![
        create,
        destroy,
        state,
        update_model,
        update_from_response,
        session_reset,
        should_compress,
        compress
    ] {
        let error = check(module(vtable)).expect_err(name);
        assert_eq!(
            error,
            ModuleError::MissingSlot(RequiredSlot {
                name,
                beyond_table: false
            })
        );
        assert!(error.to_string().contains(name));
    }
}

// contract: ENG-18, HOOK-1
#[test]
fn slots_outside_the_table_do_not_exist() {
    let idle_outside = abi::EngineVtable {
        struct_size: u32::try_from(offset_of!(abi::EngineVtable, idle)).expect("small"),
        ..whole()
    };
    assert!(
        check(module(idle_outside))
            .expect("whole")
            .vtable
            .idle
            .is_none()
    );
    let half = abi::EngineVtable {
        struct_size: idle_outside.struct_size + 4,
        ..whole()
    };
    assert!(check(module(half)).expect("whole").vtable.idle.is_none());
    let compress_outside = abi::EngineVtable {
        struct_size: u32::try_from(offset_of!(abi::EngineVtable, compress)).expect("small"),
        ..whole()
    };
    assert_eq!(
        check(module(compress_outside)).expect_err("short"),
        ModuleError::MissingSlot(RequiredSlot {
            name: "compress",
            beyond_table: true
        })
    );
}

// case: 44, 48
#[test]
fn a_newer_minor_loads_and_a_demanded_one_does_not() {
    let newer = abi::Module {
        abi_minor: 9,
        struct_size: 4096,
        ..module(whole())
    };
    // The sizes lie, so that reading past the known part would be seen by Miri and by valgrind.
    assert_eq!(check(newer).expect("same major").abi, (abi::ABI_MAJOR, 9));
    let demanding = abi::Module {
        min_host_minor: 7,
        ..module(whole())
    };
    let text = check(demanding).expect_err("too old a host").to_string();
    assert!(text.contains("1.7") && text.contains("1.0"), "{text}");
}

// contract: SAFE-1
// case: 48
#[test]
fn wrong_versions_and_sizes_are_refused_with_both_numbers() {
    for major in [0, 2, u16::MAX] {
        let other = abi::Module {
            abi_major: major,
            ..module(whole())
        };
        let text = check(other).expect_err("another major").to_string();
        assert!(
            text.contains(&format!("{major}.0")) && text.contains("ABI 1.0"),
            "{text}"
        );
    }
    for size in [0, 8, 71] {
        let short = abi::Module {
            struct_size: size,
            ..module(whole())
        };
        assert!(
            matches!(check(short), Err(ModuleError::Short { table: "module", have, .. }) if have == size)
        );
        let short = abi::EngineVtable {
            struct_size: size.min(7),
            ..whole()
        };
        assert!(matches!(
            check(module(short)),
            Err(ModuleError::Short {
                table: "engine table",
                ..
            })
        ));
    }
}

// contract: SAFE-1, DISC-5
#[test]
fn pointers_and_texts_are_checked_before_they_are_used() {
    // SAFETY: NULL is allowed.
    let null = unsafe { copy_module(std::ptr::null()) };
    assert_eq!(null.err(), Some(ModuleError::Null));
    let dangling = std::ptr::without_provenance::<abi::Module>(13);
    // SAFETY: an address that is not aligned is refused before it is read.
    let error = unsafe { copy_module(dangling) }.err();
    assert_eq!(error, Some(ModuleError::Misaligned { table: "module" }));
    let none = abi::Module {
        engine: std::ptr::null(),
        ..module(whole())
    };
    assert_eq!(check(none).err(), Some(ModuleError::NoTable));

    let named = |name| {
        check(abi::Module {
            name,
            ..module(whole())
        })
        .err()
    };
    let null = abi::Bytes {
        ptr: std::ptr::null(),
        len: 3,
    };
    assert!(matches!(
        named(null),
        Some(ModuleError::BadText { field: "name", .. })
    ));
    let long = abi::Bytes {
        len: usize::MAX,
        ..abi::Bytes::of_static("x")
    };
    assert!(matches!(named(long), Some(ModuleError::BadText { .. })));
    let bytes: &'static [u8] = b"\xff\xfe";
    let broken = abi::Bytes {
        ptr: bytes.as_ptr(),
        len: 2,
    };
    assert!(matches!(named(broken), Some(ModuleError::BadText { .. })));
    assert!(matches!(
        named(abi::Bytes::EMPTY),
        Some(ModuleError::BadName { .. })
    ));
    assert!(matches!(
        named(abi::Bytes::of_static("a/b")),
        Some(ModuleError::BadName { .. })
    ));
}
