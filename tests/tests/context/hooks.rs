//! `select_context` and `turn_complete`.

use hermes::context::{Conversation, Engine};
use hermes::engine::{TurnInfo, Usage};
use serde_json::Value;

use super::actor::{actor, plain, script, take_log};
use super::{assistant, conversation, message, turns, user};

fn body(conversation: &mut Conversation, engine: &mut dyn Engine) -> String {
    conversation.request(engine, 0).body.text().to_owned()
}

/// The body with an engine that implements no hook at all.
fn body_without_hook(conversation: &mut Conversation, id: &str) -> String {
    body(conversation, &mut plain(id))
}

fn warnings(conversation: &mut Conversation, engine: &mut dyn Engine) -> Vec<String> {
    let mut warnings = engine.take_notices();
    warnings.extend(conversation.take_warnings());
    warnings
}

// contract: HOOK-1
#[test]
fn an_absent_hook_is_never_called() {
    let mut talk = conversation(&turns(3), 8000);
    let mut engine = plain("absent");
    assert!(!engine.selects() && !engine.observes());
    let request = talk.request(&mut engine, 0);
    talk.turn_complete(&mut engine, TurnInfo::default());
    assert_eq!(take_log("absent"), Vec::<String>::new());
    assert_eq!(request.selected, None);
}

// contract: HOOK-2, HOOK-4, HOOK-6
// case: 64
#[test]
fn whatever_a_hook_does_wrong_the_request_goes_out_as_it_was_and_the_user_is_told_once() {
    for mode in [
        "none",
        "same",
        "equal",
        "empty",
        "no-object",
        "only-orphan",
        "error",
        "panic",
    ] {
        let id = format!("wrong-{mode}");
        let mut talk = conversation(&turns(4), 8000);
        let expected = body_without_hook(&mut talk, &id);
        let mut engine = actor(&id);
        script(&id, |script| script.select = mode);
        assert_eq!(body(&mut talk, &mut engine), expected, "{mode}");
        assert_eq!(body(&mut talk, &mut engine), expected, "{mode}, again");
        let told = warnings(&mut talk, &mut engine);
        let wanted =
            usize::from(["empty", "no-object", "only-orphan", "error", "panic"].contains(&mode));
        assert_eq!(told.len(), wanted, "{mode}: {told:?}");
        let log = take_log(&id);
        // A new instance in place of a dead one learns its model first.
        let asked = log.iter().filter(|line| !line.starts_with("update_model"));
        assert_eq!(asked.count(), 2, "{mode}: it was asked each time: {log:?}");
    }
}

