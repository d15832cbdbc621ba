//! The shape of the new list: tool groups, alternation, the system prompt, arguments, empty messages.

use hermes_compressor::Settings;
use hermes_compressor::pass::Request;
use hermes_message::sequence::{Policy, check};
use hermes_message::{Message, Role, build, flags};

use crate::support::{
    SUMMARY, Scripted, assert_sound, compressed, numbered, outline, prose, request, round, says,
    session, uid,
};

fn settings(first: u32, last: u32) -> Settings {
    Settings {
        protect_first_n: first,
        protect_last_n: last,
        ..Settings::default()
    }
}

// case: 1
// contract: ENG-4, PASS-6
#[test]
fn no_tail_size_parts_a_call_from_its_result() {
    let mut messages = vec![build::system("sys")];
    for n in 0..40 {
        let arguments = format!("{{\"path\":\"path_{n}\"}}");
        messages.extend(round(&format!("c_{n}"), "read", &arguments, &prose(n, 700)));
    }
    messages.extend([
        build::user("go on"),
        build::assistant("ok"),
        build::user("now edit a.rs"),
    ]);
    let messages = numbered(messages);
    for tail in 1..=20 {
        let mut list = messages.clone();
        for round in 0..4 {
            let mut helper = Scripted::new(0, |_, _| says("## Summary\nread 40 files"));
            let next = compressed(
                &list,
                &settings(3, tail),
                Some(&mut helper),
                &request(32_768),
            );
            assert_sound(&list, &next, &format!("tail {tail}, round {round}"));
            assert!(
                round > 0 || next.len() < list.len(),
                "tail {tail}: made progress"
            );
            let grouped = check(&next, Policy::Transcript);
            assert!(
                grouped.is_empty(),
                "tail {tail}, round {round}: {grouped:?}"
            );
            // What a store gives back after a reload.
            list = next
                .iter()
                .map(|m| Message::parse(&m.to_json_with_identity()).expect("a message"))
                .collect();
        }
        assert_eq!(
            list.last().map(|m| m.text().into_owned()).as_deref(),
            Some("now edit a.rs")
        );
    }
}

fn ends(role: char, n: usize) -> Vec<Message> {
    match role {
        'U' => vec![build::user(&format!("question {n}: {}", prose(n, 40)))],
        'A' => vec![build::assistant(&format!(
            "answer {n}: {}",
            prose(n + 100, 40)
        ))],
        _ => round(&format!("t{n}"), "look", "{}", &prose(n + 200, 40)).to_vec(),
    }
}

// case: 3
// contract: UID-5, UID-16, UID-17
#[test]
fn the_summary_keeps_user_and_assistant_alternating_for_every_pair_of_neighbours() {
    // What the head ends with, and what the tail starts with.
    for (head, tail) in [
        ('A', 'U'),
        ('U', 'A'),
        ('T', 'A'),
        ('U', 'U'),
        ('A', 'A'),
        ('T', 'U'),
    ] {
        for tail_rows in 3..9 {
            let mut messages = vec![build::system("sys"), build::user("start")];
            match head {
                'U' => messages.extend([build::assistant("hello"), build::user("and?")]),
                'A' => messages.push(build::assistant("hello")),
                _ => messages.extend(ends('T', 0)),
            }
            let first = messages.len() - 1;
            if head != 'U' {
                messages.extend(ends('U', 1));
            }
            for n in 0..30 {
                messages.extend(ends('A', n + 2));
                messages.extend(ends('U', n + 50));
            }
            if tail == 'A' {
                messages.extend(ends('A', 90));
                messages.extend(ends('U', 91));
            }
            messages.extend(ends('T', 92));
            messages.extend(ends('A', 93));
            messages.push(build::user("the newest question"));
            let messages = numbered(messages);
            assert!(check(&messages, Policy::Request).is_empty());

            let mut list = messages.clone();
            for round in 0..2 {
                let what = format!("({head}|{tail}), {tail_rows} rows, round {round}");
                let mut helper = Scripted::new(0, |_, _| says(SUMMARY));
                let protect = settings(u32::try_from(first).expect("small"), tail_rows);
                let next = compressed(&list, &protect, Some(&mut helper), &request(4_096));
                assert!(
                    check(&next, Policy::Request).is_empty(),
                    "{what}:\n{}",
                    outline(&next)
                );
                assert_folds(&list, &next, &what);
                let newest = next.last().expect("a message");
                assert_eq!(
                    newest.identity().uid.as_deref(),
                    Some(&*uid(messages.len() - 1)),
                    "{what}"
                );
                list = next;
                // New turns, so that the second round meets the first summary in the middle.
                let from = list.len();
                list.push(build::assistant(&prose(from, 300)));
                list.push(build::user(&prose(from + 1, 300)));
                list.push(build::assistant(&prose(from + 2, 300)));
                list.push(build::user("the newest question"));
                let at = list.len() - 1;
                list[at] =
                    list[at].replaced_identity(messages[messages.len() - 1].identity().clone());
                if round == 0 {
                    let place = next_newest(&list);
                    list.remove(place);
                    list.insert(place, build::user("an older question"));
                }
            }
        }
    }
}

