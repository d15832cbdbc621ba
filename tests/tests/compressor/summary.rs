//! The summary: what is asked, what is taken for an answer, what happens when there is none.

use hermes_compressor::Settings;
use hermes_compressor::helper::{Class, Reply};
use hermes_compressor::pass::{Author, Cause, Outcome, Request, Why};
use hermes_message::sequence::{Policy, check};
use hermes_message::{Message, build, flags};
use hermes_plugin_api::abi;
use serde_json::json;

use crate::support::{
    SUMMARY, Scripted, assert_sound, compressed, fails, kit, list, numbered, prose, request, round,
    run, says, session, tokens,
};

/// One answer of a helper, made anew each time.
type Answer = Box<dyn Fn() -> Result<Reply, hermes_compressor::helper::Failure>>;

fn talk(turns: usize) -> Vec<Message> {
    session(turns)
}

// case: 28
// contract: PASS-6, PASS-8
#[test]
fn no_answer_of_a_helper_that_is_no_summary_changes_the_list() {
    let messages = talk(100);
    let answers: [(&str, Answer); 9] = [
        ("empty", Box::new(|| says(""))),
        ("blank", Box::new(|| says("   \n"))),
        ("null", Box::new(|| says("null"))),
        ("{}", Box::new(|| says("{}"))),
        (
            "only reasoning",
            Box::new(|| says("<think>what a long talk</think>")),
        ),
        ("HTTP 500", Box::new(|| fails(Class::Overload))),
        ("closed", Box::new(|| fails(Class::Network))),
        ("refusal", Box::new(|| says("I can't help with that"))),
        (
            "cut",
            Box::new(|| {
                Ok(Reply {
                    text: "## Goal\nport the".to_owned(),
                    finish_reason: "length".to_owned(),
                })
            }),
        ),
    ];
    for (name, answer) in answers {
        let mut helper = Scripted::new(0, |_, _| answer());
        let outcome = run(
            &messages,
            &Settings::default(),
            Some(&mut helper),
            &request(16_384),
        );
        assert!(
            matches!(outcome, Outcome::Unchanged(Why::HelperFailed(_), _)),
            "{name}: {outcome:?}"
        );
    }
}

// case: 28
// contract: PASS-8
#[test]
fn after_a_failure_the_engine_waits_and_a_forced_pass_tries_at_once() {
    let messages = talk(60);
    let mut engine = kit(16_384)
        .scripted(["", "", SUMMARY])
        .create()
        .expect("an engine");
    let emitted = engine
        .compress(&messages)
        .expect("no fault of the engine's");
    assert!(
        emitted.is_unchanged() && emitted.text.contains("empty summary"),
        "{}",
        emitted.text
    );
    assert_eq!(engine.state().compression_count, 0);
    let (yes, reason) = engine.should_compress(Some(16_000)).expect("an answer");
    assert!(!yes && reason.starts_with("cooldown"), "{reason}");
    let again = engine.should_compress(Some(16_100)).expect("an answer");
    assert_eq!(again.1, reason, "one sentence while the cause lasts");
    assert!(
        engine
            .compress(&messages)
            .expect("an answer")
            .is_unchanged(),
        "an automatic pass waits"
    );
    let forced = engine.compress_with(&messages, |args| {
        args.trigger = abi::TRIGGER_MANUAL;
        args.flags = abi::COMPRESS_FORCE;
    });
    assert!(
        !forced.expect("an answer").is_unchanged(),
        "a person does not"
    );
    assert_eq!(engine.state().compression_count, 1);
}

// case: 28
#[test]
fn without_a_helper_only_what_cannot_wait_is_summed_up_and_says_so() {
    let messages = talk(60);
    let mut helper = Scripted::new(0, |_, _| fails(Class::Overload));
    let urgent = Request {
        cause: Cause::Overflow,
        ..request(16_384)
    };
    let Outcome::Made(made) = run(&messages, &Settings::default(), Some(&mut helper), &urgent)
    else {
        panic!("the conversation could not go on");
    };
    assert!(matches!(made.author, Author::Fallback(_)));
    let next = list(&messages, &made);
    assert_sound(&messages, &next, "overflow");
    let carrier = next
        .iter()
        .find(|m| m.has(flags::SUMMARY))
        .expect("a carrier");
    assert!(carrier.text().contains("without a model") && carrier.text().contains("session store"));

    let never = Settings {
        abort_on_summary_failure: true,
        ..Settings::default()
    };
    let mut helper = Scripted::new(0, |_, _| fails(Class::Other));
    assert!(
        matches!(
            run(&messages, &never, Some(&mut helper), &urgent),
            Outcome::Unchanged(..)
        ),
        "by configuration"
    );
}

