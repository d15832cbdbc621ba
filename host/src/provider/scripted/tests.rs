use super::*;

fn body(text: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}],"tools":[]}}"#)
}

fn ask(provider: &Scripted, text: &str) -> Result<Reply, Box<Failure>> {
    provider.send(&body(text), &Cancel::new(), &mut |_| {})
}

#[test]
fn without_a_script_it_answers_each_message_the_same_way() {
    let dry = Scripted::new();
    let mut heard = String::new();
    let reply = dry
        .send(&body("hello  there"), &Cancel::new(), &mut |delta| {
            if let Delta::Text(text) = delta {
                heard.push_str(text);
            }
        })
        .expect("an answer");
    assert_eq!(
        reply.message.text(),
        "This is a dry run: no model was asked. You said: hello there"
    );
    assert_eq!(heard, reply.message.text());
    let again = ask(&dry, "hello  there").expect("an answer");
    assert_eq!(again.message, reply.message);
    let usage = reply.usage.expect("usage");
    assert_eq!(usage.prompt_tokens, Some(20));
    assert!(usage.completion_tokens > Some(5));
    let long = ask(&dry, &"wide ".repeat(1000)).expect("an answer");
    assert!(long.message.text().len() < 300);
    let tool = r#"{"messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"y"}]}"#;
    let reply = dry
        .send(tool, &Cancel::new(), &mut |_| {})
        .expect("an answer");
    assert!(reply.message.text().contains("tool's result"));
    assert!(dry.send("no json", &Cancel::new(), &mut |_| {}).is_ok());
}

#[test]
fn steps_are_used_in_order_and_then_the_dry_run_goes_on() {
    let script = Scripted::parse(concat!(
        "\u{feff}{\"content\":\"one\",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n",
        "{\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}}]}\n",
        "{\"error\":{\"status\":429,\"message\":\"slow\",\"retry_after\":2,\"partial\":\"half\"}}\n",
        "{\"error\":{\"status\":400,\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}\n",
    ))
    .expect("a script");
    let one = ask(&script, "x").expect("one");
    assert_eq!(one.message.text(), "one");
    assert_eq!(one.usage.expect("usage").total_tokens, Some(9));
    let two = ask(&script, "x").expect("two");
    assert_eq!(two.finish, Finish::ToolCalls);
    assert_eq!(&*two.message.tool_calls()[0].name, "f");
    assert_eq!(&*two.message.tool_calls()[0].arguments(), "{\"a\":1}");
    let three = ask(&script, "x").expect_err("three");
    assert_eq!(three.kind, FailureKind::RateLimited);
    assert_eq!(three.retry_after, Some(Duration::from_secs(2)));
    assert_eq!(three.partial.expect("a part").text(), "half");
    let four = ask(&script, "x").expect_err("four");
    assert!(matches!(
        four.kind,
        FailureKind::Overflow {
            limit: Some(8),
            requested: Some(9),
            payload: false
        }
    ));
    assert!(
        ask(&script, "x")
            .expect("five")
            .message
            .text()
            .contains("dry run")
    );
}

#[test]
fn a_script_can_begin_again_and_wait() {
    let script = Scripted::parse(
        "{\"content\":\"a\"}\n{\"delay_ms\":30}\n{\"content\":\"b\"}\n{\"repeat\":true}",
    )
    .expect("a script");
    let start = Instant::now();
    let said: String = (0..4)
        .map(|_| {
            ask(&script, "x")
                .expect("an answer")
                .message
                .text()
                .into_owned()
        })
        .collect();
    assert_eq!(said, "abab");
    assert!(start.elapsed() >= Duration::from_millis(60));
    let slow = Scripted::parse("{\"delay_ms\":60000,\"content\":\"late\"}").expect("a script");
    let cancel = Cancel::new();
    let failure = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| slow.send(&body("x"), &cancel, &mut |_| {}));
        std::thread::sleep(Duration::from_millis(20));
        cancel.cancel();
        waiting.join().expect("no panic")
    });
    assert_eq!(failure.expect_err("cancelled").kind, FailureKind::Cancelled);
}

#[test]
fn what_is_no_step_is_named_by_its_line() {
    for (text, line, part) in [
        ("{\"content\":\"a\"}\n[1]", 2, "no JSON object"),
        ("{\"contents\":\"a\"}", 1, "a step has"),
        ("{\"delay_ms\":-1}", 1, "delay_ms"),
        ("\n{\"error\":{\"status\":70000}}", 2, "status"),
    ] {
        let (at, reason) = Scripted::parse(text).expect_err(text);
        assert_eq!(at, line, "{text}");
        assert!(reason.contains(part), "{reason}");
    }
    assert!(Scripted::read(Path::new("/")).is_err());
}

// The provider of very long conversations: an answer must not cost more for a longer request.
#[test]
fn a_long_request_costs_no_more_than_a_short_one() {
    let dry = Scripted::new();
    let turn = r#"{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},"#;
    let long = format!(
        r#"{{"messages":[{}{{"role":"user","content":"now"}}]}}"#,
        turn.repeat(100_000)
    );
    let start = Instant::now();
    for _ in 0..100 {
        let reply = dry
            .send(&long, &Cancel::new(), &mut |_| {})
            .expect("an answer");
        assert!(reply.message.text().ends_with("now"));
    }
    // 100 requests of 7 MB: reading all of it once alone would take longer.
    assert!(
        start.elapsed() < Duration::from_millis(500),
        "{:?}",
        start.elapsed()
    );
}