fn next_newest(list: &[Message]) -> usize {
    list.iter()
        .position(|m| m.text() == "the newest question")
        .expect("the older one")
}

/// Where a summary had to join a message, that message's own text comes first and whole, and it keeps its uid.
fn assert_folds(before: &[Message], after: &[Message], what: &str) {
    for joined in after
        .iter()
        .filter(|m| m.has(flags::SUMMARY) && m.identity().uid.is_some())
    {
        let own = before
            .iter()
            .find(|m| m.identity().uid == joined.identity().uid)
            .expect("a message of before");
        assert!(
            joined.text().starts_with(&*own.text()),
            "{what}: own text first"
        );
        assert_eq!(
            own.identity().absorbed,
            joined.identity().absorbed,
            "{what}: nothing persisted was folded in"
        );
    }
}

// case: 3
// contract: UID-5, UID-16
#[test]
fn a_summary_that_fits_neither_role_joins_its_neighbour_behind_the_neighbours_own_text() {
    // The head ends with the assistant, the tail starts with a user, and nothing cheaper is near.
    let mut messages = vec![
        build::user("start"),
        build::assistant("hello"),
        build::user("one"),
        build::assistant("two"),
    ];
    for n in 0..20 {
        messages.extend([
            build::user(&prose(n, 60)),
            build::assistant(&prose(n + 70, 2_000)),
        ]);
    }
    messages.extend([
        build::user("kept question"),
        build::assistant("kept answer"),
        build::user("newest"),
    ]);
    let messages = numbered(messages);
    let mut helper = Scripted::new(0, |_, _| says(SUMMARY));
    let next = compressed(
        &messages,
        &settings(2, 3),
        Some(&mut helper),
        &request(4_096),
    );
    assert!(
        check(&next, Policy::Request).is_empty(),
        "{}",
        outline(&next)
    );
    let carrier = next
        .iter()
        .find(|m| m.has(flags::SUMMARY))
        .expect("a carrier");
    let place = messages
        .iter()
        .position(|m| m.identity().uid == carrier.identity().uid)
        .unwrap_or_else(|| panic!("it joined no message:\n{}", outline(&next)));
    assert!(carrier.text().starts_with(&*messages[place].text()));
    assert!(carrier.text().contains("port the parser"));

    // The next pass takes both apart again: the words are a turn, the summary is the one before.
    let mut grown = next.clone();
    grown.pop();
    for n in 0..20 {
        grown.extend([
            build::user(&prose(n + 500, 60)),
            build::assistant(&prose(n + 570, 2_000)),
        ]);
    }
    grown.push(build::user("newest of all"));
    let mut helper = Scripted::new(0, |_, _| says(SUMMARY));
    let again = compressed(&grown, &settings(2, 3), Some(&mut helper), &request(4_096));
    assert!(
        check(&again, Policy::Request).is_empty(),
        "{}",
        outline(&again)
    );
    let asked = &helper.asked[0];
    assert!(
        asked.contains("<summary-so-far>\n## Goal\nport the parser"),
        "{asked}"
    );
    assert!(asked.contains("[USER] kept question\n"), "{asked}");
}

