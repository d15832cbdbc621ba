//! The slash commands, through a pipe.

use std::fs;

use hermes_tests::Behaviour;

use crate::support::Chat;

/// What the program prints for some lines, without the answers.
fn results(chat: &Chat, input: &str) -> Vec<String> {
    let said = chat.run(&[], input);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.err
            .lines()
            .all(|line| line.starts_with("warning: the window of other")),
        "{said:?}"
    );
    said.out
        .lines()
        .filter(|line| !line.starts_with("answer to"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn help_names_every_command_and_each_of_them_exists() {
    let chat = Chat::new();
    chat.echo();
    let help = results(&chat, "/help\n");
    for name in [
        "/compress",
        "/new",
        "/reset",
        "/resume",
        "/branch",
        "/rewind",
        "/model",
        "/status",
        "/tools",
        "/engine",
        "/export",
        "/help",
        "/quit",
    ] {
        assert!(help.iter().any(|line| line.starts_with(name)), "{name}");
        // None of them is unknown.
        let said = chat.run(&[], &format!("hello\n{name}\n"));
        assert!(!said.err.contains("there is no command"), "{said:?}");
        let _ = fs::remove_dir_all(chat.folder());
        fs::create_dir(chat.folder()).expect("a folder");
    }
}

#[test]
fn an_unknown_command_is_no_message() {
    let chat = Chat::new();
    chat.echo();
    let said = chat.run(&[], "/stauts\nhello\n");
    assert_eq!(said.out, "answer to: hello\n");
    assert_eq!(said.code, Some(1));
    assert!(
        said.err
            .starts_with("error: there is no command /stauts; did you mean /status?"),
        "{said:?}"
    );
    assert_eq!(chat.provider.requests().len(), 1);
}

#[test]
fn quit_ends_it_there() {
    let chat = Chat::new();
    chat.echo();
    let said = chat.run(&[], "one\n/quit\ntwo\n");
    assert_eq!(
        (said.out.as_str(), said.code),
        ("answer to: one\n", Some(0))
    );
    assert!(!chat.sessions()[0]["ended_at"].is_null());
}

#[test]
fn status_tools_and_model_show_what_is() {
    let chat = Chat::new();
    chat.echo();
    let lines = results(
        &chat,
        "hello\n/status\n/tools\n/model\n/model other\nagain\n/model\n",
    );
    let value = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {lines:?}"))
            .split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        value("session"),
        chat.sessions()[0]["id"].as_str().expect("an id")
    );
    assert_eq!(value("model"), "fake, a window of 128,000 tokens");
    assert_eq!(value("engine"), "compressor");
    assert_eq!(value("turns"), "1");
    assert_eq!(value("compressions"), "0");
    assert!(value("context").contains("compression at "), "{lines:?}");
    assert!(lines.contains(&"read_file".to_owned()) && lines.contains(&"search_files".to_owned()));
    assert!(
        lines.contains(&"fake".to_owned()) && lines.contains(&"other".to_owned()),
        "{lines:?}"
    );
    let models: Vec<String> = chat
        .provider
        .requests()
        .iter()
        .map(|request| request.json()["model"].as_str().unwrap_or("").to_owned())
        .collect();
    assert_eq!(models, ["fake", "other"]);
}

// contract: LIFE-2
// case: 47
#[test]
fn new_and_reset_end_a_session_and_begin_another() {
    let chat = Chat::with_diary();
    chat.echo();
    let said = chat.run(&[], "one\n/new\ntwo\n/reset\nthree\n");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(
        chat.story(),
        [
            "start 0", "turn 0", "end 0", "reset", "start 1", "turn 1", "end 1", "reset",
            "start 2", "turn 2", "end 2"
        ]
    );
    let ends: Vec<_> = chat
        .diary()
        .into_iter()
        .filter(|entry| entry["what"] == "end")
        .collect();
    for (end, text) in ends.iter().zip(["one", "two", "three"]) {
        let messages = end["messages"].as_array().expect("a list");
        let last = messages.last().expect("a message");
        assert_eq!(last["content"], format!("answer to: {text}"));
        assert!(
            messages.iter().any(|message| message["content"] == text),
            "{end}"
        );
    }
    assert_eq!(chat.sessions().len(), 3);
    assert!(
        chat.sessions()
            .iter()
            .all(|session| !session["ended_at"].is_null())
    );
}

// contract: LIFE-3
#[test]
fn resume_branch_and_rewind_tell_the_engine() {
    let chat = Chat::with_diary();
    chat.echo();
    chat.run(&[], "first\n");
    let id = chat.sessions()[0]["id"].as_str().expect("an id").to_owned();
    let said = chat.run(
        &[],
        &format!(
            "/resume\n/resume {}\nsecond\n/branch\nthird\n/rewind\n/rewind 9\nfourth\n",
            &id[..id.len() - 1]
        ),
    );
    // Only the rewind over more turns than there are fails.
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    assert!(
        said.out.contains(&id) && said.out.contains("Going on with session"),
        "{said:?}"
    );
    assert!(
        said.out.contains("Taken back") && said.out.contains("\"third\""),
        "{said:?}"
    );
    let texts = |id: &str| -> Vec<String> {
        chat.messages(id)
            .into_iter()
            .filter(|(role, _)| role == "user")
            .map(|(_, text)| text)
            .collect()
    };
    assert_eq!(texts(&id), ["first", "second"]);
    let branch = chat
        .sessions()
        .iter()
        .map(|session| session["id"].as_str().expect("an id").to_owned())
        .find(|other| *other != id && !texts(other).is_empty())
        .expect("a branch");
    assert_eq!(texts(&branch), ["first", "second", "fourth"]);
    let reasons: Vec<u64> = chat
        .diary()
        .iter()
        .filter(|entry| entry["what"] == "start")
        .filter_map(|entry| entry["reason"].as_u64())
        .collect();
    // New; new and resumed; branched; rewound.
    assert_eq!(reasons, [0, 0, 1, 2, 3]);
}

#[test]
fn the_engine_gets_its_own_commands() {
    let chat = Chat::with_diary();
    let said = chat.run(&[], "/engine\n/engine show 'two words'\n/diary again\n");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with("engine: diary\n"), "{said:?}");
    assert!(
        said.out
            .contains("the diary was told [\"show\",\"two words\"]\n"),
        "{said:?}"
    );
    assert!(
        said.out.contains("the diary was told [\"again\"]\n"),
        "{said:?}"
    );

    let chat = Chat::new();
    let said = chat.run(&[], "/engine do something\n");
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.starts_with("error: ") && said.err.contains("is not offered by this engine"),
        "{said:?}"
    );
}

