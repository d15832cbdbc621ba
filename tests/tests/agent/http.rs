//! A real server that misbehaves: no message is lost, none comes twice, and the next request is valid.

use hermes::agent::Agent;
use hermes::context::Outcome;
use hermes::engine::TurnOutcome;
use hermes_tests::{Behaviour, FakeProvider, OverflowError};
use serde_json::json;

use crate::support::{Setup, World, check_body, listen, options, own_uids, talk, texts, turn};

const TOOL: &str = r#"tools: [{"name": "note"}]"#;

/// Misbehaviours by name.
type Kinds<const N: usize> = [(&'static str, fn() -> Behaviour); N];

/// A conversation over HTTP with two good turns behind it.
fn begun(provider: &FakeProvider, setup: Setup) -> (World, hermes::agent::Host, Agent) {
    provider.default(Behaviour::text("all is well"));
    let world = setup.http(provider).world();
    let (host, mut agent) = world.agent();
    talk(&mut agent, 2, 10);
    (world, host, agent)
}

/// What must hold after every misbehaviour: the turn's question is there once, and the next turn goes well.
fn goes_on(provider: &FakeProvider, world: &World, agent: &mut Agent, question: &str, what: &str) {
    let asked = |list: Vec<String>| list.iter().filter(|text| text.contains(question)).count();
    assert_eq!(asked(texts(agent.messages())), 1, "{what}");
    world.check(agent);
    let report = turn(agent, "and on we go");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{what}: {report:?}");
    assert_eq!(report.answer, "all is well", "{what}");
    world.check(agent);
    for request in provider.requests() {
        check_body(request.text());
        assert!(!request.text().contains("message_uid"), "{what}");
    }
    let last = provider.requests().pop().expect("a request");
    assert_eq!(asked(vec![last.text().to_owned()]), 1, "{what}");
    // And it is what another program finds.
    let session = agent.session_id().to_owned();
    let rows = world.store().messages(&session, false).unwrap();
    assert_eq!(rows.len(), agent.messages().len(), "{what}");
}

// contract: HOOK-7, HOOK-10, UID-9, UID-4, PASS-9
#[test]
fn what_passes_by_itself_is_asked_again_and_the_engine_chooses_anew() {
    let kinds: Kinds<7> = [
        ("429", || {
            Behaviour::status(429, "slow down").header("Retry-After", "0")
        }),
        ("500", || {
            Behaviour::status(500, "oops").header("Retry-After", "0")
        }),
        ("reset", || {
            Behaviour::text("half an answer")
                .in_portions(4)
                .reset_after(2)
        }),
        ("closed", || {
            Behaviour::text("half an answer")
                .in_portions(4)
                .close_after(2)
        }),
        ("half an event", || {
            Behaviour::text("half an answer")
                .in_portions(4)
                .half_event_after(2)
        }),
        ("empty", Behaviour::empty),
        ("error in the stream", || {
            Behaviour::text("half an answer")
                .in_portions(4)
                .error_after(1, "overloaded")
        }),
    ];
    std::thread::scope(|scope| {
        for (what, behaviour) in kinds {
            scope.spawn(move || {
                let provider = FakeProvider::start();
                let (world, _host, mut agent) = begun(&provider, Setup::witness("select: all"));
                world.forget();
                provider.push(behaviour());
                let report = turn(&mut agent, "the question at hand");
                assert_eq!(report.outcome, TurnOutcome::Completed, "{what}: {report:?}");
                assert_eq!(
                    report.answer, "all is well",
                    "{what}: nothing of the broken one"
                );
                assert_eq!(report.api_calls, 2, "{what}");
                let diary = world.diary();
                let attempts: Vec<_> = diary
                    .of("select_context")
                    .iter()
                    .map(|l| l["attempt"].clone())
                    .collect();
                assert_eq!(attempts, [json!(0), json!(1)], "{what}");
                assert_eq!(diary.count("turn_complete"), 1, "{what}");
                let requests = provider.requests();
                assert_eq!(
                    requests[2].body(),
                    requests[3].body(),
                    "{what}: the same bytes"
                );
                goes_on(&provider, &world, &mut agent, "the question at hand", what);
            });
        }
    });
}

// contract: HOOK-10, HOOK-8
#[test]
fn what_does_not_pass_ends_the_turn_with_a_sentence_and_a_whole_session() {
    let kinds: Kinds<3> = [
        ("401", || Behaviour::status(401, "no such key")),
        ("404", || Behaviour::status(404, "no such model")),
        ("400", || {
            Behaviour::status(400, r#"{"error":{"message":"bad request"}}"#)
        }),
    ];
    for (what, behaviour) in kinds {
        let provider = FakeProvider::start();
        let (world, _host, mut agent) = begun(&provider, Setup::witness(""));
        provider.push(behaviour());
        let report = turn(&mut agent, "the question at hand");
        assert_eq!(report.outcome, TurnOutcome::Failed, "{what}");
        let error = report.error.expect("a sentence");
        assert!(!error.contains("fake-key") && error.len() > 10, "{error}");
        let diary = world.diary();
        let line = *diary.of("turn_complete").last().unwrap();
        assert_eq!(
            (&line["outcome"], &line["usage"]),
            (&json!("Failed"), &json!(null))
        );
        goes_on(&provider, &world, &mut agent, "the question at hand", what);
    }
}

// contract: PASS-9, LIFE-5
#[test]
fn every_way_to_say_too_long_leads_to_a_pass_and_an_answer() {
    std::thread::scope(|scope| {
        for kind in OverflowError::ALL {
            scope.spawn(move || {
                let provider = FakeProvider::start();
                let (world, _host, mut agent) = begun(&provider, Setup::witness("tail: 1"));
                world.forget();
                provider.push(Behaviour::overflow(*kind, 4_000, 5_000));
                let report = turn(&mut agent, "the question at hand");
                assert_eq!(
                    report.outcome,
                    TurnOutcome::Completed,
                    "{kind:?}: {report:?}"
                );
                assert_eq!(report.compressions, 1, "{kind:?}");
                let diary = world.diary();
                assert_eq!(diary.of("compress")[0]["trigger"], "Overflow", "{kind:?}");
                let window = agent.status().context_length;
                let learnt = window == 4_000 || (!kind.names_figures() && window == 100_000);
                assert!(learnt, "{kind:?}: {window}");
                goes_on(
                    &provider,
                    &world,
                    &mut agent,
                    "the question at hand",
                    &format!("{kind:?}"),
                );
            });
        }
    });
}

// contract: UID-8, UID-12, UID-20, TOOL-3
#[test]
fn calls_with_equal_ids_or_half_arguments_are_answered_each() {
    let provider = FakeProvider::start();
    let (world, _host, mut agent) = begun(&provider, Setup::witness(TOOL));
    provider.push(Behaviour::calls(&[
        ("c", "note", "{}"),
        ("c", "note", r#"{"q":1}"#),
    ]));
    let report = turn(&mut agent, "the same id twice");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    assert_eq!(world.diary().count("tool_call"), 2);
    goes_on(
        &provider,
        &world,
        &mut agent,
        "the same id twice",
        "equal ids",
    );

    provider.push(Behaviour::calls(&[("d", "note", r#"{"q": "le"#)]));
    let report = turn(&mut agent, "half the arguments");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    goes_on(
        &provider,
        &world,
        &mut agent,
        "half the arguments",
        "half arguments",
    );
    assert_eq!(
        world.diary().count("tool_call"),
        2,
        "no engine is bothered with it"
    );

    provider.push(Behaviour::calls(&[("", "note", "{}")]));
    let report = turn(&mut agent, "no id at all");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    goes_on(&provider, &world, &mut agent, "no id at all", "no id");
}

// contract: ENG-2, HOOK-8
#[test]
fn usage_is_what_the_provider_says_or_else_an_estimate() {
    let provider = FakeProvider::start();
    let (world, _host, mut agent) = begun(&provider, Setup::witness(""));
    world.forget();
    provider.push(
        Behaviour::text("one")
            .usage(json!({"prompt_tokens": 1234, "completion_tokens": 5, "total_tokens": 1239})),
    );
    turn(&mut agent, "with usage");
    let diary = world.diary();
    let usage = diary.of("update_from_response")[0];
    assert_eq!(
        (&usage["prompt"], &usage["total"]),
        (&json!(1234), &json!(1239))
    );
    assert_eq!(diary.of("turn_complete")[0]["usage"]["prompt"], 1234);
    assert_eq!(agent.status().state.last_prompt_tokens, 1234);
    provider.push(Behaviour::text("two").without_usage());
    let report = turn(&mut agent, "without");
    assert_eq!(report.outcome, TurnOutcome::Completed);
    let diary = world.diary();
    assert_eq!(diary.count("update_from_response"), 2, "after every call");
    assert!(
        diary.of("update_from_response")[1]["prompt"]
            .as_u64()
            .unwrap()
            > 0
    );
    goes_on(&provider, &world, &mut agent, "without", "no usage");
}

// contract: HOOK-10, LIFE-4
#[test]
fn an_interrupt_keeps_what_arrived_and_frees_the_turn_at_once() {
    let provider = FakeProvider::start();
    let (world, _host, mut agent) = begun(&provider, Setup::witness(""));
    provider.push(
        Behaviour::text("this is the beginning")
            .in_portions(5)
            .stall_after(3),
    );
    let interrupt = agent.interrupt();
    let heard = std::sync::atomic::AtomicBool::new(false);
    let begun = std::time::Instant::now();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !heard.load(std::sync::atomic::Ordering::SeqCst) {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            interrupt.interrupt();
        });
        agent.turn("the question at hand", &mut |event| {
            if matches!(event, hermes::agent::Event::Text(_)) {
                heard.store(true, std::sync::atomic::Ordering::SeqCst);
            }
        })
    });
    assert_eq!(report.outcome, TurnOutcome::Interrupted);
    // The server would keep it waiting for minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(60));
    assert!(
        !report.answer.is_empty() && "this is the beginning".starts_with(&report.answer),
        "{report:?}"
    );
    goes_on(
        &provider,
        &world,
        &mut agent,
        "the question at hand",
        "interrupt",
    );
}

// contract: PASS-6, PASS-8
// case: 28
#[test]
fn a_helper_that_writes_no_summary_changes_nothing() {
    let bad: Kinds<7> = [
        ("empty", || Behaviour::text("")),
        ("blank", || Behaviour::text("   \n")),
        ("only thinking", || Behaviour::empty().thinking("hm")),
        ("an empty object", || Behaviour::body("{}")),
        ("500", || {
            Behaviour::status(500, "oops").header("Retry-After", "0")
        }),
        ("closed", || {
            Behaviour::text("## Goals\nsome")
                .in_portions(4)
                .close_after(1)
        }),
        ("refusal", || Behaviour::text("I can't help with that.")),
    ];
    std::thread::scope(|scope| {
        for (what, behaviour) in bad {
            scope.spawn(move || {
                let provider = FakeProvider::start();
                // Where the helper cannot be had at all the stock settings do without one, and say so.
                let strict = matches!(what, "500" | "closed");
                let setup = Setup::engine("compressor").compression(&format!(
                    "abort_on_summary_failure: {strict}
protect_last_n: 2
protect_first_n: 1"
                ));
                let world = setup.http(&provider).world();
                provider.default(Behaviour::by(move |request| {
                    if request.text().contains("You compress the earlier part")
                        || request.text().contains("Summarise this")
                    {
                        behaviour()
                    } else {
                        Behaviour::text("all is well")
                    }
                }));
                let host = world.host();
                let mut agent = host.agent(options()).unwrap();
                talk(&mut agent, 20, 60);
                let session = agent.session_id().to_owned();
                let before = (
                    own_uids(agent.messages()),
                    world.store().messages(&session, true).unwrap(),
                );
                let requests = provider.requests().len();
                let outcome = agent.compress(None, &mut |_| {});
                assert!(
                    provider.requests().len() > requests,
                    "{what}: the helper was asked"
                );
                assert!(
                    !matches!(outcome, Outcome::Committed { .. }),
                    "{what}: {outcome:?}"
                );
                let after = (
                    own_uids(agent.messages()),
                    world.store().messages(&session, true).unwrap(),
                );
                assert_eq!(before, after, "{what}");
                assert_eq!(agent.status().state.compression_count, 0, "{what}");
                // By hand at once again; and with a helper that works it works.
                provider.default(Behaviour::text("all is well"));
                let (report, _) = listen(&mut agent, "go on");
                assert_eq!(report.outcome, TurnOutcome::Completed, "{what}");
                world.check(&agent);
            });
        }
    });
}