// case: 5
// contract: PASS-6
#[test]
fn the_system_prompt_is_one_first_and_the_same_after_five_rounds() {
    let text = build::system("You are Hermes. RULE-7: never push.");
    let parts = Message::parse(
        r#"{"role":"system","content":[{"type":"text","text":"You are Hermes."},{"type":"text","text":"RULE-7"}]}"#,
    )
    .expect("a message");
    for prompt in [Some(text), Some(parts), None] {
        let mut list: Vec<Message> = prompt.iter().cloned().collect();
        for n in 0..50 {
            list.extend([
                build::user(&prose(n, 40)),
                build::assistant(&prose(n + 60, 80)),
            ]);
        }
        for round in 0..5 {
            let next = compressed(&list, &Settings::default(), None, &request(8_192));
            assert!(next.len() < list.len(), "round {round}");
            assert_sound(&list, &next, &format!("round {round}"));
            list = next;
            let systems: Vec<&Message> = list.iter().filter(|m| m.role() == Role::System).collect();
            assert_eq!(systems.len(), usize::from(prompt.is_some()));
            assert_eq!(
                list.first().filter(|m| m.role() == Role::System),
                prompt.as_ref()
            );
            for n in 0..10 {
                let seed = round * 100 + n + 900;
                list.extend([
                    build::user(&prose(seed, 40)),
                    build::assistant(&prose(seed + 50, 80)),
                ]);
            }
        }
    }
}

// case: 6
#[test]
fn shortened_arguments_stay_json_and_broken_ones_stay_as_they_are() {
    let long = "quote \" and \\ back\nline 漢字 🎉 ".repeat(300);
    let quoted = serde_json::to_string(&long).expect("a text");
    let nested = format!(
        r#"{{"path":"n.md","content":{quoted},"deep":{{"more":{{"text":{quoted},"n":1.50}}}}}}"#
    );
    for arguments in [
        nested.as_str(),
        "",
        "null",
        "[1,2]",
        "{not json",
        &format!("{{not json {long}"),
    ] {
        // In the head, where long arguments are shortened.
        let mut messages = vec![build::system("s"), build::user("write it")];
        messages.extend(round("c1", "write_file", arguments, "ok"));
        messages.push(build::assistant("written"));
        for n in 0..30 {
            messages.extend([
                build::user(&prose(n, 60)),
                build::assistant(&prose(n + 80, 160)),
            ]);
        }
        let messages = numbered(messages);
        let next = compressed(&messages, &settings(3, 5), None, &request(8_192));
        assert_sound(&messages, &next, arguments.get(..20).unwrap_or(arguments));
        let call = next
            .iter()
            .find(|m| m.has(flags::TOOL_CALLS))
            .expect("the call stays");
        let shown = call.tool_calls()[0].arguments();
        if serde_json::from_str::<serde_json::Value>(arguments).is_ok() && !arguments.is_empty() {
            let value: serde_json::Value = serde_json::from_str(&shown).expect("still JSON");
            if arguments.len() > 1_000 {
                assert!(shown.len() < arguments.len() / 4);
                assert_eq!(value["path"], "n.md");
                assert_eq!(value["deep"]["more"]["n"].to_string(), "1.5");
                assert!(shown.contains("1.50"), "numbers keep their spelling");
                assert!(
                    value["content"]
                        .as_str()
                        .expect("a text")
                        .contains("characters left out")
                );
            }
        } else {
            assert_eq!(shown, arguments, "passed through byte for byte");
        }
        assert_eq!(
            call.identity(),
            messages[2].identity(),
            "the edit keeps the identity"
        );
    }
}

