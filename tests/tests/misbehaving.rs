//! Engines that misbehave in every slot, under an agent: the conversation has the answers it would have had with none.

use std::sync::{Arc, Mutex};

use hermes::agent::{AgentOptions, Host, HostOptions};
use hermes::config::HermesHome;
use hermes::engine::{TurnOutcome, Usage};
use hermes::provider::{Cancel, Delta, Failure, Finish, Provider, Reply};
use hermes::store::{Durability, StoreOptions};
use hermes_message::sequence::{self, Policy};
use hermes_message::{Message, Role, build};
use hermes_tests::{Compile, Home, built, workspace};
use serde_json::Value;

/// A model that repeats the newest user message, and in every third turn calls the engine's tool first if it is there.
#[derive(Debug, Default)]
struct Parrot {
    bodies: Mutex<Vec<String>>,
}

impl Provider for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }
    fn parameters(&self) -> &str {
        ""
    }
    fn send(
        &self,
        body: &str,
        _: &Cancel,
        _: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let value: Value = serde_json::from_str(body).expect("a JSON body");
        let messages: Vec<Message> = value["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .map(|message| Message::parse(&message.to_string()).expect("a message"))
            .collect();
        assert_eq!(sequence::check(&messages, Policy::Request), [], "{body}");
        let last = messages.last().expect("a message");
        let said = messages
            .iter()
            .rev()
            .find(|message| message.role() == Role::User)
            .expect("a user message")
            .text()
            .into_owned();
        let tool = value["tools"].as_array().and_then(|tools| {
            tools
                .iter()
                .find(|tool| tool["function"]["name"] == "panics_count")
        });
        let message = if tool.is_some() && last.role() == Role::User && said.contains("3:") {
            build::calling(None, &[("c1", "panics_count", "{}")])
        } else {
            build::assistant(&format!("I heard {said}"))
        };
        self.bodies.lock().expect("no panic").push(body.to_owned());
        let prompt = i64::try_from(body.len() / 4).unwrap_or(0);
        Ok(Reply {
            finish: if message.tool_calls().is_empty() {
                Finish::Stop
            } else {
                Finish::ToolCalls
            },
            message,
            usage: Some(Usage {
                prompt_tokens: Some(prompt),
                completion_tokens: Some(10),
                total_tokens: Some(prompt + 10),
                ..Usage::default()
            }),
            notes: Vec::new(),
        })
    }
    fn context_length(&self, _: &str) -> Option<u64> {
        None
    }
}

const TURNS: usize = 5;

fn said(turn: usize) -> String {
    format!(
        "question {turn}: {}",
        "a few words to fill the window ".repeat(10)
    )
}

/// Slots that are called while the engine is being made: with a fault there it may never come to serve.
const FIRST: [&str; 4] = ["state", "clone", "update_model", "create"];

/// [`talk`] with an engine that has a fault in one slot. It must be that engine that the conversation begins with.
fn talk_with(home: &Home, engine: &str, slot: &str, what: &str) -> (Vec<String>, Vec<String>) {
    let host = host(home, Arc::default());
    let fallback = host.fallback();
    assert!(
        fallback.is_none() || FIRST.contains(&slot),
        "{what}: {engine} does not serve: {fallback:?}"
    );
    drop(host);
    talk(home, what)
}

fn host(home: &Home, provider: Arc<Parrot>) -> Host {
    Host::open(HostOptions {
        home: HermesHome::at(home.path()),
        provider: Some(provider),
        directory: home.outside().to_owned(),
        store: Some(StoreOptions {
            durability: Durability::Off,
            ..StoreOptions::default()
        }),
        ..HostOptions::default()
    })
    .expect("a host")
}

/// Runs a conversation in this home: the answers, the warnings, and whether the store has everything.
fn talk(home: &Home, what: &str) -> (Vec<String>, Vec<String>) {
    let host = host(home, Arc::default());
    let mut warnings = host.take_warnings();
    let mut agent = host.agent(AgentOptions::default()).expect("an agent");
    let mut answers = Vec::new();
    for turn in 0..TURNS {
        let report = agent.turn(&said(turn), &mut |_| {});
        assert_eq!(
            report.outcome,
            TurnOutcome::Completed,
            "{what}: {:?}",
            report.error
        );
        answers.push(report.answer);
        warnings.extend(report.warnings);
    }
    let session = agent.session_id().to_owned();
    let live: Vec<String> = agent
        .messages()
        .iter()
        .map(|message| message.stored().to_string())
        .collect();
    agent.close("done");
    let store = host.store().expect("a store");
    let rows: Vec<String> = store
        .messages(&session, false)
        .expect("rows")
        .iter()
        .map(|row| row.message.stored().to_string())
        .collect();
    assert_eq!(rows, live, "{what}: the store has what the agent has");
    let all = store.messages(&session, true).expect("rows");
    for turn in 0..TURNS {
        let times = all
            .iter()
            .filter(|row| row.message.role() == Role::User && row.message.text() == said(turn))
            .filter_map(|row| row.message.identity().uid.clone())
            .collect::<std::collections::HashSet<_>>()
            .len();
        assert_eq!(times, 1, "{what}: turn {turn} is in the store once");
    }
    let report = store.check(false, &mut |_, _, _| {}).expect("checked");
    assert!(report.is_clean(), "{what}: {report:?}");
    (answers, warnings)
}