// contract: PASS-9
#[test]
fn compress_says_what_it_did() {
    let chat = Chat::with_diary();
    chat.echo();
    let said = chat.run(&[], "one\n/compress the point\n");
    assert!(
        said.out
            .contains("Not compressed: a diary leaves nothing out"),
        "{said:?}"
    );
    assert!(
        chat.diary()
            .iter()
            .any(|entry| entry["what"] == "compress" && entry["reason"] == 4)
    );

    let chat = Chat::new();
    chat.provider
        .default(Behaviour::text(&"so many words were counted ".repeat(20)));
    let long: String = (0..40)
        .map(|n| format!("{n} {}\n", "many words ".repeat(40)))
        .collect();
    let said = chat.run(&[], &format!("{long}/compress the words\n/status\n"));
    assert!(said.out.contains("Compressed: "), "{said:?}");
    assert!(said.out.contains("compressions  1"), "{said:?}");
}

#[test]
fn an_export_is_what_import_takes_and_replaces_nothing() {
    let chat = Chat::new();
    chat.echo();
    let said = chat.run(&[], "/export early.jsonl\n");
    assert!(said.err.contains("nothing has been said"), "{said:?}");
    let said = chat.run(&[], "one\n/export out.jsonl\n/export out.jsonl\n/export\n");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    assert!(said.err.contains("out.jsonl exists already"), "{said:?}");
    let exported = fs::read_to_string(chat.folder().join("out.jsonl")).expect("a file");
    assert!(exported.contains("answer to: one"));
    let others = fs::read_dir(chat.folder()).expect("a folder").count();
    assert_eq!(others, 2, "and one with a name of its own");

    let other = Chat::new();
    let file = chat.folder().join("out.jsonl");
    let imported = other
        .home
        .run(&["sessions", "import", file.to_str().expect("text")]);
    assert_eq!(imported.status.code(), Some(0));
    assert_eq!(other.sessions().len(), 1);
}

// contract: PASS-10
#[test]
fn status_says_who_manages_the_context_while_an_engine_hangs() {
    let chat = Chat::with_diary().variable("DIARY_SLOW", "should_compress");
    chat.echo();
    let config = chat.provider.config(128_000);
    chat.home.config(&format!(
        "{config}context:\n  engine: diary\n  timeouts:\n    should_compress: 0.1\n"
    ));
    let said = chat.run(&[], "/status\nhello\n/status\n");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("answer to: hello"), "{said:?}");
    let managed: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.starts_with("managed by"))
        .collect();
    assert_eq!(managed.len(), 1, "only while it hangs: {said:?}");
    assert!(
        managed[0].contains("compressor: 'diary' cannot be asked")
            && managed[0].contains("should_compress was given up"),
        "{said:?}"
    );
    // The budget is this call's alone: a shorter one than its siblings' counts, too.
    assert!(
        format!("{}{}", said.out, said.err).contains("should_compress did not return within 0.1s")
            || format!("{}{}", said.out, said.err)
                .contains("should_compress did not return within 100ms"),
        "{said:?}"
    );
}
