//! Writing one scalar.

use super::Meaning;
use crate::config::document::Style;
use crate::config::resolve;
use serde_yaml::Value;

/// The text to write and the value it stands for. `old` is the style of the scalar that is replaced, which a text keeps;
/// inside `[…]` and `{…}` fewer texts may stand without quotes.
pub(super) fn render(
    text: &str,
    meaning: Meaning,
    old: Option<Style>,
    flow: bool,
) -> (String, Value) {
    let as_text = Value::String(text.to_owned());
    let typed = resolve::scalar(text, Style::Plain, None);
    // Quotes would make a text of a number, of true or of null; the old value had them because it was a text.
    let is_text = meaning == Meaning::Text || typed.is_string() || text.is_empty();
    match old {
        Some(Style::Double) if is_text => return (double(text), as_text),
        Some(Style::Single) if is_text && printable(text) => return (single(text), as_text),
        Some(Style::Single) if is_text => return (double(text), as_text),
        _ => {}
    }
    let plain = match meaning {
        Meaning::Typed => !typed.is_string() || fits_plain(text, flow),
        Meaning::Text => typed.is_string() && fits_plain(text, flow) && !means_more_elsewhere(text),
    };
    if plain && !text.is_empty() {
        (text.to_owned(), typed)
    } else if printable(text) {
        (single(text), as_text)
    } else {
        (double(text), as_text)
    }
}

/// A mapping key.
pub(super) fn key(name: &str, flow: bool) -> String {
    let (text, _) = render(name, Meaning::Text, None, flow);
    text
}

/// Can the text stand without quotes? Careful rather than complete.
fn fits_plain(text: &str, flow: bool) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_alphanumeric() || "_/.~$+(".contains(c))
        || (text.starts_with('-') && text[1..].starts_with(|c: char| c.is_alphanumeric()));
    let inside = |c: char| {
        c.is_alphanumeric()
            || (if flow {
                " _-./@+~$()%=;^"
            } else {
                " _-./@+~$()%=;^,:'\"#!&*<>?|[]{}\\`"
            })
            .contains(c)
    };
    starts_well
        && text.chars().all(inside)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && !text.starts_with("...")
        && !text.starts_with("---")
}

/// YAML 1.1, which the original reads, knows more words and numbers than we do: `on`, `1_000`, `12:30`, dates.
fn means_more_elsewhere(text: &str) -> bool {
    let word = text.to_ascii_lowercase();
    let words = [
        "y", "yes", "n", "no", "on", "off", "true", "false", "null", "~", "=", "<<",
    ];
    let number_like = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text
            .chars()
            .all(|c| c.is_ascii_hexdigit() || "_.:+-xXoOTtZz ".contains(c));
    words.contains(&word.as_str()) || number_like
}

/// Can the text stand on one line as it is, in single quotes?
fn printable(text: &str) -> bool {
    text.chars().all(|c| {
        !c.is_control()
            && !matches!(
                c,
                '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
    })
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if printable(c.encode_utf8(&mut [0; 4])) => out.push(c),
            c if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_kept_and_added_where_needed() {
        let text = |t: &str, old| render(t, Meaning::Text, old, false).0;
        assert_eq!(text("lcm", None), "lcm");
        assert_eq!(text("lcm", Some(Style::Double)), "\"lcm\"");
        assert_eq!(text("it's", Some(Style::Single)), "'it''s'");
        for special in [
            "yes",
            "1",
            "0x1f",
            "null",
            "~",
            "12:30",
            "2026-01-02",
            "1_000",
            "",
            " a",
            "a: b",
            "a #b",
            "- a",
            "*a",
        ] {
            assert_eq!(text(special, None), single(special), "{special:?}");
        }
        assert_eq!(text("http://h:1/v1", None), "http://h:1/v1");
        assert_eq!(text("a\nb", None), "\"a\\nb\"");
        assert_eq!(render("a, b", Meaning::Text, None, true).0, "'a, b'");
        let typed = |t: &str| render(t, Meaning::Typed, None, false);
        assert_eq!(typed("0.7"), ("0.7".to_owned(), Value::from(0.7)));
        assert_eq!(typed("-1"), ("-1".to_owned(), Value::from(-1)));
        assert_eq!(typed("true"), ("true".to_owned(), Value::Bool(true)));
        assert_eq!(typed("null"), ("null".to_owned(), Value::Null));
        assert_eq!(typed("yes").0, "yes");
        for old in [Style::Single, Style::Double] {
            let typed = |t: &str| render(t, Meaning::Typed, Some(old), false);
            assert_eq!(typed("5"), ("5".to_owned(), Value::from(5)));
            assert_eq!(typed("null"), ("null".to_owned(), Value::Null));
            assert_eq!(typed("").1, Value::from(""));
            assert_eq!(typed("5 a").1, Value::from("5 a"));
            assert_eq!(
                render("5", Meaning::Text, Some(old), false).1,
                Value::from("5")
            );
        }
    }
}
