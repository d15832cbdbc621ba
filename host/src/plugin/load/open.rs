//! Opens a library in this process and asks it for its module. From here on its code runs.

use std::path::Path;

use hermes_engine_abi as abi;

use super::raw::{self, ModuleCopy};
use super::register::{self, Registered, Registration};
use super::registered::RegisteredInstance;
use super::{CreateTexts, OpenError, Refusal};
use crate::plugin::error::ModuleError;

/// What to open, and what is expected to be in it.
pub(crate) struct OpenRequest<'a> {
    /// The private copy.
    pub(crate) library: &'a Path,
    /// It exports the entry of a directory engine; else that of a general plugin is called.
    pub(crate) has_entry: bool,
    /// The name that was promised, and by whom.
    pub(crate) promised: Option<(&'a str, &'static str)>,
    /// For `register(ctx)`.
    pub(crate) texts: &'a CreateTexts,
    /// `FOR_TEMPLATE` or `FOR_PROBE`.
    pub(crate) purpose: u32,
    /// Another plugin has registered an engine already.
    pub(crate) taken: bool,
    /// Told before each part, so that a crash can be placed.
    pub(crate) stage: &'a dyn Fn(&str),
}

/// What a library has handed over.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The engine; a general plugin may have none.
    pub(crate) engine: Option<(ModuleCopy, Option<RegisteredInstance>)>,
    /// Engines that it wanted to register beyond the first.
    pub(crate) refused: Vec<String>,
    /// Whether the layout of the border was compared, or why not.
    pub(crate) layout: &'static str,
}

/// Opens a library for good: it is never closed.
pub(crate) fn open(request: &OpenRequest<'_>) -> Result<Opened, Refusal> {
    (request.stage)("while it was being opened (its constructors run then)");
    let library = sys::open(request.library)?;

    let (engine, refused) = if request.has_entry {
        (request.stage)("in its entry point");
        let entry = sys::symbol::<abi::EntryFn>(library, abi::ENTRY_SYMBOL)?;
        // SAFETY: the symbol is the engine entry, which has this type by the header, takes nothing and may be called
        // from any thread. The library is never closed, so what it returns stays.
        let module = unsafe { raw::copy_module(entry()) }?;
        let engine = Registration {
            module,
            instance: None,
        };
        (Some(engine), Vec::new())
    } else {
        (request.stage)("in its register function");
        let entry = sys::symbol::<abi::RegisterFn>(library, abi::REGISTER_SYMBOL)?;
        // SAFETY: the symbol is the register entry, and the library is never closed.
        let registered =
            unsafe { register::call(entry, request.texts, request.purpose, request.taken) }?;
        let Registered { engine, refused } = registered;
        (engine, refused)
    };
    let Some(Registration { module, instance }) = engine else {
        return Ok(Opened {
            engine: None,
            refused,
            layout: "nothing to compare",
        });
    };

    if let Some((promised, promised_by)) = request.promised
        && promised != module.name
    {
        return Err(Refusal::Module(ModuleError::NameMismatch {
            found: module.name,
            promised: promised.to_owned(),
            promised_by,
        }));
    }
    let layout = compare_layout(library, module.abi)?;
    Ok(Opened {
        engine: Some((module, instance)),
        refused,
        layout,
    })
}

/// Compares the structs of the border as a Rust library was built with them.
fn compare_layout(library: sys::Handle, abi: (u16, u16)) -> Result<&'static str, Refusal> {
    use abi::layout::LayoutExport;

    let Ok(export) = sys::symbol::<*const LayoutExport>(library, abi::LAYOUT_SYMBOL) else {
        return Ok("layout not compared: the library does not export it");
    };
    if abi.1 != abi::ABI_MINOR {
        return Ok("layout not compared: another minor version");
    }
    if export.is_null() || !export.is_aligned() {
        return Ok("layout not compared: the library does not export it as it should");
    }
    // SAFETY: the symbol is a static `LayoutExport` by its name; its header has never changed and is read first.
    let header = unsafe { &raw const (*export).header };
    // SAFETY: as above.
    if !unsafe { &*header }.is_valid() {
        return Ok("layout not compared: written by another version of abi_stable");
    }
    // SAFETY: the header says that the same abi_stable has written the layout, so that it can be read.
    let layout = unsafe { (*export).layout };
    match abi::layout::compare(layout) {
        Ok(()) => Ok("layout compared"),
        Err(report) => {
            let report = report.to_string();
            tracing::debug!("layout of the engine ABI differs: {report}");
            let first = report
                .lines()
                .map(str::trim)
                .find(|line| line.starts_with("Error:") || line.contains("mismatch"))
                .or_else(|| report.lines().map(str::trim).find(|line| !line.is_empty()))
                .unwrap_or("its structs differ");
            Err(Refusal::Module(ModuleError::Layout {
                first: first.chars().take(200).collect(),
            }))
        }
    }
}

