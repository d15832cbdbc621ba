//! From the bytes of a file to text that a YAML parser may see.

/// The largest file that is read. Real ones have some tens of kilobytes.
pub(crate) const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The UTF-8 byte order mark that some editors write first.
pub(crate) const BOM: &str = "\u{feff}";

/// Why bytes are no configuration text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TextError {
    /// The file is larger than any configuration needs to be.
    #[error("the file has {0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(u64),
    /// The file was saved in another encoding.
    #[error("byte {offset}: the file is {encoding}, expected UTF-8")]
    OtherEncoding {
        /// The name of the encoding.
        encoding: &'static str,
        /// Where the sign of it was found, from 0.
        offset: usize,
    },
    /// A byte sequence that UTF-8 does not have.
    #[error("byte {offset} is 0x{byte:02x}, which is not valid UTF-8")]
    BadByte {
        /// Offset in the file, from 0.
        offset: usize,
        /// The byte itself.
        byte: u8,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
}

impl TextError {
    /// Line and column, where they mean something.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        match self {
            Self::BadByte { line, column, .. } => Some((*line, *column)),
            _ => None,
        }
    }
}

/// Checks the encoding and returns the whole text, byte order mark included.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, TextError> {
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if size > MAX_BYTES {
        return Err(TextError::TooLarge(size));
    }
    if let Some((encoding, offset)) = other_encoding(bytes) {
        return Err(TextError::OtherEncoding { encoding, offset });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let before = String::from_utf8_lossy(bytes.get(..offset).unwrap_or_default());
        let (line, column) = place_at_end(&before);
        TextError::BadByte {
            offset,
            byte: bytes.get(offset).copied().unwrap_or_default(),
            line,
            column,
        }
    })
}

/// Splits a leading byte order mark off: its length in bytes and the text after it.
pub(crate) fn split_bom(text: &str) -> (usize, &str) {
    match text.strip_prefix(BOM) {
        Some(rest) => (BOM.len(), rest),
        None => (0, text),
    }
}

/// Line and column (both from 1) of the position just after `before`.
pub(crate) fn place_at_end(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    let last = last.strip_prefix(BOM).unwrap_or(last);
    (line, last.chars().count() + 1)
}

/// UTF-16 and UTF-32 are known by their mark, or by the zero bytes beside ASCII letters.
fn other_encoding(bytes: &[u8]) -> Option<(&'static str, usize)> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => Some(("UTF-32 (little endian)", 0)),
        [0, 0, 0xfe, 0xff, ..] => Some(("UTF-32 (big endian)", 0)),
        [0xff, 0xfe, ..] => Some(("UTF-16 (little endian)", 0)),
        [0xfe, 0xff, ..] => Some(("UTF-16 (big endian)", 0)),
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => {
            Some(("UTF-16 (little endian)", 1))
        }
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => {
            Some(("UTF-16 (big endian)", 0))
        }
        _ => None,
    }
}
