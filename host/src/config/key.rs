//! Dotted keys such as `context.engine`.

use std::fmt;

/// Why a dotted key is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a key: {reason}")]
pub struct KeyError {
    text: String,
    reason: &'static str,
}

/// A key as a path of names. A name that contains a dot stands in double quotes:
/// `compression.model_thresholds."glm-5.1"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// Splits the dotted form.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let error = |reason| KeyError {
            text: text.to_owned(),
            reason,
        };
        let mut names = Vec::new();
        let mut rest = text;
        loop {
            let (name, after) = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let (name, after) = quoted
                        .split_once('"')
                        .ok_or_else(|| error("the quote is not closed"))?;
                    (name, after)
                }
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            if name.is_empty() {
                return Err(error("a part of it is empty; write it like context.engine"));
            }
            if name.chars().any(char::is_control) {
                return Err(error("it contains a control character"));
            }
            names.push(name.to_owned());
            match after.strip_prefix('.') {
                Some(next) => rest = next,
                None if after.is_empty() => return Ok(Self(names)),
                None => return Err(error("a dot must follow the closing quote")),
            }
        }
    }

    /// The names, outermost first.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The names as string slices.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

/// The dotted form.
impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            if name.contains('.') {
                write!(f, "\"{name}\"")?;
            } else {
                f.write_str(name)?;
            }
        }
        Ok(())
    }
}
