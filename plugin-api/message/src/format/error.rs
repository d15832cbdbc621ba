//! Why a file holds no conversation.

use thiserror::Error;

/// The file cannot be read as messages. The whole file is refused: half a conversation would look
/// like a whole one to everybody behind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column} (byte {offset}): {found}; expected {expected}")]
pub struct FormatError {
    /// Counted from 1.
    pub line: usize,
    /// In bytes, counted from 1.
    pub column: usize,
    /// In bytes from the start of the file, counted from 0.
    pub offset: usize,
    /// What is wrong there, without the text itself.
    pub found: String,
    /// What would be right.
    pub expected: &'static str,
}

impl FormatError {
    pub(super) fn at(
        source: &[u8],
        offset: usize,
        found: impl Into<String>,
        expected: &'static str,
    ) -> Self {
        let offset = offset.min(source.len());
        let before = &source[..offset];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        Self {
            line,
            column: offset - start + 1,
            offset,
            found: found.into(),
            expected,
        }
    }
}