// contract: HOOK-3, HOOK-13
#[test]
fn a_selection_changes_the_messages_of_one_request_and_nothing_else() {
    let messages = turns(4);
    let mut talk = conversation(&messages, 8000);
    let expected = body_without_hook(&mut talk, "one-request");
    let mut engine = actor("one-request");
    script("one-request", |script| script.select = "newest-user");
    let chosen = body(&mut talk, &mut engine);
    let [whole, part]: [Value; 2] =
        [&expected, &chosen].map(|text| serde_json::from_str(text).expect("JSON"));
    assert_eq!(part["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(part["tools"].to_string(), whole["tools"].to_string());
    assert_eq!(part["model"], whole["model"]);
    assert!(
        talk.transcript()
            .messages()
            .iter()
            .zip(&messages)
            .all(|(a, b)| a.same(b))
    );
    script("one-request", |script| script.select = "none");
    assert_eq!(body(&mut talk, &mut engine), expected);
}

// contract: HOOK-5, UID-9
#[test]
fn a_selection_passes_every_check_of_a_request() {
    let mut talk = conversation(&turns(4), 8000);
    talk.push(message(serde_json::json!({"role": "user", "content": "and now?", "message_uid": "u1", "_tool_call_uid": "t"})));
    let mut engine = actor("checked");
    for mode in ["orphan", "no-role", "split", "with-identity", "no-user"] {
        script("checked", |script| script.select = mode);
        let request = talk.request(&mut engine, 0);
        let broken = hermes_message::sequence::check(
            &request.messages,
            hermes_message::sequence::Policy::Request,
        );
        assert_eq!(broken, [], "{mode}");
        for key in hermes_message::IDENTITY_FIELDS {
            assert!(
                !request.body.text().contains(key),
                "{mode}: {key} on the wire"
            );
        }
    }
}

// contract: HOOK-7, ENG-14
#[test]
fn it_is_asked_again_on_every_retry() {
    let mut talk = conversation(&turns(2), 9000);
    let mut engine = actor("retries");
    for attempt in 0..3 {
        talk.request(&mut engine, attempt);
    }
    let expected: Vec<String> = (0..3)
        .map(|n| format!("select_context attempt {n} budget Some(9000)"))
        .collect();
    assert_eq!(take_log("retries"), expected);
}

// contract: HOOK-9
// case: 64
#[test]
fn the_messages_of_a_turn_are_a_prefix_of_the_next_ones() {
    for mode in ["none", "same", "equal"] {
        let id = format!("prefix-{mode}");
        let mut talk = conversation(&turns(1), 100_000);
        let mut engine = actor(&id);
        script(&id, |script| script.select = mode);
        let mut last = String::new();
        for turn in 0..10 {
            talk.push(user(&format!("and {turn}? \u{1f378}")));
            let body = talk.request(&mut engine, 0).body;
            let list = body.list().strip_suffix(']').expect("a list").to_owned();
            assert!(list.starts_with(&last), "{mode}: turn {turn}");
            last = list;
            talk.push(assistant("yes"));
        }
    }
}

// contract: HOOK-9
#[test]
fn a_changed_selection_changes_bytes_from_its_first_different_message_on() {
    let mut talk = conversation(&turns(5), 8000);
    let mut engine = actor("changed");
    script("changed", |script| script.select = "cut");
    let cut = talk.request(&mut engine, 0).body;
    let again = talk.request(&mut engine, 0).body;
    assert_eq!(cut, again, "the same choice, the same bytes");
    script("changed", |script| script.select = "one-shorter");
    let other = talk.request(&mut engine, 0).body;
    let prompt = talk.transcript().messages()[0].wire().len() + 1;
    assert_eq!(cut.list()[..prompt], other.list()[..prompt]);
    assert_ne!(cut, other);
}

// contract: HOOK-12
#[test]
fn selection_and_observation_have_nothing_to_do_with_compression() {
    let mut talk = conversation(&turns(3), 8000);
    let mut engine = actor("apart");
    script("apart", |script| script.select = "newest-user");
    let request = talk.request(&mut engine, 0);
    talk.answered(
        &mut engine,
        &request,
        Usage {
            prompt_tokens: Some(10),
            ..Usage::default()
        },
    );
    talk.turn_complete(
        &mut engine,
        TurnInfo {
            turn_id: "t1".to_owned(),
            ..TurnInfo::default()
        },
    );
    let log = take_log("apart");
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(
        log[1].starts_with("usage") && log[2] == "turn_complete t1 Completed 13",
        "{log:?}"
    );
}

// case: 62
#[test]
fn half_a_surrogate_is_mended_once_and_stays_the_same() {
    let text = r#"{"role":"user","content":"a\ud83d b \ud83c\udf78"}"#;
    let mut talk = conversation(&turns(1), 8000);
    talk.push(hermes_message::Message::parse(text).expect("a message"));
    let mut engine = plain("surrogate");
    let first = body(&mut talk, &mut engine);
    let sent: Value = serde_json::from_str(&first).expect("strict JSON");
    assert_eq!(sent["messages"][5]["content"], "a\u{fffd} b \u{1f378}");
    assert_eq!(body(&mut talk, &mut engine), first);
}
