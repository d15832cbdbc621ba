//! Whatever comes in, in whatever window, with whatever helper: the result is sound.

use hermes_compressor::Settings;
use hermes_compressor::helper::{Class, Failure, Helper, Reply};
use hermes_compressor::pass::{Cause, Request};
use hermes_compressor::settings::TailMode;
use hermes_message::repair::repair;
use hermes_message::sequence::{Policy, check};
use hermes_message::{Message, Role, build};
use proptest::prelude::*;

use crate::support::{
    SUMMARY, Scripted, assert_sound, compressed, fails, newest_user, numbered, outline, prose,
    says, tokens,
};

#[derive(Clone, Debug)]
enum Piece {
    User(usize, usize),
    Assistant(usize, usize),
    Rounds(usize, usize, usize),
    Notice,
    Blank,
    /// Broken: a result that answers nothing.
    Orphan(usize),
    /// Broken: calls of which the last has no result.
    Unanswered(usize),
    Image,
}

fn piece(broken: bool) -> impl Strategy<Value = Piece> {
    let sound = prop_oneof![
        4 => (0..500usize, 1..220usize).prop_map(|(seed, words)| Piece::User(seed, words)),
        4 => (0..500usize, 1..220usize).prop_map(|(seed, words)| Piece::Assistant(seed, words)),
        5 => (0..500usize, 1..4usize, 0..500usize).prop_map(|(seed, calls, words)| Piece::Rounds(seed, calls, words)),
        1 => Just(Piece::Image),
    ];
    let odd = prop_oneof![
        Just(Piece::Notice),
        Just(Piece::Blank),
        (0..200usize).prop_map(Piece::Orphan),
        (1..4usize).prop_map(Piece::Unanswered),
    ];
    if broken {
        prop_oneof![6 => sound, 2 => odd].boxed()
    } else {
        sound.boxed()
    }
}

