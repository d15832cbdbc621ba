//! Another model answers in the main one's stead: the engine always knows the window that holds.

use std::fs;
use std::time::Duration;

use hermes::engine::TurnOutcome;
use hermes_tests::{Behaviour, FakeProvider, OverflowError};
use serde_json::Value;

use crate::support::{Setup, World, check_body, listen, talk, turn};

/// How long the main model is left alone here.
const REST: Duration = Duration::from_millis(1_500);

/// A fallback at a server, with more lines of its own.
fn fallback(server: &FakeProvider, model: &str, window: Option<u64>) -> String {
    let window = window.map(|window| format!("  context_length: {window}\n"));
    format!(
        "- provider: custom\n  model: {model}\n  base_url: {}\n{}",
        server.url(),
        window.unwrap_or_default()
    )
}

fn world(main: &FakeProvider, setup: Setup, fallbacks: &[String]) -> World {
    let list = format!("fallback_providers:\n{}", fallbacks.concat());
    let world = setup.http(main).also(&list).world();
    let rest = format!("HERMES_FALLBACK_SECONDS={}\n", REST.as_secs_f32());
    fs::write(world.home.path().join(".env"), rest).expect("written");
    world
}

/// A key that is not accepted: nothing is tried again.
fn refused() -> Behaviour {
    Behaviour::status(401, "no")
}

/// Every window in the diary of the agent's instance is that of the model that was told last; those models with their
/// windows, in order.
fn told(world: &World) -> Vec<(String, u64)> {
    let diary = world.diary();
    let instance = diary.instances().pop().expect("an agent's instance");
    let mut models: Vec<(String, u64)> = Vec::new();
    for line in diary.0.iter().filter(|line| line["instance"] == instance) {
        match line["slot"].as_str().expect("a slot") {
            "update_model" => models.push((
                line["model"].as_str().expect("a name").to_owned(),
                line["window"].as_u64().expect("a window"),
            )),
            "select_context" => {
                let now = models.last().expect("a model first").1;
                assert_eq!(line["budget"], now, "{line}");
            }
            _ => {}
        }
    }
    models
}

fn pairs(models: &[(&str, u64)]) -> Vec<(String, u64)> {
    let owned = models.iter();
    owned
        .map(|(name, window)| ((*name).to_owned(), *window))
        .collect()
}

// contract: ENG-9, LIFE-3, HOOK-7, HOOK-13, UID-9
#[test]
fn the_engine_is_told_who_answers_and_told_back() {
    let (main, spare) = (FakeProvider::start(), FakeProvider::start());
    spare.default(Behaviour::text("from the spare"));
    let list = [fallback(&spare, "second", Some(50_000))];
    let world = world(&main, Setup::witness("select: none"), &list);
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 2, 10);
    main.default(refused());
    let (report, heard) = listen(&mut agent, "who is there?");
    assert_eq!(report.answer, "from the spare", "{report:?}");
    assert_eq!(heard.instead, ["test-model→second"]);
    assert_eq!(heard.again, 0);
    assert_eq!(
        told(&world),
        pairs(&[("test-model", 100_000), ("second", 50_000)])
    );
    let status = agent.status();
    assert_eq!((&*status.model, status.context_length), ("second", 50_000));
    assert_eq!(status.in_place_of.as_deref(), Some("test-model"));
    assert_eq!(
        status.state.context_length, 50_000,
        "the engine shows it, too"
    );
    // The request is the one that the main model would have got, but for its name.
    let (asked, instead) = (
        main.requests().pop().unwrap(),
        spare.requests().pop().unwrap(),
    );
    check_body(instead.text());
    assert_eq!(
        asked
            .text()
            .replace("\"model\":\"test-model\"", "\"model\":\"second\""),
        instead.text()
    );
    // A session that begins meanwhile, and a child, begin with the window that holds.
    agent.new_session();
    assert_eq!(agent.status().context_length, 50_000);
    let child = agent.child(crate::support::options()).expect("a child");
    assert_eq!(child.status().model, "second");
    drop(child);
    world.forget();
    // The main model has its turn again, and the engine knows before it is asked anything.
    std::thread::sleep(REST + Duration::from_millis(200));
    main.default(Behaviour::text("here I am"));
    let (report, heard) = listen(&mut agent, "and now?");
    assert_eq!(report.answer, "here I am", "{report:?}");
    assert!(
        heard.instead.is_empty() && heard.warnings.is_empty(),
        "{heard:?}"
    );
    let slots: Vec<Value> = world.diary().0;
    let first = slots
        .iter()
        // The child may take its time to go.
        .find(|line| !["state", "destroy"].contains(&line["slot"].as_str().unwrap_or_default()))
        .expect("a call");
    assert_eq!(
        (&first["slot"], &first["window"]),
        (&"update_model".into(), &100_000.into()),
        "{slots:#?}"
    );
    let status = agent.status();
    assert_eq!(
        (&*status.model, status.context_length),
        ("test-model", 100_000)
    );
    assert_eq!(status.in_place_of, None);
    assert_eq!(spare.requests().len(), 1);
    world.check(&agent);
}

