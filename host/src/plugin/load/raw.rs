//! Copies a module's tables out of foreign memory, once, and reads nothing beyond their `struct_size`.

use std::mem::{MaybeUninit, offset_of};

use hermes_engine_abi as abi;

use crate::plugin::error::{ModuleError, RequiredSlot};

/// Longest text that is read from a module. A longer one is a length field that was never set.
const MAX_TEXT: usize = 4096;

/// Everything that a module says, as this host's own memory.
#[derive(Clone, Debug)]
pub(crate) struct ModuleCopy {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) build: String,
    pub(crate) abi: (u16, u16),
    pub(crate) flags: u32,
    pub(crate) vtable: abi::EngineVtable,
}

/// The module of a linked engine.
pub(crate) fn copy_static(module: &'static abi::Module) -> Result<ModuleCopy, ModuleError> {
    // SAFETY: a reference is valid to read, and what a static module points to is static too: the header's rule for
    // every module, kept by the SDK's macro that makes these.
    unsafe { copy_module(module) }
}

/// Checks a module and copies it with its vtable.
///
/// # Safety
/// `module` is NULL, or what an engine's entry returned: readable for its own `struct_size`, and so is the vtable it
/// points to; its texts are readable for their lengths. A library that breaks this breaks the process, which is why
/// unknown libraries are tried in a child process first.
pub(crate) unsafe fn copy_module(module: *const abi::Module) -> Result<ModuleCopy, ModuleError> {
    if module.is_null() {
        return Err(ModuleError::Null);
    }
    check_aligned(module, "module")?;

    // The first eight bytes are the same in every major: size and version. Nothing else is read before they fit.
    // SAFETY: the caller's promise; a module of any version begins with these fields.
    let (size, major, minor) = unsafe {
        (
            (*module).struct_size,
            (*module).abi_major,
            (*module).abi_minor,
        )
    };
    if major != abi::ABI_MAJOR {
        return Err(ModuleError::WrongMajor {
            theirs: (major, minor),
        });
    }
    // `extension` may be missing; all before it may not.
    check_size(size, offset_of!(abi::Module, extension), "module")?;
    // SAFETY: `module` is readable for `size` bytes, by the caller's promise, and every field of a `Module` may be zero.
    let module: abi::Module = unsafe { copy_prefix(module, size) };

    if module.min_host_minor > u32::from(abi::ABI_MINOR) {
        return Err(ModuleError::HostTooOld {
            min_host_minor: module.min_host_minor,
        });
    }
    // SAFETY: the caller's promise about the texts, here and in the two lines below.
    let name = unsafe { text(module.name, "name") }?;
    // SAFETY: as above.
    let version = unsafe { text(module.version, "version") }?;
    // SAFETY: as above.
    let build = unsafe { text(module.build, "build text") }?;
    if let Err(problem) = crate::plugin::name::check(&name) {
        return Err(ModuleError::BadName { name, problem });
    }

    // SAFETY: the caller's promise about the vtable.
    let vtable = unsafe { copy_vtable(module.engine) }?;
    Ok(ModuleCopy {
        name,
        version,
        build,
        abi: (major, minor),
        flags: module.flags,
        vtable,
    })
}

/// # Safety
/// `vtable` is NULL or readable for its own `struct_size`.
unsafe fn copy_vtable(vtable: *const abi::EngineVtable) -> Result<abi::EngineVtable, ModuleError> {
    if vtable.is_null() {
        return Err(ModuleError::NoTable);
    }
    check_aligned(vtable, "engine table")?;
    // SAFETY: the caller's promise; every table begins with its size.
    let size = unsafe { (*vtable).struct_size };
    check_size(size, offset_of!(abi::EngineVtable, create), "engine table")?;
    // SAFETY: `vtable` is readable for `size` bytes, and every slot may be NULL, which is `None`.
    let copy: abi::EngineVtable = unsafe { copy_prefix(vtable, size) };

    match missing_slot(&copy, size) {
        Some(slot) => Err(ModuleError::MissingSlot(slot)),
        None => Ok(copy),
    }
}

/// The first required slot that is not there.
fn missing_slot(vtable: &abi::EngineVtable, size: u32) -> Option<RequiredSlot> {
    macro_rules! required {
        ($($slot:ident),+) => {
            [$((stringify!($slot), vtable.$slot.is_some(), offset_of!(abi::EngineVtable, $slot))),+]
        };
    }
    let slots = required![
        create,
        destroy,
        state,
        update_model,
        update_from_response,
        session_reset,
        should_compress,
        compress
    ];
    let (name, _, offset) = slots.into_iter().find(|(_, present, _)| !present)?;
    let end = offset + size_of::<usize>();
    Some(RequiredSlot {
        name,
        beyond_table: usize::try_from(size).is_ok_and(|size| size < end),
    })
}

fn check_aligned<T>(table: *const T, name: &'static str) -> Result<(), ModuleError> {
    if table.is_aligned() {
        Ok(())
    } else {
        Err(ModuleError::Misaligned { table: name })
    }
}

fn check_size(have: u32, need: usize, table: &'static str) -> Result<(), ModuleError> {
    if usize::try_from(have).is_ok_and(|have| have >= need) {
        Ok(())
    } else {
        Err(ModuleError::Short { table, have, need })
    }
}

/// The part of a struct that both sides know; the rest is zero.
///
/// # Safety
/// `from` is readable for `size` bytes, and the all-zero value is a `T`.
unsafe fn copy_prefix<T: Copy>(from: *const T, size: u32) -> T {
    let known = usize::try_from(size).map_or(size_of::<T>(), |size| size.min(size_of::<T>()));
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` bytes are readable at `from` and fit into `copy`; the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast(), known) };
    // A slot that is cut in half by `struct_size` does not exist: its bytes are made zero again.
    let whole = known / size_of::<u64>() * size_of::<u64>();
    if whole < known {
        // SAFETY: `whole..known` lies inside `copy`.
        unsafe {
            copy.as_mut_ptr()
                .cast::<u8>()
                .add(whole)
                .write_bytes(0, known - whole)
        };
    }
    // SAFETY: every byte is written, as zero or as a whole field of the source, and zero is a value of `T`.
    unsafe { copy.assume_init() }
}

/// A text of a module.
///
/// # Safety
/// `bytes` is readable for its length, if that is at most [`MAX_TEXT`].
unsafe fn text(bytes: abi::Bytes, field: &'static str) -> Result<String, ModuleError> {
    let problem = |problem| ModuleError::BadText { field, problem };
    if bytes.len == 0 {
        return Ok(String::new());
    }
    if bytes.ptr.is_null() {
        return Err(problem("has a length but no bytes (a NULL pointer)"));
    }
    if bytes.len > MAX_TEXT {
        return Err(problem("is longer than 4096 bytes"));
    }
    // SAFETY: not NULL, and readable by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.ptr, bytes.len) };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(problem("is not UTF-8")),
    }
}

#[cfg(test)]
mod tests;