// case: 7
#[test]
fn empty_messages_are_no_trouble_and_call_messages_without_text_stay_so() {
    let blanks = [
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant","content":""}"#,
        r#"{"role":"assistant","content":"  \n"}"#,
        r#"{"role":"assistant","content":[]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":""}]}"#,
        r#"{"role":"assistant","content":null,"reasoning":"thinking…"}"#,
    ];
    let mut messages = vec![build::system("s")];
    for round_no in 0..6 {
        for (n, blank) in blanks.iter().enumerate() {
            messages.push(build::user(&prose(round_no * 10 + n, 60)));
            messages.push(Message::parse(blank).expect("a message"));
        }
        messages.push(build::user("run it"));
        messages.extend(round("c1", "run", "{}", ""));
        messages.push(build::calling(None, &[("c2", "run", "{}")]));
        messages.push(
            Message::parse(r#"{"role":"tool","tool_call_id":"c2","content":null}"#)
                .expect("a message"),
        );
        messages.push(build::assistant(&prose(round_no + 400, 80)));
    }
    let messages = numbered(messages);
    for tail in 3..12 {
        let next = compressed(&messages, &settings(3, tail), None, &request(2_048));
        assert!(next.len() < messages.len());
        assert_sound(&messages, &next, &format!("tail {tail}"));
        for kept in next.iter().filter(|m| m.identity().uid.is_some()) {
            let before = messages
                .iter()
                .find(|m| m.identity().uid == kept.identity().uid)
                .expect("of before");
            if before.is_blank() {
                assert_eq!(
                    kept.raw_content(),
                    before.raw_content(),
                    "null stays null, \"\" stays \"\""
                );
            }
        }
    }
}

// case: 10
#[test]
fn only_a_system_message_in_the_first_place_is_the_prompt() {
    for prompt in [false, true] {
        let mut messages = Vec::new();
        if prompt {
            messages.push(build::system("the prompt"));
        }
        for n in 0..30 {
            messages.extend([
                build::user(&prose(n, 40)),
                build::assistant(&prose(n + 40, 80)),
            ]);
            if n == 12 || n == 28 {
                messages.push(build::system("user was idle 10 min"));
            }
        }
        let messages = numbered(messages);
        let next = compressed(&messages, &Settings::default(), None, &request(4_096));
        assert!(next.len() < messages.len() / 2, "it makes progress");
        assert_sound(&messages, &next, "system in the middle");
        assert_eq!(
            next[0].role() == Role::System,
            prompt,
            "none is invented, none is moved to the front"
        );
        let text: String = next.iter().map(|m| m.text().into_owned()).collect();
        assert!(text.contains("user was idle"), "kept or summed up");
    }
}

// case: 11
// contract: PASS-6
#[test]
fn the_newest_question_stays_last_and_a_finished_talk_ends_with_its_answer() {
    for finished in [false, true] {
        for protect in [3, 20] {
            let mut messages = vec![build::user("task 1: rename x"), build::assistant("done")];
            for n in 0..80 {
                messages.extend([
                    build::user(&prose(n, 40)),
                    build::assistant(&prose(n + 90, 60)),
                ]);
            }
            messages.push(build::user("task 9: what is 2+2?"));
            if finished {
                messages.push(build::assistant("task 9 done: 4"));
            }
            let messages = numbered(messages);
            let newest = 162;
            let next = compressed(&messages, &settings(3, protect), None, &request(8_192));
            assert!(next.len() < messages.len());
            assert_sound(&messages, &next, "talk");
            let last_user = next
                .iter()
                .rposition(|m| m.role() == Role::User)
                .expect("a user message");
            assert_eq!(next[last_user], messages[newest], "verbatim, with its uid");
            assert_eq!(next.last(), messages.last(), "the summary is never last");
            let carrier = next
                .iter()
                .position(|m| m.has(flags::SUMMARY))
                .expect("a marked carrier");
            assert!(carrier < last_user);
        }
    }
}

// case: 11
#[test]
fn a_task_given_long_before_the_tail_stays_word_for_word_and_after_the_summary() {
    let task = format!("migrate the parser and report: {}", prose(1, 50));
    let mut messages = vec![
        build::system("s"),
        build::user("hi"),
        build::assistant("hello"),
        build::user(&task),
    ];
    for n in 0..120 {
        messages.extend(round(
            &format!("c{n}"),
            "read_file",
            &format!("{{\"path\":\"f{n}.rs\"}}"),
            &prose(n, 120),
        ));
    }
    let messages = numbered(messages);
    let mut list = messages.clone();
    for depth in 0..4 {
        let next = compressed(&list, &Settings::default(), None, &request(8_192));
        assert!(depth > 0 || next.len() < list.len());
        assert!(
            check(&next, Policy::Request).is_empty(),
            "{}",
            outline(&next)
        );
        let last_user = next
            .iter()
            .rposition(|m| m.role() == Role::User)
            .expect("a user message");
        assert_eq!(
            next[last_user],
            messages[3],
            "depth {depth}:\n{}",
            outline(&next)
        );
        list = next;
        for n in 0..60 {
            let id = format!("d{depth}_{n}");
            list.extend(round(
                &id,
                "read_file",
                &format!("{{\"path\":\"g{n}.rs\"}}"),
                &prose(n + 700, 120),
            ));
        }
    }
}

// case: 64
// contract: PASS-3
#[test]
fn what_stays_are_the_hosts_own_messages() {
    let messages = session(40);
    let next = compressed(
        &messages,
        &Settings::default(),
        None,
        &Request {
            target_tokens: None,
            ..request(65_536)
        },
    );
    let tail = next.iter().rev().take(4);
    for (kept, original) in tail.zip(messages.iter().rev()) {
        assert!(kept.same(original), "kept, not copied or written anew");
    }
    assert!(next[0].same(&messages[0]));
}
