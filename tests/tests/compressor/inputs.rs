//! Real conversations, ten compressions deep, in three windows.

use hermes_compressor::Settings;
use hermes_message::Message;
use hermes_message::format;
use hermes_message::repair::repair;
use hermes_message::sequence::{Policy, check};
use hermes_tests::inputs;

use crate::support::{
    SUMMARY, Scripted, assert_sound, compressed, newest_user, numbered, request, says, tokens,
};

fn conversations() -> Vec<(String, Vec<Message>)> {
    let mut found = Vec::new();
    for path in inputs() {
        let bytes = std::fs::read(&path).expect("readable");
        let file = format::read(&bytes).expect("a conversation file");
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        for (n, conversation) in file.conversations.iter().enumerate() {
            found.push((
                format!("{name}#{n}"),
                numbered(conversation.messages.clone()),
            ));
        }
    }
    found
}

// contract: ENG-4, PASS-6, TEST-3
#[test]
fn ten_compressions_of_every_real_conversation_break_no_rule() {
    let mut passes = 0;
    for (name, messages) in conversations() {
        // A conversation grows; here it is seen in ten steps.
        for window in [8_192, 32_768, 200_000] {
            for helped in [false, true] {
                let mut list: Vec<Message> = Vec::new();
                let steps = messages.len().div_ceil(10).max(1);
                for (depth, more) in messages.chunks(steps).enumerate() {
                    list.extend_from_slice(more);
                    for twice in 0..2 {
                        let what = format!("{name}, window {window}, depth {depth}.{twice}");
                        let mut helper = Scripted::new(0, |_, _: &str| says(SUMMARY));
                        let helper: Option<&mut dyn hermes_compressor::helper::Helper> =
                            if helped { Some(&mut helper) } else { None };
                        let next =
                            compressed(&list, &Settings::default(), helper, &request(window));
                        assert_sound(&list, &next, &what);
                        if let Some(newest) = newest_user(&list) {
                            let uid = &list[newest].identity().uid;
                            assert!(
                                next.iter().any(|m| m.identity().uid == *uid),
                                "{what}: newest user message"
                            );
                        }
                        let mended = repair(&next);
                        assert!(
                            mended.no_user || check(&mended.messages, Policy::Request).is_empty(),
                            "{what}"
                        );
                        passes += usize::from(tokens(&next) < tokens(&list));
                        list = next;
                    }
                }
            }
        }
    }
    println!("{passes} passes made a list shorter");
}
