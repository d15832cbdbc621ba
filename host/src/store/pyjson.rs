//! JSON the way Hermes writes it into its columns: blanks after `,` and `:`, only ASCII.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value};

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        // DEL is the one ASCII character that both writers leave alone although it cannot be seen.
        while let Some(at) = rest.bytes().position(|b| !b.is_ascii()) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let c = rest[at..]
                .chars()
                .next()
                .unwrap_or(char::REPLACEMENT_CHARACTER);
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

/// The value as `json.dumps` writes it.
pub(crate) fn dumps(value: &Value) -> String {
    let mut out = Vec::with_capacity(128);
    let mut serializer = Serializer::with_formatter(&mut out, Python);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(out).unwrap_or_else(|_| value.to_string()),
        Err(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_python_writes() {
        let value: Value =
            serde_json::from_str(r#"{"a":[1,2.5,null,true,"é漢🎉\n\"\\\u0007"],"b":{},"c":[]}"#)
                .unwrap();
        assert_eq!(
            dumps(&value),
            r#"{"a": [1, 2.5, null, true, "\u00e9\u6f22\ud83c\udf89\n\"\\\u0007"], "b": {}, "c": []}"#
        );
    }
}
