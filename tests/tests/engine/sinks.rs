//! What an emission becomes on the host's side.

use hermes::engine::{
    CompressRequest, Emission, Emitted, EngineHandle, MessageList, PassControl, repeated_uids,
};

use crate::support::{Host, PATIENCE, conversation, list};

fn compress(engine: &mut EngineHandle, messages: &MessageList) -> Vec<Emitted> {
    let request = CompressRequest {
        messages: messages.clone(),
        ..CompressRequest::default()
    };
    let control = PassControl::new(Some(PATIENCE), None);
    match engine.compress(request, &control).unwrap() {
        Emission::Messages(items) => items,
        Emission::Unchanged { reason } => panic!("unchanged: {reason}"),
    }
}

#[test]
fn kept_messages_are_the_hosts_own_objects() {
    // contract: HOOK-9, UID-18
    let messages = conversation();
    let items = compress(&mut Host::new().engine("", ""), &messages);
    assert_eq!(items.len(), messages.len());
    for (index, item) in items.iter().enumerate() {
        assert_eq!(*item, Emitted::Kept { list: 0, index });
        let message = item.message(&[&messages]).unwrap();
        assert!(message.same(&messages.messages()[index]));
    }
}

#[test]
fn a_pushed_copy_becomes_the_hosts_message() {
    // contract: HOOK-9, UID-18
    // Two messages say the same; each copy must become another one of them, in order.
    let messages = list(&[
        r#"{"role":"user","content":"yes","message_uid":"u1"}"#,
        r#"{"role":"assistant","content":"really?"}"#,
        r#"{"role":"user","content":"yes","message_uid":"u2"}"#,
    ]);
    let items = compress(&mut Host::new().engine("compress", "echo"), &messages);
    for (index, item) in items.iter().enumerate() {
        assert_eq!(*item, Emitted::Kept { list: 0, index });
    }
}

#[test]
fn a_foreign_uid_twice_is_reported_to_the_checks() {
    // contract: UID-6, UID-7
    let messages = conversation();
    let items = compress(
        &mut Host::new().engine("compress", "foreign uid twice"),
        &messages,
    );
    assert_eq!(items.len(), 2);
    assert_eq!(
        repeated_uids(&items, &[&messages]),
        ["feedfeedfeedfeedfeedfeedfeedfeed"]
    );
    for item in &items {
        let Emitted::Pushed(message) = item else {
            panic!("{item:?}");
        };
        assert!(
            !message.stored().contains("message_uid"),
            "lifted out of the text"
        );
        assert!(message.identity().uid.is_some());
    }
    // The host's own messages repeat nothing.
    let items = compress(&mut Host::new().engine("", ""), &messages);
    assert!(repeated_uids(&items, &[&messages]).is_empty());
}

#[test]
fn a_snapshot_does_not_see_what_comes_later() {
    // contract: PASS-3
    let mut messages = conversation();
    let snapshot = messages.clone();
    messages.push(hermes_message::Message::parse(r#"{"role":"user","content":"more"}"#).unwrap());
    assert_eq!((snapshot.len(), messages.len()), (4, 5));
    assert!(snapshot.messages()[3].same(&messages.messages()[3]));
}

#[test]
fn the_focus_reaches_an_engine_that_knows_it() {
    // contract: ENG-4
    // case: 44
    let host = Host::new();
    let focus = "\"quoted\"\n🦀 ".repeat(1000);
    let request = CompressRequest {
        messages: conversation(),
        focus: Some(focus.clone()),
        ..CompressRequest::default()
    };
    let mut engine = host.engine("", "");
    engine
        .compress(request, &PassControl::new(None, None))
        .unwrap();
    assert!(
        host.log()
            .contains(&format!("focus of {} bytes", focus.len()))
    );
}