// contract: ENG-9, PASS-9
#[test]
fn what_a_stand_in_takes_says_nothing_of_the_main_model() {
    let (main, spare) = (FakeProvider::start(), FakeProvider::start());
    let list = [fallback(&spare, "second", Some(90_000))];
    let world = world(&main, Setup::witness("tail: 1"), &list);
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 6, 400);
    main.default(refused());
    spare.push(Behaviour::overflow(OverflowError::OpenAi, 2_000, 5_000));
    let (report, heard) = listen(&mut agent, "does it fit?");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    assert_eq!(spare.requests().len(), 2, "refused, and again after a pass");
    assert_eq!(report.compressions, 1);
    let about: Vec<_> = heard
        .warnings
        .iter()
        .filter(|text| text.contains("context_length"))
        .collect();
    assert_eq!(about.len(), 1, "{heard:?}");
    assert!(
        about[0].contains("second takes 2000 tokens, not 90000")
            && about[0].contains("`fallback_providers.0.context_length: 2000`")
            && !about[0].contains("model.context_length"),
        "{about:?}"
    );
    assert_eq!(agent.status().context_length, 2_000);
    std::thread::sleep(REST + Duration::from_millis(200));
    main.default(Behaviour::text("here I am"));
    assert_eq!(turn(&mut agent, "and now?").answer, "here I am");
    assert_eq!(agent.status().context_length, 100_000);
    // What was learnt of the stand-in holds the next time.
    main.default(refused());
    assert_eq!(turn(&mut agent, "again").outcome, TurnOutcome::Completed);
    let expected = [
        ("test-model", 100_000),
        ("second", 90_000),
        ("second", 2_000),
        ("test-model", 100_000),
        ("second", 2_000),
    ];
    assert_eq!(told(&world), pairs(&expected));
    world.check(&agent);
}

// contract: ENG-9, PASS-9
#[test]
fn a_long_request_goes_to_the_stand_in_that_takes_it_and_is_shortened_only_where_none_does() {
    let (main, small, large) = (
        FakeProvider::start(),
        FakeProvider::start(),
        FakeProvider::start(),
    );
    small.default(Behaviour::text("small"));
    large.default(Behaviour::text("large"));
    large.models(&[("l", 60_000)]);
    let list = [
        fallback(&small, "s", Some(2_000)),
        // Its window is what its server says.
        fallback(&large, "l", None),
    ];
    let world = world(&main, Setup::witness("tail: 1"), &list);
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 1, 5);
    // A short one: the first in the list.
    main.default(refused());
    assert_eq!(turn(&mut agent, "short").answer, "small");
    // It grows: the next one takes it, and nothing is lost.
    let long = "word ".repeat(4_000);
    let report = turn(&mut agent, &long);
    assert_eq!(
        (&*report.answer, report.compressions),
        ("large", 0),
        "{report:?}"
    );
    assert_eq!(small.requests().len(), 1);
    assert_eq!(
        told(&world),
        pairs(&[("test-model", 100_000), ("s", 2_000), ("l", 60_000)])
    );
    // And it stays with that one.
    assert_eq!(turn(&mut agent, "on").answer, "large");
    // Only when that one fails, too, a pass makes it fit the first.
    large.default(refused());
    let (report, heard) = listen(&mut agent, "still there?");
    assert_eq!(
        (&*report.answer, report.compressions),
        ("small", 1),
        "{report:?}"
    );
    assert_eq!(heard.instead, ["l→s"]);
    let sent = small.requests().pop().expect("a request");
    assert!(sent.text().len() / 4 < 2_000, "{}", sent.text().len());
    check_body(sent.text());
    world.check(&agent);
}

// contract: PASS-9
#[test]
fn an_overflow_of_a_stand_in_asks_a_larger_one_first() {
    let (main, first, second) = (
        FakeProvider::start(),
        FakeProvider::start(),
        FakeProvider::start(),
    );
    second.default(Behaviour::text("second"));
    let list = [
        fallback(&first, "a", Some(90_000)),
        fallback(&second, "b", Some(90_000)),
    ];
    for kind in [OverflowError::OpenAi, OverflowError::LmStudio] {
        let world = world(&main, Setup::witness("tail: 1"), &list);
        main.default(Behaviour::text("fine"));
        let (_host, mut agent) = world.agent();
        talk(&mut agent, 6, 400);
        main.default(refused());
        first.default(Behaviour::overflow(kind, 2_000, 5_000));
        let (report, heard) = listen(&mut agent, "does it fit?");
        assert_eq!(
            (&*report.answer, report.compressions),
            ("second", 0),
            "{kind:?}: {report:?}"
        );
        assert_eq!(heard.instead, ["test-model→a", "a→b"]);
        assert_eq!(agent.status().context_length, 90_000);
        // The next request does not try the one that is too small again.
        let before = first.requests().len();
        assert_eq!(turn(&mut agent, "on").answer, "second");
        assert_eq!(first.requests().len(), before);
        world.check(&agent);
    }
}

// contract: LIFE-3, ENG-9
#[test]
fn a_model_that_the_user_chooses_is_asked_itself() {
    let (main, spare) = (FakeProvider::start(), FakeProvider::start());
    spare.default(Behaviour::text("from the spare"));
    main.models(&[("chosen", 40_000)]);
    let list = [fallback(&spare, "second", Some(50_000))];
    let world = world(&main, Setup::witness(""), &list);
    let (_host, mut agent) = world.agent();
    main.push(refused());
    main.default(Behaviour::text("chosen"));
    assert_eq!(turn(&mut agent, "hello").answer, "from the spare");
    agent.switch_model("chosen");
    assert_eq!(turn(&mut agent, "hello").answer, "chosen");
    assert_eq!(
        told(&world),
        pairs(&[
            ("test-model", 100_000),
            ("second", 50_000),
            ("chosen", 40_000)
        ])
    );
    world.check(&agent);
}
