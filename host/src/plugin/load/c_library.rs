//! Which C library this process runs on.

/// The version of glibc, as in `2.36`. `None` on other C libraries.
pub(crate) fn version() -> Option<String> {
    imp::version()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::ffi::{CStr, c_char};

    unsafe extern "C" {
        safe fn gnu_get_libc_version() -> *const c_char;
    }

    pub(super) fn version() -> Option<String> {
        let version = gnu_get_libc_version();
        if version.is_null() {
            return None;
        }
        // SAFETY: glibc returns a constant text of its own.
        let version = unsafe { CStr::from_ptr(version) };
        version.to_str().ok().map(str::to_owned)
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod imp {
    pub(super) fn version() -> Option<String> {
        None
    }
}
