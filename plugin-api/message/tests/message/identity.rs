//! Identity: absorbing, folding calls, reading and writing.

use hermes_message::{CallUid, CallUids, Identity};

use crate::texts::msg;

fn identity(uid: &str, absorbed: &[&str]) -> Identity {
    Identity {
        absorbed: absorbed.iter().map(|uid| (*uid).into()).collect(),
        ..Identity::of_uid(uid)
    }
}

fn uids(identity: &Identity) -> (Option<&str>, Vec<&str>) {
    (
        identity.uid.as_deref(),
        identity.absorbed.iter().map(|uid| &**uid).collect(),
    )
}

// contract: UID-5
#[test]
fn the_first_text_keeps_its_uid_and_records_the_others_in_order() {
    let mut fold = identity("a", &["x"]);
    fold.absorb(&identity("b", &["y", "a", "x"]));
    assert_eq!(uids(&fold), (Some("a"), vec!["x", "b", "y"]));
    fold.absorb(&Identity::default());
    fold.absorb(&identity("b", &[]));
    assert_eq!(
        uids(&fold),
        (Some("a"), vec!["x", "b", "y"]),
        "each uid once, no uid adds nothing"
    );
}

// contract: UID-5
#[test]
fn a_text_that_comes_first_takes_the_name_of_the_fold() {
    let mut fold = identity("b", &["c"]);
    fold.absorb_leading(&identity("a", &["a2", "c"]));
    assert_eq!(uids(&fold), (Some("a"), vec!["a2", "c", "b"]));
    let mut fold = identity("b", &[]);
    fold.absorb_leading(&Identity::default());
    assert_eq!(uids(&fold), (Some("b"), vec![]));
    let mut fold = Identity::default();
    fold.absorb_leading(&identity("a", &[]));
    assert_eq!(uids(&fold), (Some("a"), vec![]));
}

fn calling(ids: &[&str], map: &str) -> hermes_message::Message {
    let calls: Vec<String> = ids
        .iter()
        .map(|id| {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#
            )
        })
        .collect();
    let calls = calls.join(",");
    msg(&format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{calls}],"_tool_call_uids":{map}}}"#
    ))
}

fn folded(first: &hermes_message::Message, second: &hermes_message::Message) -> String {
    let mut identity = first.identity().clone();
    identity.fold_calls(first.tool_calls(), second.identity(), second.tool_calls());
    identity.tool_call_uids.to_json()
}

// contract: UID-12, UID-13
#[test]
fn a_fold_of_two_turns_with_one_provider_id_lists_a_uid_for_each_call() {
    let one = calling(&["k"], r#"{"k":"1"}"#);
    let two = calling(&["k", "m"], r#"{"k":"2","m":"3"}"#);
    assert_eq!(folded(&one, &two), r#"{"k":["1","2"],"m":"3"}"#);
    let shared = calling(&["k", "k"], r#"{"k":"s"}"#);
    assert_eq!(folded(&shared, &one), r#"{"k":["s","s","1"]}"#);
    let lists = calling(&["k", "k"], r#"{"k":["4","5"]}"#);
    assert_eq!(folded(&lists, &shared), r#"{"k":["4","5","s","s"]}"#);
    let nameless = calling(&["k"], "{}");
    assert_eq!(folded(&nameless, &one), r#"{"k":[null,"1"]}"#);
    assert_eq!(folded(&nameless, &nameless), "{}");
}

// contract: UID-8, UID-12
#[test]
fn calls_that_repeat_an_id_in_one_response_share_a_uid() {
    let message = calling(&["k", "m", "k"], r#"{"m":"old"}"#);
    let mut identity = message.identity().clone();
    let mut next = 0;
    identity.mint_calls(message.tool_calls(), || {
        next += 1;
        format!("new{next}")
    });
    assert_eq!(
        identity.tool_call_uids.to_json(),
        r#"{"m":"old","k":"new1"}"#
    );
    assert_eq!(
        identity.tool_call_uids.get("k").and_then(|uid| uid.nth(1)),
        Some("new1")
    );
}

#[test]
fn identity_is_written_and_read_back() {
    let text = r#"{"message_uid":"u\"1","_absorbed_message_uids":["a","b"],"_tool_call_uids":{"k":["1",null],"m":"2"},"_tool_call_uid":"t"}"#;
    let identity = Identity::from_json(text).expect("an object");
    assert_eq!(identity.to_json(), text);
    assert!(Identity::from_json("").expect("empty").is_empty());
    assert_eq!(Identity::default().to_json(), "");
    assert!(Identity::from_json("[]").is_err());
    assert!(Identity::from_json("{").is_err());
}

// contract: UID-2
#[test]
fn a_value_of_the_wrong_kind_means_no_identity_yet() {
    let text = r#"{"message_uid":7,"_absorbed_message_uids":["",1,"a"],"_tool_call_uids":{"k":"","l":[1],"m":["",2,"x"]},"_tool_call_uid":"","other":1}"#;
    let identity = Identity::from_json(text).expect("an object");
    assert_eq!(uids(&identity), (None, vec!["a"]));
    assert_eq!(
        identity.tool_call_uids.to_json(),
        r#"{"m":[null,null,"x"]}"#
    );
    assert_eq!(identity.tool_call_uid, None);
    let mut map = CallUids::from_json("3");
    assert!(map.is_empty());
    map.set("k", CallUid::One("1".into()));
    map.remove("k");
    assert_eq!(map.to_json(), "{}");
}
