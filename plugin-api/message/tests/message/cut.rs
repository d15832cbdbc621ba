//! Shorter texts and arguments.

use std::borrow::Cow;

use hermes_message::cut::{Keep, shorten, shorten_arguments};
use proptest::prelude::*;

#[test]
fn a_text_that_fits_is_not_copied() {
    assert!(matches!(
        shorten("漢字", 2, Keep::Ends),
        Cow::Borrowed("漢字")
    ));
    assert!(matches!(
        shorten_arguments(r#"{"a":"b"}"#, 10),
        Cow::Borrowed(_)
    ));
}

#[test]
fn both_ends_stay_and_the_mark_counts_what_is_missing() {
    let text: String = (0..1000).map(|n| format!("{n:04} ")).collect();
    let short = shorten(&text, 200, Keep::Ends);
    assert!(short.chars().count() <= 200);
    assert!(
        short.starts_with("0000 0001 ") && short.ends_with(" 0998 0999 "),
        "{short}"
    );
    let (head, rest) = short.split_once("[… ").expect("a mark");
    let (count, tail) = rest.split_once(" characters left out …]").expect("a mark");
    let missing: usize = count.parse().expect("a number");
    assert_eq!(head.chars().count() + missing + tail.chars().count(), 5000);
    assert!(shorten(&text, 200, Keep::Head).ends_with("…]"));
    assert_eq!(
        shorten(&text, 9, Keep::Ends),
        "0000 0001",
        "no room for a mark"
    );
    assert_eq!(shorten(&text, 0, Keep::Ends), "");
}

// case: 62
#[test]
fn no_cut_falls_inside_what_one_sees_as_one_character() {
    let family = "👩‍👩‍👧";
    let text = family.repeat(400);
    for max in 60..90 {
        let short = shorten(&text, max, Keep::Ends);
        let (head, rest) = short.split_once("[…").expect("a mark");
        let tail = rest.split_once("…]").expect("a mark").1;
        assert_eq!(head.replace(family, ""), "", "{max}");
        assert_eq!(tail.replace(family, ""), "", "{max}");
    }
    for text in [
        "🇩🇪".repeat(300),
        "e\u{301}".repeat(300),
        "👍🏽".repeat(300),
        "❤\u{fe0f}".repeat(300),
    ] {
        let unit: String = text.chars().take(2).collect();
        for max in [60, 61, 62, 63] {
            let short = shorten(&text, max, Keep::Head);
            let head = short.split_once("[…").expect("a mark").0;
            assert_eq!(head.replace(&unit, ""), "", "{max}");
        }
    }
}

// case: 6, 62
#[test]
fn no_cut_falls_inside_an_escape_of_written_json() {
    for unit in [r"\ud83c\udf78", r"\u4e2d", r"\n", r"\\", r#"\""#] {
        let text = unit.repeat(300);
        for max in 60..80 {
            let short = shorten(&text, max, Keep::Ends);
            let (head, rest) = short.split_once("[…").expect("a mark");
            let tail = rest.split_once("…]").expect("a mark").1;
            assert_eq!(
                (head.replace(unit, ""), tail.replace(unit, "")),
                (String::new(), String::new()),
                "{unit} {max}"
            );
        }
    }
}

// case: 6
#[test]
fn long_leaves_are_cut_and_the_arguments_stay_json() {
    let content = "Zeile \"eins\"\n漢字 🎉 \\ ".repeat(400);
    let arguments = serde_json::json!({"path": "n.md", "content": content, "deep": {"a": [{"b": content, "n": 1}]}}).to_string();
    let spaced = arguments.replace("\"n\":1", "\"n\" : 1.0e2");
    let short = shorten_arguments(&spaced, 500);
    assert!(short.len() < 3000);
    assert!(
        short.contains("\"n\" : 1.0e2"),
        "numbers and blanks keep their spelling"
    );
    let value: serde_json::Value = serde_json::from_str(&short).expect("still JSON");
    assert_eq!(value["path"], "n.md");
    for leaf in [&value["content"], &value["deep"]["a"][0]["b"]] {
        let leaf = leaf.as_str().expect("text");
        assert!(
            leaf.chars().count() <= 500
                && content.starts_with(leaf.split("[…").next().expect("a head"))
        );
    }
    let long_key = format!("{{\"{}\":1}}", "k".repeat(1000));
    assert_eq!(shorten_arguments(&long_key, 10), long_key);
}

// case: 6
#[test]
fn what_was_no_json_passes_byte_for_byte() {
    let broken = format!("{{\"content\": \"{}", "x".repeat(5000));
    for text in ["", "null", "[1,2]", "{not json", &broken] {
        assert!(matches!(shorten_arguments(text, 100), Cow::Borrowed(same) if same == text));
    }
}

proptest! {
    // case: 6, 62
    #[test]
    fn any_arguments_stay_json_with_the_same_keys(
        leaves in prop::collection::vec("[a-z\"\\\\\n\u{e9}漢👩\u{200d}🇩🇪]{0,60}", 1..5), limit in 0..50_usize) {
        let object: serde_json::Map<String, serde_json::Value> =
            leaves.iter().enumerate().map(|(n, leaf)| (format!("k{n}"), leaf.clone().into())).collect();
        let text = serde_json::Value::Object(object.clone()).to_string();
        let short = shorten_arguments(&text, limit);
        let value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&short).expect("JSON");
        prop_assert!(value.keys().eq(object.keys()));
        for (key, leaf) in &value {
            let (leaf, old) = (leaf.as_str().unwrap_or_default(), object[key].as_str().unwrap_or_default());
            prop_assert!(leaf == old || leaf.chars().count() <= limit);
        }
        prop_assert_eq!(shorten_arguments(&short, limit), short.as_ref(), "a second cut changes nothing");
    }

    #[test]
    fn no_text_is_cut_too_long_or_makes_it_panic(text in "\\PC{0,200}", max in 0..120_usize) {
        for keep in [Keep::Head, Keep::Ends] {
            prop_assert!(shorten(&text, max, keep).chars().count() <= max.max(text.chars().count().min(max)));
        }
    }
}
