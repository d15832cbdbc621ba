//! Engines that keep failing, in every slot that a conversation calls.

use hermes::engine::TurnOutcome;

use crate::script::Say;
use crate::support::{Setup, listen, messages_of, turn};

const SLOTS: [&str; 8] = [
    "select_context",
    "turn_complete",
    "update_from_response",
    "should_compress",
    "preflight",
    "session_start",
    "update_model",
    "tool_schemas",
];

// contract: SAFE-4, SAFE-2, HOOK-2
// case: 52
#[test]
fn three_failures_in_a_row_take_an_engine_out_and_the_user_hears_of_it_once() {
    for (slot, how) in SLOTS
        .iter()
        .flat_map(|slot| [(slot, "fail"), (slot, "panic")])
    {
        let world = Setup::witness(&format!("{how}:\n  {slot}: true")).world();
        let host = world.host();
        let mut agent = host.agent(crate::support::options()).unwrap();
        let mut warnings = agent.take_warnings();
        for number in 0..5 {
            let (report, heard) = listen(&mut agent, &format!("question {number}"));
            assert_eq!(report.outcome, TurnOutcome::Completed, "{slot} {how}");
            assert_eq!(report.answer, format!("answer {}", number + 1));
            warnings.extend(heard.warnings);
        }
        world.check(&agent);
        let out: Vec<_> = warnings
            .iter()
            .filter(|text| text.contains("was taken out"))
            .collect();
        // A start or a model comes once a session only, so their failures are no row.
        let once = matches!(*slot, "session_start" | "update_model" | "tool_schemas");
        if once {
            assert!(out.len() <= 1, "{slot} {how}: {warnings:#?}");
            assert!(!warnings.is_empty(), "{slot} {how}");
            continue;
        }
        assert_eq!(out.len(), 1, "{slot} {how}: {warnings:#?}");
        assert!(
            out[0].contains("A new session tries 'witness' again"),
            "{out:?}"
        );
        assert_eq!(agent.engine(), "compressor", "{slot} {how}");
        let (wanted, why) = agent.status().fallback.unwrap();
        assert_eq!(wanted, "witness");
        assert!(why.contains(slot) || !why.is_empty(), "{why}");
        // Other agents of the same engine are untouched.
        let mut other = host.agent(crate::support::options()).unwrap();
        if !once {
            assert_eq!(other.engine(), "witness", "{slot} {how}");
        }
        world.script.cut();
        assert_eq!(
            turn(&mut other, "and here?").outcome,
            TurnOutcome::Completed
        );
    }
}

// contract: SAFE-4, HOOK-4
#[test]
fn answers_that_cannot_be_used_count_as_failures_too() {
    for select in ["empty", "junk"] {
        let world = Setup::witness(&format!("select: {select}")).world();
        let (_host, mut agent) = world.agent();
        for _ in 0..3 {
            assert_eq!(agent.engine(), "witness", "{select}");
            turn(&mut agent, "hello");
        }
        assert_eq!(agent.engine(), "compressor", "{select}");
        world.check(&agent);
    }
}

// contract: SAFE-4, SAFE-2, HOOK-2
#[test]
fn the_conversation_is_what_it_would_have_been_without_the_engine() {
    let talk = |setup: Setup| {
        let world = setup.world();
        let (_host, mut agent) = world.agent();
        world.script.say([
            Say::Text("one".to_owned()),
            Say::Calls(vec![("c", "nobody", "{}")]),
        ]);
        for number in 0..6 {
            turn(&mut agent, &format!("question {number}"));
        }
        world.check(&agent);
        let list = messages_of(&world.script.last());
        list.iter()
            .map(|message| message.stored().to_string())
            .collect::<Vec<_>>()
    };
    let expected = talk(Setup::engine("newest"));
    for slot in SLOTS {
        for how in ["fail", "panic"] {
            assert_eq!(
                talk(Setup::witness(&format!("{how}:\n  {slot}: true"))),
                expected,
                "{slot} {how}"
            );
        }
    }
}
