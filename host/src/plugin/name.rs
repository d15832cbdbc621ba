//! Which names an engine or a plugin may have.

/// The built-in engine's name, which no plugin can take.
pub const BUILT_IN: &str = "compressor";

/// Longest name: it must fit into a file name.
const MAX: usize = 128;

/// Says what is wrong with a name, as the end of a sentence that begins with the name.
///
/// # Errors
/// The problem.
pub fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("is empty")
    } else if name.len() > MAX {
        Err("is longer than 128 bytes")
    } else if name.contains('\0') {
        Err("contains a NUL character")
    } else if name.chars().any(char::is_control) {
        Err("contains a control character")
    } else if name.contains(['/', '\\']) {
        Err("contains a path separator")
    } else if name == "." || name.contains("..") {
        Err("contains `..` or is `.`")
    } else if name.trim() != name {
        Err("begins or ends with a blank")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use proptest::prelude::*;

    // contract: DISC-5
    #[test]
    fn names_that_could_leave_their_folder_are_refused() {
        for bad in [
            "", ".", "..", "a/b", "a\\b", "../x", "a..b", "a\0b", "a\nb", "\u{7f}", " a", "a ",
        ] {
            assert!(check(bad).is_err(), "{bad:?} must be refused");
        }
        for good in ["lcm", "my-plugin", "my_dir", "a.b", "貯める", "Window 2"] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
    }

    proptest! {
        // contract: DISC-5
        #[test]
        fn an_accepted_name_is_one_component_of_a_path(name in any::<String>()) {
            if check(&name).is_ok() {
                let path = std::path::Path::new("/root").join(&name);
                prop_assert_eq!(path.parent(), Some(std::path::Path::new("/root")));
                prop_assert_eq!(path.file_name().and_then(|n| n.to_str()), Some(name.as_str()));
            }
        }
    }
}
