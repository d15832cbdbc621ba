//! Whatever a model writes: no panic, a JSON object, and nothing from outside.
#![cfg(unix)]

use hermes::agent::tools::built_in;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::Work;

fn work() -> Work {
    let work = Work::new();
    work.write("a.txt", "alpha\nbeta\n");
    work.write("sub/b.txt", "gamma\n");
    work.link("..", "sub/up");
    work.link("../..", "sub/out");
    work.link("/", "root");
    work.link(work.outside().join("secret.txt"), "secret-link");
    work
}

/// Paths that are made of what matters here.
fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(".."),
        Just("."),
        Just(""),
        Just("/"),
        Just("sub"),
        Just("up"),
        Just("out"),
        Just("root"),
        Just("a.txt"),
        Just("secret-link"),
        Just("secret.txt"),
        Just("work"),
        Just("etc"),
        Just("~"),
        Just("\u{0}"),
        Just("ä"),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.join("/"))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        path().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!([1, {"a": []}])),
        Just(json!("content")),
        Just(json!("name")),
        Just(json!(".*")),
    ]
}

fn arguments() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("path"),
        Just("offset"),
        Just("limit"),
        Just("pattern"),
        Just("glob"),
        Just("kind"),
        Just("x"),
    ];
    let object =
        prop::collection::btree_map(name, value(), 0..7).prop_map(|map| json!(map).to_string());
    let whole = prop_oneof![
        8 => object.boxed(),
        3 => path().prop_map(|path| json!({"path": path, "pattern": "secret|root"}).to_string()).boxed(),
        1 => any::<String>().boxed(),
    ];
    // Some are cut off.
    (whole, any::<prop::sample::Index>(), 0..4_u8).prop_map(|(text, at, cut)| {
        if cut > 0 {
            return text;
        }
        let at = at.index(text.len() + 1);
        text.char_indices()
            .take_while(|(index, _)| *index < at)
            .map(|(_, c)| c)
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_arguments_bring_an_object_and_nothing_from_outside(arguments in arguments()) {
        let work = work();
        for tool in built_in() {
            let text = tool.call(&arguments, &work.place);
            let value: Value = serde_json::from_str(&text).expect("JSON");
            prop_assert!(value.is_object());
            prop_assert!(!text.contains("the secret outside"), "{}", text);
            prop_assert!(!text.contains("root:x:"), "{}", text);
            let found = value["matches"].as_array().cloned().unwrap_or_default();
            for each in found {
                let path = each["path"].as_str().or(each.as_str()).expect("a path").to_owned();
                prop_assert!(work.path(&path).canonicalize().expect("there").starts_with(&work.place.directory)
                    || each.is_string(), "{}", text);
                prop_assert!(!path.starts_with('/') && !path.contains(".."), "{}", text);
            }
        }
    }
}
