//! However a stream is cut, and whatever bytes come.

use hermes::provider::{Cancel, Provider};
use hermes_tests::Behaviour;
use proptest::prelude::*;

use crate::support::Pair;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_gives_the_same_answer(
        text in "[a-z \u{e4}\u{4e2d}\u{1f600}\"\\\\\n]{1,60}x",
        arguments in "[a-z]{0,10}",
        portion in 1_usize..40,
        comments in any::<bool>(),
    ) {
        let pair = Pair::new();
        let arguments = format!("{{\"a\": \"{arguments}\"}}");
        let answer = || Behaviour::text(&text).and_calls(&[("i", "f", &arguments), ("", "g", "{}")]);
        let whole = pair.ask(answer()).reply();
        let mut cut = answer().in_portions(portion);
        if comments {
            cut = cut.with_comments();
        }
        let cut = pair.ask(cut).reply();
        prop_assert_eq!(whole.message.stored(), cut.message.stored());
        prop_assert_eq!(&whole.usage, &cut.usage);
        prop_assert_eq!(&*whole.message.text(), &*text);
    }

    #[test]
    fn no_bytes_do_any_harm(
        status in prop_oneof![Just(200_u16), Just(400), Just(429), Just(500)],
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        framed in any::<bool>(),
    ) {
        let pair = Pair::new();
        let mut body = bytes;
        if framed {
            body.splice(0..0, *b"data: {\"choices\":[{\"delta\":");
            body.extend_from_slice(b"\n\n");
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        pair.server.push(Behaviour::raw(&body));
        pair.server.push(Behaviour::status(status, &text));
        for _ in 0..2 {
            let _ = pair.provider.send(&pair.body(), &Cancel::new(), &mut |_| {});
        }
        // It still works.
        let reply = pair.ask(Behaviour::text("fine")).reply();
        prop_assert_eq!(&*reply.message.text(), "fine");
    }

    #[test]
    fn no_json_does_any_harm(value in json(), framed in any::<bool>()) {
        let pair = Pair::new();
        let text = value.to_string();
        pair.server.push(if framed { Behaviour::events(&[&text, "[DONE]"]) } else { Behaviour::body(&text) });
        if let Ok(reply) = pair.provider.send(&pair.body(), &Cancel::new(), &mut |_| {}) {
            for call in reply.message.tool_calls() {
                prop_assert!(!call.id.is_empty() && !call.name.is_empty());
            }
            prop_assert!(!reply.message.says_nothing());
        }
    }
}

/// Answers whose members have any shape at all.
fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z{}\":]{0,8}".prop_map(Value::from),
    ];
    let any_value = leaf.prop_recursive(3, 12, 3, |inner| {
        let keys = prop_oneof![
            Just("index"),
            Just("id"),
            Just("function"),
            Just("name"),
            Just("arguments"),
            Just("type"),
            Just("text"),
            Just("error"),
            Just("message"),
            Just("code"),
            Just("content"),
            Just("prompt_tokens"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|pairs| pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    });
    prop::collection::vec(any_value, 8).prop_map(|v| {
        json!({
            "choices": [{"index": 0, "finish_reason": v[0], "delta": {
                "content": v[1], "tool_calls": [v[2], v[3]], "reasoning": v[4], "reasoning_details": [v[5], v[5]],
            }}],
            "usage": v[6], "timings": v[7],
        })
    })
}
