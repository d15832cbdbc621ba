//! How much a pass leaves: a tail within its budget, huge texts cut, old results shortened.

use hermes_compressor::Settings;
use hermes_compressor::pass::{Outcome, Request};
use hermes_message::{Message, Role, build};
use hermes_plugin_api::abi;
use serde_json::json;

use crate::support::{
    SUMMARY, Scripted, assert_sound, compressed, kit, list, numbered, prose, request, round, run,
    says, session, tokens,
};

// case: 24
#[test]
fn the_tail_of_a_chinese_talk_keeps_to_its_budget() {
    let mut messages = vec![build::system("s")];
    for n in 0..20 {
        let text: String = "我们今天讨论解析器的迁移问题以及测试的结果和下一步的安排"
            .chars()
            .cycle()
            .skip(n)
            .take(2_000)
            .collect();
        messages.extend([build::user(&text), build::assistant(&text)]);
    }
    let messages = numbered(messages);
    // A window of 400,000 has a tail of 10,000; of a million, 25,000.
    for (window, budget) in [(400_000, 10_000), (1_000_000, 25_000)] {
        let ask = Request {
            target_tokens: Some(30_000),
            ..request(window)
        };
        let settings = Settings {
            protect_last_n: 3,
            ..Settings::default()
        };
        let mut helper = Scripted::new(0, |_, _| says(SUMMARY));
        let Outcome::Made(made) = run(&messages, &settings, Some(&mut helper), &ask) else {
            panic!("no pass")
        };
        let next = list(&messages, &made);
        let from = next
            .iter()
            .position(|m| m.text().contains("CONTEXT COMPACTION"))
            .expect("a carrier");
        let tail = tokens(&next[from + 1..]);
        assert!(
            tail <= budget * 17 / 10 && tail > 1_000,
            "window {window}: a tail of {tail}"
        );
    }
}

fn huge(result: &str, question: &str) -> Vec<Message> {
    let mut messages = vec![build::system("s"), build::user("read it")];
    messages.extend(round("c", "read_file", "{\"path\":\"big.log\"}", result));
    messages.push(build::user(question));
    numbered(messages)
}

// case: 26
// contract: ENG-3, PASS-8
#[test]
fn one_huge_result_in_five_messages_is_cut_with_a_note_and_the_pair_stays() {
    let text = format!(
        "FIRST LINE 漢字\n{}\nLAST LINE 🎉",
        "0123456789 abcdefghij ".repeat(81_000)
    );
    let messages = huge(&text, "and?");
    let mut engine = kit(131_072)
        .config(json!({"protect_last_n": 20}))
        .create()
        .expect("an engine");
    let size = tokens(&messages);
    assert!(size > 300_000);
    assert!(
        engine.should_compress(Some(size)).expect("an answer").0,
        "fires on tokens alone"
    );
    let emitted = engine
        .compress_with(&messages, |args| {
            args.current_tokens = i64::try_from(size).expect("small")
        })
        .expect("a list");
    let next = emitted.messages;
    assert_sound(&messages, &next, "huge result");
    assert!(
        tokens(&next) < 131_072 * 3 / 4,
        "under the trigger: {}",
        tokens(&next)
    );
    let result = next
        .iter()
        .find(|m| m.role() == Role::Tool)
        .expect("the result stays with its call");
    let cut = result.text();
    assert!(
        cut.starts_with("FIRST LINE 漢字") && cut.ends_with("LAST LINE 🎉"),
        "head and tail"
    );
    assert!(
        cut.contains("characters were cut") && cut.contains("session store"),
        "a visible note"
    );
    assert_eq!(next.last(), messages.last());

    // Never an endless loop: what is left has nothing more to give.
    let again = engine
        .compress_with(&next, |args| args.trigger = abi::TRIGGER_MANUAL)
        .expect("an answer");
    assert!(again.is_unchanged(), "{}", again.text);
}

// case: 26
#[test]
fn three_huge_results_of_one_call_are_all_cut_and_all_stay() {
    let text = "line of a log with words and numbers 12345\n".repeat(20_000);
    let mut messages = vec![build::system("s"), build::user("read them")];
    messages.push(build::calling(
        Some("reading"),
        &[
            ("a", "read", "{}"),
            ("b", "read", "{}"),
            ("c", "read", "{}"),
        ],
    ));
    messages.extend(["a", "b", "c"].map(|id| build::tool(id, &text)));
    let messages = numbered(messages);
    for window in [8_192, 131_072] {
        let next = compressed(&messages, &Settings::default(), None, &request(window));
        assert_sound(&messages, &next, "three results");
        assert_eq!(next.iter().filter(|m| m.role() == Role::Tool).count(), 3);
        assert!(tokens(&next) < window, "window {window}: {}", tokens(&next));
    }
}

// case: 26
// contract: PASS-6
#[test]
fn a_huge_newest_user_message_stays_whole_while_it_fits_and_is_cut_visibly_when_nothing_else_helps()
{
    let question = format!("Look at this: {}", prose(3, 30_000));
    let mut messages = session(20);
    messages.push(build::user(&question));
    let messages = numbered(messages);
    let newest = messages.last().expect("a message").clone();
    let size = u64::from(newest.tokens());

    let fits = compressed(
        &messages,
        &Settings::default(),
        None,
        &request(size * 3 / 2),
    );
    assert_eq!(fits.last(), Some(&newest), "verbatim while it fits");

    let window = size / 2;
    let cut = compressed(&messages, &Settings::default(), None, &request(window));
    assert!(tokens(&cut) < window, "{} in {window}", tokens(&cut));
    let last = cut.last().expect("a message");
    assert_eq!(last.identity(), newest.identity());
    let text = last.text();
    assert!(
        text.starts_with(&newest.text()[..1_000]) && text.contains("characters were cut"),
        "never silently"
    );
}

// contract: ENG-17
#[test]
fn a_prune_pass_shortens_old_results_only_and_must_be_worth_it() {
    let mut messages = vec![build::system("s"), build::user("go")];
    for n in 0..30 {
        // Every third result repeats another one.
        let text = if n % 3 == 0 {
            prose(7, 900)
        } else {
            format!("result {n}\n{}", prose(n, 2_500))
        };
        messages.extend(round(
            &format!("c{n}"),
            "read",
            &format!("{{\"n\":{n}}}"),
            &text,
        ));
    }
    messages.push(build::assistant("done"));
    let messages = numbered(messages);
    let mut engine = kit(200_000)
        .config(json!({"proactive_prune_min_result_chars": 4_000}))
        .create()
        .expect("an engine");
    let emitted = engine
        .compress_with(&messages, |args| args.trigger = abi::TRIGGER_PRUNE)
        .expect("a list");
    let next = emitted.messages;
    assert_eq!(next.len(), messages.len(), "no message goes");
    assert_sound(&messages, &next, "prune");
    let changed = next
        .iter()
        .zip(&messages)
        .filter(|(new, old)| new.stored() != old.stored());
    for (new, old) in changed.clone() {
        assert_eq!((old.role(), new.identity()), (Role::Tool, old.identity()));
    }
    assert!(changed.count() > 10);
    assert!(
        next.iter()
            .any(|m| m.text().contains("same output as that of a later call"))
    );
    let mut small = kit(200_000).create().expect("an engine");
    let few = &messages[..4];
    assert!(
        small
            .compress_with(few, |args| args.trigger = abi::TRIGGER_PRUNE)
            .expect("an answer")
            .is_unchanged()
    );
}