#[cfg(unix)]
mod sys {
    use std::path::Path;

    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

    use super::OpenError;
    use crate::plugin::load::Refusal;

    /// Keeps the library mapped even if somebody closes it. The constant is the system's, and missing in libloading.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const RTLD_NODELETE: i32 = 0x1000;
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    const RTLD_NODELETE: i32 = 0x80;
    #[cfg(not(any(
        target_os = "linux",
        target_os = "android",
        target_os = "macos",
        target_os = "ios"
    )))]
    const RTLD_NODELETE: i32 = 0;

    /// An open library that is never closed.
    pub(super) type Handle = &'static Library;

    pub(super) fn open(path: &Path) -> Result<Handle, Refusal> {
        let flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
        // SAFETY: this runs the library's constructors. It is the copy that was checked, a child process has tried it
        // before, and SAFE-3 says whose code this may be.
        let library = unsafe { Library::open(Some(path), flags) };
        match library {
            Ok(library) => Ok(Box::leak(Box::new(library))),
            Err(error) => {
                let folder = path.parent().map(|folder| format!("{}/", folder.display()));
                let text = root_cause(&error);
                let text = text.replace(folder.as_deref().unwrap_or("\0"), "");
                Err(OpenError::System { text }.into())
            }
        }
    }

    /// The function or variable of that name. `T` is a function pointer, or a pointer to the variable.
    pub(super) fn symbol<T: Copy + 'static>(
        library: Handle,
        name: &'static str,
    ) -> Result<T, Refusal> {
        const { assert!(size_of::<T>() == size_of::<usize>()) };
        // SAFETY: the callers name the type that the header gives the symbol; the library is never closed.
        let symbol = unsafe { library.get::<T>(name) };
        match symbol {
            Ok(symbol) => Ok(*symbol),
            Err(error) => Err(OpenError::Symbol {
                name,
                text: root_cause(&error),
            }
            .into()),
        }
    }

    /// The system's own sentence, which libloading keeps behind its own.
    fn root_cause(error: &libloading::Error) -> String {
        let mut cause: &dyn std::error::Error = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        cause.to_string()
    }
}

#[cfg(windows)]
mod sys {
    use std::path::Path;

    use libloading::os::windows::{
        LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, Library,
    };

    use super::OpenError;
    use crate::plugin::load::Refusal;

    /// An open library that is never closed.
    pub(super) type Handle = &'static Library;

    pub(super) fn open(path: &Path) -> Result<Handle, Refusal> {
        let flags = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR;
        // SAFETY: as on Unix: checked, tried in a child, and known whose it is.
        match unsafe { Library::load_with_flags(path, flags) } {
            Ok(library) => Ok(Box::leak(Box::new(library))),
            Err(error) => Err(OpenError::System {
                text: error.to_string(),
            }
            .into()),
        }
    }

    /// The function or variable of that name. `T` is a function pointer, or a pointer to the variable.
    pub(super) fn symbol<T: Copy + 'static>(
        library: Handle,
        name: &'static str,
    ) -> Result<T, Refusal> {
        const { assert!(size_of::<T>() == size_of::<usize>()) };
        // SAFETY: the callers name the type that the header gives the symbol; the library is never closed.
        match unsafe { library.get::<T>(name) } {
            Ok(symbol) => Ok(*symbol),
            Err(error) => Err(OpenError::Symbol {
                name,
                text: error.to_string(),
            }
            .into()),
        }
    }
}