fn transcript(system: bool, pieces: &[Piece], broken: bool) -> Vec<Message> {
    let mut messages = Vec::new();
    if system {
        messages.push(build::system("You are Hermes. RULE-7: never push."));
    }
    for piece in pieces {
        match piece {
            Piece::User(seed, words) => messages.push(build::user(&prose(*seed, *words))),
            Piece::Assistant(seed, words) => messages.push(build::assistant(&prose(*seed, *words))),
            Piece::Rounds(seed, calls, words) => {
                let ids: Vec<String> = (0..*calls).map(|n| format!("call_{}_{n}", seed % 7)).collect();
                let arguments = format!("{{\"path\":\"src/f{seed}.rs\",\"text\":\"{}\"}}", prose(*seed, words / 2));
                let list: Vec<(&str, &str, &str)> = ids.iter().map(|id| (&**id, "edit", &*arguments)).collect();
                messages.push(build::calling(None, &list));
                for id in &ids {
                    messages.push(build::tool(id, &format!("done {seed}: {}", prose(seed + 3, *words))));
                }
            }
            Piece::Notice => messages.push(build::system("idle for 10 min")),
            Piece::Blank => messages.push(Message::parse(r#"{"role":"assistant","content":null}"#).expect("a message")),
            Piece::Orphan(words) => messages.push(build::tool("gone", &prose(*words, *words))),
            Piece::Unanswered(calls) => {
                let ids: Vec<String> = (0..*calls).map(|n| format!("open_{n}")).collect();
                let list: Vec<(&str, &str, &str)> = ids.iter().map(|id| (&**id, "run", "{}")).collect();
                messages.push(build::calling(Some("running"), &list));
                messages.extend(ids.iter().skip(1).map(|id| build::tool(id, "ok")));
            }
            Piece::Image => messages.push(
                Message::parse(
                    r#"{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}"#,
                )
                .expect("a message"),
            ),
        }
    }
    if broken {
        return numbered(messages);
    }
    let sound: Vec<Message> = repair(&messages).messages;
    numbered(
        sound
            .iter()
            .map(|m| Message::parse(m.stored()).expect("a message"))
            .collect(),
    )
}

fn answer(kind: u8, at: usize) -> Result<Reply, Failure> {
    match kind {
        0 => says(SUMMARY),
        1 => says(""),
        2 => says("I can't help with that"),
        3 => says(&prose(at, 30_000)),
        4 => fails(Class::Other),
        5 => fails(Class::Overload),
        6 => says("<think>hm</think> ## Goal\nall of it was read and the parser was moved"),
        _ => says(if at.is_multiple_of(2) { "" } else { SUMMARY }),
    }
}

#[derive(Clone, Debug)]
struct Circumstances {
    window: u64,
    first: u32,
    last: u32,
    legacy: bool,
    helper: Option<u8>,
    helper_window: u64,
    cause: u8,
    beside: u64,
}

fn circumstances() -> impl Strategy<Value = Circumstances> {
    (
        prop_oneof![
            Just(0u64),
            512..3_000u64,
            3_000..40_000u64,
            Just(200_000u64)
        ],
        0..6u32,
        0..25u32,
        any::<bool>(),
        proptest::option::of(0..8u8),
        prop_oneof![Just(0u64), 500..3_000u64, Just(32_768u64)],
        0..4u8,
        0..2_000u64,
    )
        .prop_map(
            |(window, first, last, legacy, helper, helper_window, cause, beside)| Circumstances {
                window,
                first,
                last,
                legacy,
                helper,
                helper_window,
                cause,
                beside,
            },
        )
}

fn pass(messages: &[Message], how: &Circumstances) -> Vec<Message> {
    let settings = Settings {
        protect_first_n: how.first,
        protect_last_n: how.last,
        tail_mode: if how.legacy {
            TailMode::Legacy
        } else {
            TailMode::Lean
        },
        ..Settings::default()
    };
    let request = Request {
        cause: [
            Cause::Automatic,
            Cause::Overflow,
            Cause::Manual,
            Cause::Prune,
        ][usize::from(how.cause)],
        current_tokens: Some(tokens(messages) + how.beside),
        ..crate::support::request(how.window)
    };
    match how.helper {
        None => compressed(messages, &settings, None, &request),
        Some(kind) => {
            let mut helper = Scripted::new(how.helper_window, move |at, _: &str| answer(kind, at));
            let helper: &mut dyn Helper = &mut helper;
            compressed(messages, &settings, Some(helper), &request)
        }
    }
}

fn judge(messages: &[Message], how: &Circumstances, broken: bool) {
    let mut list = messages.to_vec();
    for depth in 0..3 {
        let next = pass(&list, how);
        let what = format!("depth {depth}, {how:?}\n{}", outline(&list));
        assert_sound(&list, &next, &what);
        if !broken {
            assert!(
                check(&next, Policy::Request).is_empty(),
                "{what}\n{}",
                outline(&next)
            );
        }
        let mended = repair(&next);
        assert!(
            mended.no_user || check(&mended.messages, Policy::Request).is_empty(),
            "{what}"
        );
        if let Some(newest) = newest_user(&list) {
            let newest = &list[newest];
            let there = next
                .iter()
                .filter(|m| m.role() == Role::User && m.identity().uid == newest.identity().uid);
            let kept: Vec<&Message> = there.collect();
            assert_eq!(
                kept.len(),
                1,
                "the newest user message: {what}\n{}",
                outline(&next)
            );
            // Only where the request could not be sent otherwise is it cut, and then one sees it.
            let whole = kept[0].text() == newest.text();
            let small = u64::from(newest.tokens()) < how.window.saturating_sub(how.beside) / 12;
            let note = ["characters were cut", "was removed here"]
                .iter()
                .any(|note| kept[0].text().contains(note));
            assert!(whole || (!small && note), "cut: {what}");
        }
        let bytes = |list: &[Message]| {
            list.iter()
                .map(|m| m.to_json_with_identity())
                .collect::<String>()
        };
        assert_eq!(
            bytes(&next),
            bytes(&pass(&list, how)),
            "same input, same bytes: {what}"
        );
        list = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // contract: ENG-4, PASS-6, UID-18
    #[test]
    fn valid_transcripts_stay_valid(
        system in any::<bool>(),
        pieces in prop::collection::vec(piece(false), 1..60),
        how in circumstances(),
    ) {
        judge(&transcript(system, &pieces, false), &how, false);
    }

    // contract: ENG-4, PASS-6
    #[test]
    fn broken_transcripts_get_no_worse_and_can_be_repaired(
        system in any::<bool>(),
        pieces in prop::collection::vec(piece(true), 1..60),
        how in circumstances(),
    ) {
        judge(&transcript(system, &pieces, true), &how, true);
    }
}