// case: 33
#[test]
fn a_summary_longer_than_its_source_is_refused_and_is_no_failure_of_the_model() {
    let mut messages = vec![build::system("s")];
    for n in 0..14 {
        messages.extend([
            build::user(&prose(n, 25)),
            build::assistant(&prose(n + 30, 25)),
        ]);
    }
    let long = format!("## Goal\n{}", prose(5, 4_000));
    let mut helper = Scripted::new(0, |_, _| says(&long));
    let outcome = run(
        &messages,
        &Settings::default(),
        Some(&mut helper),
        &request(2_048),
    );
    let Outcome::Unchanged(Why::HelperFailed(failure), _) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(failure.class, Class::TooLong);
    assert_eq!(helper.asked.len(), 2, "asked once more, for less");

    let tiny = vec![
        build::user("a"),
        build::assistant("b"),
        build::user("c"),
        build::assistant("d"),
        build::user("e"),
    ];
    let mut helper = Scripted::new(0, |_, _| says(SUMMARY));
    let manual = Request {
        cause: Cause::Manual,
        ..request(8_192)
    };
    assert!(matches!(
        run(&tiny, &Settings::default(), Some(&mut helper), &manual),
        Outcome::Unchanged(Why::NothingToDo, _)
    ));
    assert!(helper.asked.is_empty(), "so little is not sent to a model");
}

// case: 30
#[test]
fn a_helper_with_a_small_window_reads_everything_in_parts_that_fit() {
    let chinese = "我们需要把解析器迁移到新的语法，并且保留所有旧的测试。".repeat(700);
    let mut messages = session(220);
    messages.insert(9, build::user(&chinese));
    messages.insert(10, build::assistant("好的"));
    let trigger = request(1_000_000).threshold;
    for window in [2_048, 8_192, 32_768] {
        let mut helper = Scripted::new(window, |_, _| says(SUMMARY));
        let forced = Request {
            cause: Cause::Manual,
            target_tokens: Some(20_000),
            ..request(1_000_000)
        };
        let outcome = run(&messages, &Settings::default(), Some(&mut helper), &forced);
        let Outcome::Made(made) = outcome else {
            panic!("{window}: {outcome:?}")
        };
        assert_sound(
            &messages,
            &list(&messages, &made),
            &format!("window {window}"),
        );
        assert!(helper.asked.len() > 1 || window == 32_768);
        for prompt in &helper.asked {
            let size = u64::from(hermes_message::estimate::tokens_of_text(prompt));
            assert!(
                size < window * 9 / 10,
                "window {window}: a question of {size} tokens"
            );
        }
        // Every question is there, whole or with what is left out named.
        let all = helper.asked.concat();
        for turn in 1..200 {
            assert!(
                all.contains(&format!("question {turn}:")),
                "window {window}: question {turn} is covered"
            );
        }
        assert!(all.contains("bytes left out"), "the omission is stated");
    }
    assert_eq!(
        request(1_000_000).threshold,
        trigger,
        "the trigger does not move"
    );
    let mut helper = Scripted::new(900, |_, _| says(SUMMARY));
    let outcome = run(
        &messages,
        &Settings::default(),
        Some(&mut helper),
        &request(100_000),
    );
    let Outcome::Unchanged(Why::HelperFailed(failure), _) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        failure
            .message
            .contains("window of 900 tokens is too small"),
        "{}",
        failure.message
    );
    assert!(helper.asked.is_empty());
}

// case: 30
#[test]
fn a_helper_that_counts_otherwise_gets_smaller_parts() {
    let messages = session(60);
    let mut helper = Scripted::new(8_192, |_, prompt: &str| {
        if prompt.len() > 12_000 {
            fails(Class::Context)
        } else {
            says(SUMMARY)
        }
    });
    let outcome = run(
        &messages,
        &Settings::default(),
        Some(&mut helper),
        &request(16_384),
    );
    assert!(matches!(outcome, Outcome::Made(_)), "{outcome:?}");
}

const SECRETS: [&str; 6] = [
    "wJalrXUtnFEMIK7MDENGbPxRfiCYFAKEFAKEFAKE",
    "pa55word77",
    "FAKE123TOKEN456",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    "FAKEa1b2c3.JWTd4e5f6.Xg7h8i9",
    "sk-FAKE0000aaaa1111bbbb",
];

