//! Our tree against `serde_yaml`'s on texts that nobody would write: both must read the same, or both refuse.

use super::document::Document;
use super::resolve::resolve;
use proptest::prelude::*;
use serde_yaml::Value;

/// Pieces from which every corner of the grammar can arise.
const PIECES: &[&str] = &[
    "a",
    "b: ",
    "c:\n",
    "  ",
    "- ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "'",
    "\"",
    "\\",
    "\\x4",
    "\\u12",
    "{",
    "}",
    "[",
    "]",
    ",",
    "? ",
    ": ",
    "&a ",
    "*a",
    "!t ",
    "!!str ",
    "!<x>",
    "!",
    "%YAML 1.1\n",
    "%TAG ! x\n",
    "%",
    "---\n",
    "...\n",
    "---",
    "...",
    "|\n",
    "|+\n",
    ">-\n",
    "|2\n",
    "|9",
    "# c\n",
    "#",
    " ",
    "é",
    "🤙",
    "\u{85}",
    "\u{2028}",
    "<<: *a",
    "@",
    "`",
    "~",
    "1",
    "''",
    "\"\"",
    "%20",
    "0x1f",
    "1e3",
    ".nan",
    "true",
    "null",
    "0o7",
    "-1",
];

fn ours(text: &str) -> Result<Option<Value>, String> {
    let document = Document::parse(text).map_err(|error| error.message)?;
    match document.parts() {
        [] => Ok(Some(Value::Null)),
        [part] => resolve(&document, part.root)
            .map(Some)
            .map_err(|error| error.message),
        _ => Ok(None),
    }
}

/// Where the two are meant to differ: doubled keys, tags that say nothing, merge keys that `serde_yaml` keeps as
/// they are, and white space alone in the last line of a block text.
fn meant_to_differ(text: &str, error: Option<&str>) -> bool {
    text.contains(['!', '\t'])
        || text.contains("<<")
        || error.is_some_and(|error| error.contains("duplicate entry"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    // contract: CFG-5, CFG-6
    #[test]
    fn both_readers_agree(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..10)) {
        let text = pieces.concat();
        match (ours(&text), serde_yaml::from_str::<Value>(&text)) {
            (Ok(Some(ours)), Ok(theirs)) => {
                prop_assert!(ours == theirs || meant_to_differ(&text, None), "{text:?}: {ours:?} {theirs:?}");
            }
            (Ok(Some(_)), Err(error)) => {
                let error = error.to_string();
                prop_assert!(meant_to_differ(&text, Some(&error)), "{text:?}: {error}");
            }
            (Err(error), Ok(_)) => prop_assert!(meant_to_differ(&text, None), "{text:?}: {error}"),
            (Ok(None), _) | (Err(_), Err(_)) => {}
        }
    }
}
