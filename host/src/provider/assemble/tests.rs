use super::*;
use serde_json::json;

fn answer(chunks: &[Value]) -> Answer {
    let mut assembly = Assembly::default();
    for chunk in chunks {
        assembly.event(&chunk.to_string(), &mut |_| {});
    }
    assembly.answer()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn stored(chunks: &[Value]) -> String {
    answer(chunks)
        .message
        .expect("a message")
        .stored()
        .to_string()
}

#[test]
fn thoughts_stay_under_the_key_that_they_came_under() {
    for key in ["reasoning", "reasoning_content"] {
        let chunks = [
            delta(json!({key: "a "})),
            delta(json!({key: "b", "content": null})),
            delta(json!({"content": "c"})),
        ];
        let want = format!(r#"{{"role":"assistant","content":"c","{key}":"a b"}}"#);
        assert_eq!(stored(&chunks), want);
    }
    let both = delta(json!({"reasoning": "a", "reasoning_content": "a", "content": "c"}));
    assert_eq!(
        stored(&[both]),
        r#"{"role":"assistant","content":"c","reasoning_content":"a"}"#
    );
}

#[test]
fn pieces_of_a_reasoning_block_become_one() {
    let piece = |text: &str| json!({"type": "reasoning.text", "index": 0, "text": text});
    let signed = json!({"type": "reasoning.text", "index": 0, "signature": "s", "text": null});
    let other = json!({"type": "reasoning.encrypted", "index": 1, "data": "d"});
    let chunks = [
        delta(json!({"reasoning_details": [piece("a ")]})),
        delta(json!({"reasoning_details": [piece("b"), signed]})),
        delta(json!({"reasoning_details": [other.clone()], "content": "c"})),
    ];
    let message = answer(&chunks).message.expect("a message");
    let details: Value =
        serde_json::from_str(message.value("reasoning_details").expect("kept")).expect("JSON");
    assert_eq!(
        details,
        json!([{"type": "reasoning.text", "index": 0, "text": "a b", "signature": "s"}, other])
    );
    // None of it goes back unless the provider wants it.
    assert_eq!(&**message.wire(), r#"{"role":"assistant","content":"c"}"#);
}

#[test]
fn figures_are_found_in_odd_places() {
    let said = json!({"prompt_tokens": 9, "completion_tokens": 1});
    let groq = answer(&[
        delta(json!({"content": "c"})),
        json!({"x_groq": {"usage": said}}),
    ]);
    assert_eq!(groq.usage.expect("usage").total_tokens, Some(10));
    let llama = answer(&[
        delta(json!({"content": "c"})),
        json!({"choices": [], "usage": said, "timings": {"cache_n": 4, "prompt_n": 5}}),
        json!({"choices": [], "usage": {}}),
        json!({"choices": [], "usage": null}),
    ]);
    let usage = llama.usage.expect("usage");
    assert_eq!(
        (usage.cache_read_tokens, usage.input_tokens),
        (Some(4), Some(5))
    );
}

#[test]
fn the_older_single_function_is_a_call() {
    let chunks = [
        delta(json!({"function_call": {"name": "f", "arguments": "{\"a\""}})),
        delta(json!({"function_call": {"arguments": ":1}"}})),
    ];
    let answer = answer(&chunks);
    assert_eq!(answer.finish, Finish::ToolCalls);
    let message = answer.message.expect("a message");
    assert_eq!(&*message.tool_calls()[0].arguments(), "{\"a\":1}");
    assert!(message.value("function_call").is_none());
}

#[test]
fn parts_that_are_no_text_are_kept() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:"}});
    let message = answer(&[delta(
        json!({"content": [{"type": "text", "text": "see"}, image]}),
    )]);
    let message = message.message.expect("a message");
    assert_eq!(
        message.raw_content(),
        Some(r#"[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:"}}]"#)
    );
}

#[test]
fn errors_are_known_by_their_shape() {
    for error in [
        json!({"error": {"message": "x"}}),
        json!({"error": "x"}),
        json!({"object": "error", "message": "x"}),
        json!({"type": "error", "error": {"message": "x"}}),
        json!({"detail": "x"}),
        json!({"choices": [{"error": {"message": "x"}}]}),
    ] {
        let mut assembly = Assembly::default();
        assembly.event(&error.to_string(), &mut |_| {});
        assert!(assembly.take_error().is_some(), "{error}");
    }
    for fine in [
        json!({"error": null, "choices": []}),
        json!({"error": {}, "choices": []}),
        json!({"choices": [{"error": null, "delta": {}}]}),
    ] {
        let mut assembly = Assembly::default();
        assembly.event(&fine.to_string(), &mut |_| {});
        assert!(assembly.take_error().is_none(), "{fine}");
    }
}