// case: 31
#[test]
fn no_secret_reaches_the_helper_or_the_summary_and_the_messages_stay_as_they_are() {
    let mut messages = vec![
        build::system("s"),
        build::user("look around"),
        build::assistant("yes"),
        build::user("go"),
    ];
    let result = format!(
        "AWS_SECRET_ACCESS_KEY={}\nhttps://user:{}@h/x?token={}\n-----BEGIN PRIVATE KEY-----\n{}\n{}\n-----END PRIVATE KEY-----",
        SECRETS[0], SECRETS[1], SECRETS[2], SECRETS[3], SECRETS[3]
    );
    messages.extend(round("c", "env", "{}", &result));
    let arguments =
        json!({"headers": {"Authorization": format!("Bearer {}", SECRETS[4])}}).to_string();
    messages.extend(round(
        "c2",
        "curl",
        &arguments,
        "200 OK; commit 3f2a9c1be77d and id 123e4567-e89b-12d3-a456-426614174000",
    ));
    for n in 0..30 {
        messages.extend([
            build::assistant(&prose(n, 90)),
            build::user(&format!("{} key {}", prose(n + 40, 40), SECRETS[5])),
        ]);
    }
    let messages = numbered(messages);
    let focus = format!("keep {}", SECRETS[5]);
    let echo = format!(
        "{SUMMARY}\n## Critical Context\n- the key is {} and AWS_SECRET_ACCESS_KEY={}",
        SECRETS[5], SECRETS[0]
    );
    for helped in [true, false] {
        let mut previous = messages.clone();
        for depth in 0..3 {
            let mut helper = Scripted::new(0, |_, _| says(&echo));
            let ask = Request {
                focus: Some(&focus),
                memory: Some(&focus),
                cause: Cause::Manual,
                ..request(4_096)
            };
            let helper_now: Option<&mut dyn hermes_compressor::helper::Helper> =
                if helped { Some(&mut helper) } else { None };
            let next = compressed(&previous, &Settings::default(), helper_now, &ask);
            assert!(next.len() < previous.len(), "it still succeeds");
            let made: String = next
                .iter()
                .filter(|m| m.has(flags::SUMMARY))
                .map(|m| m.text().into_owned())
                .collect();
            for secret in SECRETS {
                assert!(
                    !helper.asked.concat().contains(secret),
                    "depth {depth}: {secret} was sent to the helper"
                );
                assert!(
                    !made.contains(secret),
                    "depth {depth}, helped {helped}: {secret} is in the summary\n{made}"
                );
            }
            if helped && depth == 0 {
                assert!(
                    helper
                        .asked
                        .concat()
                        .contains("123e4567-e89b-12d3-a456-426614174000"),
                    "ids are left alone"
                );
                assert!(
                    helper.asked.concat().contains("3f2a9c1be77d"),
                    "hashes are left alone"
                );
            }
            let mut kept = next.iter().filter(|m| m.identity().uid.is_some());
            assert!(
                depth > 0 || kept.any(|m| m.text().contains(SECRETS[5])),
                "live messages are not altered"
            );
            previous = next;
            for n in 0..20 {
                let seed = depth * 100 + n;
                previous.extend([
                    build::assistant(&prose(seed, 90)),
                    build::user(&prose(seed + 40, 40)),
                ]);
            }
        }
    }
}

// contract: ENG-4
#[test]
fn the_focus_reaches_the_question_and_steers_the_extract() {
    let mut messages = session(40);
    messages.insert(
        20,
        build::assistant("The zebra index lives in crates/zebra/src/index.rs and takes 417 MB."),
    );
    let ask = Request {
        focus: Some("the zebra index"),
        cause: Cause::Manual,
        ..request(8_192)
    };
    let mut helper = Scripted::new(0, |_, _| says(SUMMARY));
    compressed(&messages, &Settings::default(), Some(&mut helper), &ask);
    assert!(
        helper.asked[0].contains("favour this topic")
            && helper.asked[0].contains("the zebra index")
    );
    let next = compressed(&messages, &Settings::default(), None, &ask);
    let carrier = next
        .iter()
        .find(|m| m.has(flags::SUMMARY))
        .expect("a carrier");
    assert!(carrier.text().contains("417 MB"), "{}", carrier.text());
}

// contract: ENG-4
#[test]
fn earlier_summaries_are_carried_over_and_never_stand_beside_the_new_one() {
    let mut messages = session(40);
    for depth in 0..5 {
        let mut helper = Scripted::new(0, |_, _| {
            says(&format!(
                "{SUMMARY}\n## Critical Context\n- fact of round {depth}"
            ))
        });
        let next = compressed(
            &messages,
            &Settings::default(),
            Some(&mut helper),
            &request(8_192),
        );
        assert_sound(&messages, &next, &format!("depth {depth}"));
        assert_eq!(
            next.iter()
                .filter(|m| m.text().contains("CONTEXT COMPACTION"))
                .count(),
            1
        );
        if depth > 0 {
            assert!(helper.asked[0].contains(&format!("fact of round {}", depth - 1)));
            assert!(
                !helper.asked[0].contains("CONTEXT COMPACTION"),
                "title and frame are taken off"
            );
        }
        messages = next;
        messages.extend(
            session(30)
                .into_iter()
                .skip(1)
                .map(|m| Message::parse(m.stored()).expect("a message")),
        );
    }
    assert!(check(&messages, Policy::Request).is_empty());
}

// contract: PASS-6
#[test]
fn the_same_input_gives_the_same_bytes() {
    let messages = session(80);
    let text = |list: &[Message]| {
        list.iter()
            .map(|m| m.to_json_with_identity())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let first = compressed(&messages, &Settings::default(), None, &request(16_384));
    for _ in 0..3 {
        let again = compressed(&messages, &Settings::default(), None, &request(16_384));
        assert_eq!(text(&first), text(&again));
    }
    assert!(tokens(&first) < tokens(&messages));
}