fn expected() -> Vec<String> {
    (0..TURNS)
        .map(|turn| format!("I heard {}", said(turn)))
        .collect()
}

fn config(home: &Home, engine: &str, window: u32, section: &str) {
    home.config(&format!(
        "model: {{default: parrot, context_length: {window}}}\n\
         context:\n  engine: {engine}\n  timeouts:\n    hooks: 0.3\n    state: 0.3\n    session: 0.3\n    tool_call: 0.3\n\
         compression: {{context_timeout_seconds: 0.3}}\n{section}"
    ));
}

const SLOTS: [&str; 15] = [
    "select_context",
    "turn_complete",
    "should_compress",
    "preflight",
    "update_from_response",
    "update_model",
    "session_start",
    "session_end",
    "session_reset",
    "pass_result",
    "tool_schemas",
    "tool_call",
    "state",
    "compress",
    "clone",
];

// contract: HOOK-2, SAFE-2, SAFE-4, TOOL-3, PASS-6, CLONE-4
// case: 33, 39
#[test]
fn a_panic_or_a_failure_in_any_slot_changes_no_answer() {
    // One home: the library is tried once.
    let home = Home::new();
    let _ = home
        .plugin("panics")
        .manifest("name: panics\nversion: 0.1.0\n")
        .library("libpanics.so", built().library("panics"));
    for action in ["panic", "fail"] {
        for slot in SLOTS {
            // A window in which the last turns need a pass.
            config(
                &home,
                "panics",
                1800,
                &format!("panics: {{{slot}: {action}}}\n"),
            );
            let what = format!("{action} in {slot}");
            let (answers, _) = talk_with(&home, "panics", slot, &what);
            assert_eq!(answers, expected(), "{what}");
        }
    }
}

// contract: HOOK-2, PASS-4, PASS-10, TOOL-3
// case: 34
#[test]
fn an_engine_that_sleeps_in_any_slot_is_left_behind() {
    // Side by side: each sleeps for itself.
    std::thread::scope(|scope| {
        for slot in SLOTS {
            scope.spawn(move || {
                let home = Home::new();
                let _ = home
                    .plugin("panics")
                    .manifest("name: panics\nversion: 0.1.0\n")
                    .library("libpanics.so", built().library("panics"));
                config(
                    &home,
                    "panics",
                    1800,
                    &format!("panics: {{{slot}: sleep}}\n"),
                );
                let what = format!("sleep in {slot}");
                let (answers, _) = talk(&home, &what);
                assert_eq!(answers, expected(), "{what}");
            });
        }
    });
}

// contract: HOOK-2, HOOK-4, PASS-6, TOOL-2
// case: 33
#[test]
fn junk_from_any_slot_changes_no_answer() {
    let library = Compile::source(workspace().join("tests/misfit/slots.c")).library();
    let home = Home::new();
    let _ = home
        .plugin("misfit")
        .manifest("name: misfit\nversion: 0.1.0\n")
        .library("libmisfit.so", &library);
    const JUNK: &[&str] = &[
        "a list",
        "a number",
        "backwards",
        "bad range",
        "cancelled",
        "echo",
        "error not utf-8",
        "fail once",
        "fail silently",
        "failure after half",
        "foreign uid twice",
        "garbage",
        "good after bad",
        "huge output",
        "huge range",
        "invalid utf-8",
        "long error",
        "more",
        "not a number",
        "nothing",
        "nothing in it",
        "null",
        "null push",
        "panic once",
        "small",
        "twice",
        "unavailable",
        "unchanged",
        "unknown error",
        "unknown list",
        "unknown status",
        "wrong sink",
    ];
    let fewer = &[
        "garbage",
        "unknown status",
        "error not utf-8",
        "not a number",
        "null",
        "small",
    ][..];
    for (slot, junk) in [
        ("select_context", JUNK),
        ("compress", JUNK),
        ("tool_schemas", JUNK),
        ("state", fewer),
        ("should_compress", fewer),
        ("update_from_response", fewer),
        ("session_start", fewer),
    ] {
        for does in junk {
            // A choice of any order, or of messages of its own, is an odd one and no junk.
            if slot == "select_context" && ["backwards", "foreign uid twice"].contains(does) {
                continue;
            }
            let section = format!("misfit: {{\"slot\": \"{slot}\", \"does\": \"{does}\"}}\n");
            config(&home, "misfit", 1800, &section);
            let what = format!("{does} from {slot}");
            let (answers, _) = talk_with(&home, "misfit", slot, &what);
            assert_eq!(answers, expected(), "{what}");
        }
    }
}
