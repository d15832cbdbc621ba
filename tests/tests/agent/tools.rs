//! The engine's tools under the real runtime.

use std::sync::{Arc, Mutex};

use hermes::agent::AgentOptions;
use hermes::agent::tools::HostTool;
use hermes::engine::TurnOutcome;
use serde_json::{Value, json};

use crate::script::Say;
use crate::support::{Setup, World, options, own_uids, tools_of, turn, uids};

const GREP: &str =
    r#"{"name": "lcm_grep", "description": "Greps", "parameters": {"type": "object"}}"#;

fn good() -> String {
    format!(r#"tools: [{GREP}, {{"name": "lcm_more", "description": "More"}}]"#)
}

/// Lets the model call `name` and gives what came back.
fn call(
    world: &World,
    agent: &mut hermes::agent::Agent,
    name: &'static str,
    arguments: &'static str,
) -> Value {
    world
        .script
        .say([Say::Calls(vec![("call-1", name, arguments)])]);
    let report = turn(agent, "use it");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    let results = agent.messages();
    let result = results[results.len() - 2].text().into_owned();
    world.check(agent);
    serde_json::from_str(&result).unwrap_or_else(|_| panic!("no JSON: {result}"))
}

// contract: TOOL-1, ENG-10, ENG-11
#[test]
fn schemas_are_offered_wrapped_and_calls_reach_the_agents_own_instance() {
    let world = Setup::witness(&good()).world();
    let (host, mut agent) = world.agent();
    let mut other = host.agent(options()).unwrap();
    let sessions = [agent.session_id().to_owned(), other.session_id().to_owned()];
    let instances = world.diary().instances();
    for (number, agent) in [&mut agent, &mut other].into_iter().enumerate() {
        world.script.cut();
        let result = call(&world, agent, "lcm_grep", r#"{"q":"left"}"#);
        assert_eq!(result["instance"], instances[number]);
        assert_eq!(result["session"], sessions[number]);
    }
    let tools = tools_of(&world.script.last());
    assert_eq!(
        tools,
        r#"[{"type":"function","function":{"name":"lcm_grep","description":"Greps","parameters":{"type":"object"}}},{"type":"function","function":{"name":"lcm_more","description":"More","parameters":{"type":"object","properties":{}}}}]"#
    );
    let diary = world.diary();
    let line = diary.of("tool_call")[0];
    assert_eq!(
        (&line["name"], &line["arguments"]),
        (&json!("lcm_grep"), &json!(r#"{"q":"left"}"#))
    );
    assert_eq!(line["id"], "call-1");
    assert_eq!(
        uids(&line["messages"]),
        own_uids(&agent.messages()[..2]),
        "up to the call itself"
    );
}

// contract: TOOL-2, ENG-10
// case: 45
#[test]
fn what_no_provider_would_take_is_left_out_one_by_one_and_the_rest_is_there() {
    let long = "n".repeat(70);
    let huge = "x".repeat(2 << 20);
    let list = format!(
        r#"tools: [{GREP}, {GREP}, {{"name": ""}}, {{"name": "bad name!"}}, {{"name": "{long}"}}, {{"name": "none", "parameters": null}}, {{"name": "huge", "description": "{huge}"}}, 7, {{"name": "list", "parameters": []}}, {{"name": "last"}}]"#
    );
    let world = Setup::witness(&list).world();
    let (_host, mut agent) = world.agent();
    assert_eq!(agent.tool_names(), ["lcm_grep", "none", "last"]);
    let report = turn(&mut agent, "hello");
    assert_eq!(report.outcome, TurnOutcome::Completed);
    let left_out = report
        .warnings
        .iter()
        .filter(|w| w.contains("is left out"))
        .count();
    assert_eq!(left_out, 6, "{:#?}", report.warnings);
    assert!(
        report.warnings.iter().all(|w| w.len() < 400),
        "no warning repeats the schema"
    );
    let names: Vec<Value> = serde_json::from_str::<Value>(&tools_of(&world.script.last()))
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].clone())
        .collect();
    assert_eq!(names, ["lcm_grep", "none", "last"]);
    assert_eq!(
        call(&world, &mut agent, "lcm_grep", "{}")["session"],
        agent.session_id()
    );
}

// contract: TOOL-2
// case: 45
#[test]
fn a_tool_of_the_hosts_keeps_its_name() {
    let own = hermes::agent::tools::built_in();
    let Some(own) = own.first() else { return };
    let schema: Value = serde_json::from_str(own.schema()).unwrap();
    let name = schema["name"].as_str().unwrap().to_owned();
    let world = Setup::witness(&format!(r#"tools: [{{"name": "{name}"}}, {GREP}]"#)).world();
    let host = world.host();
    let mut agent = host
        .agent(AgentOptions {
            tools: true,
            ..options()
        })
        .unwrap();
    let names = agent.tool_names();
    assert_eq!(
        names.iter().filter(|other| **other == name).count(),
        1,
        "{names:?}"
    );
    assert_eq!(names.last().unwrap(), "lcm_grep");
    world
        .script
        .say([Say::Message(hermes_message::build::calling(
            None,
            &[("c", &name, "{}")],
        ))]);
    turn(&mut agent, "use it");
    assert_eq!(
        world.diary().count("tool_call"),
        0,
        "the host's own answers"
    );
    world.check(&agent);
}

// contract: TOOL-2, TOOL-3
// case: 45
#[test]
fn an_engine_whose_schemas_cannot_be_had_does_not_keep_the_agent_from_starting() {
    for settings in [
        "tools: '{not json'",
        "tools: '{}'",
        "tools: '[1'",
        "fail:\n  tool_schemas: true",
        "panic:\n  tool_schemas: true",
    ] {
        let world = Setup::witness(settings).world();
        let (_host, mut agent) = world.agent();
        assert_eq!(agent.tool_names(), Vec::<String>::new(), "{settings}");
        let report = turn(&mut agent, "hello");
        assert_eq!(report.outcome, TurnOutcome::Completed, "{settings}");
        assert!(
            report
                .warnings
                .iter()
                .any(|warning| warning.contains("tool_schemas")),
            "{settings}: {:?}",
            report.warnings
        );
        assert!(
            !world.script.last().contains("\"tools\""),
            "an empty list is an error to some"
        );
        world.check(&agent);
    }
}

// contract: TOOL-3, ENG-11
#[test]
fn whatever_a_tool_does_its_result_is_json_and_the_conversation_goes_on() {
    let names = ["good", "bad", "mute", "mad"];
    let list: Vec<String> = names
        .iter()
        .map(|name| format!(r#"{{"name": "{name}"}}"#))
        .collect();
    let world = Setup::witness(&format!(
        "tools: [{}]\nanswers:\n  good: fine\n  bad: fail\n  mute: no json\n  mad: panic",
        list.join(", ")
    ))
    .world();
    let (_host, mut agent) = world.agent();
    assert_eq!(
        call(&world, &mut agent, "good", "{}"),
        json!({"answer": "fine"})
    );
    assert_eq!(
        call(&world, &mut agent, "good", ""),
        json!({"answer": "fine"}),
        "no arguments at all"
    );
    for (name, why) in [
        ("bad", "as it was told"),
        ("mute", "no JSON"),
        ("mad", "panic"),
    ] {
        let result = call(&world, &mut agent, name, "{}");
        let text = result["error"]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {result}"));
        assert!(text.contains(why) && text.contains(name), "{name}: {text}");
    }
    let unknown = call(&world, &mut agent, "nobody", "{}");
    assert!(
        unknown["error"]
            .as_str()
            .unwrap()
            .contains("unknown tool 'nobody'"),
        "{unknown}"
    );
    let cut = call(&world, &mut agent, "good", r#"{"q": "le"#);
    assert!(
        cut["error"].as_str().unwrap().contains("no valid JSON"),
        "{cut}"
    );
    assert_eq!(
        call(&world, &mut agent, "good", "{}"),
        json!({"answer": "fine"})
    );
}

// contract: TOOL-3, PASS-10
#[test]
fn a_tool_that_hangs_is_given_up_and_others_are_refused_until_it_returns() {
    let world = Setup::witness(&format!("tools: [{GREP}]\nsleep:\n  tool_call: 60000"))
        .timeouts("tool_call: 0.2\ncommand: 0.2")
        .world();
    let (_host, mut agent) = world.agent();
    let result = call(&world, &mut agent, "lcm_grep", "{}");
    assert!(
        result["error"].as_str().unwrap().contains("given up"),
        "{result}"
    );
    let result = call(&world, &mut agent, "lcm_grep", "{}");
    assert!(
        result["error"].as_str().unwrap().contains("still inside"),
        "{result}"
    );
    assert_eq!(world.diary().count("tool_call"), 1);
}

// contract: TOOL-4, TOOL-1
// case: 45
#[test]
fn the_same_tools_in_the_same_order_are_there_on_every_path() {
    let world = Setup::witness(&good()).window(None).world();
    let (host, mut agent) = world.agent();
    let mut seen = Vec::new();
    let mut look = |agent: &mut hermes::agent::Agent| {
        world.script.cut();
        assert_eq!(
            call(&world, agent, "lcm_grep", "{}")["session"],
            agent.session_id()
        );
        seen.push(tools_of(&world.script.last()));
    };
    look(&mut agent);
    agent.switch_model("another");
    look(&mut agent);
    let first = agent.session_id().to_owned();
    agent.new_session();
    look(&mut agent);
    agent.branch().unwrap();
    look(&mut agent);
    agent.resume(&first).unwrap();
    look(&mut agent);
    agent.rewind(1).unwrap();
    look(&mut agent);
    agent.compress(None, &mut |_| {});
    look(&mut agent);
    let mut child = agent.child(options()).unwrap();
    look(&mut child);
    for _ in 0..2 {
        look(&mut host.agent(options()).unwrap());
    }
    assert!(
        seen.iter()
            .all(|tools| *tools == seen[0] && tools.contains("lcm_more")),
        "{seen:#?}"
    );
}

// contract: TOOL-4
#[test]
fn a_refresh_that_fails_takes_no_tool_away() {
    let world = Setup::witness(&format!("{}\nsleep:\n  turn_complete: 60000", good()))
        .timeouts("turn_complete: 0.1\npreflight: 0.1\nselect_context: 0.1")
        .window(None)
        .world();
    let (_host, mut agent) = world.agent();
    turn(&mut agent, "one");
    // The last call is still inside, so the engine cannot be asked now.
    agent.switch_model("another");
    assert_eq!(agent.tool_names(), ["lcm_grep", "lcm_more"]);
}

// contract: TOOL-4, SAFE-4
// case: 45
#[test]
fn the_tools_go_with_their_engine_and_come_back_with_it() {
    let world = Setup::witness(&format!("{}\nfail:\n  turn_complete: true", good())).world();
    let (_host, mut agent) = world.agent();
    for number in 0..3 {
        assert_eq!(agent.tool_names().len(), 2, "{number}");
        turn(&mut agent, "hello");
    }
    world.script.cut();
    turn(&mut agent, "who serves now?");
    assert_eq!(agent.engine(), "compressor");
    assert_eq!(agent.tool_names(), Vec::<String>::new());
    assert!(!world.script.last().contains("\"tools\""));
    let result = call(&world, &mut agent, "lcm_grep", "{}");
    assert!(result["error"].is_string(), "{result}");
    agent.new_session();
    world.script.cut();
    assert_eq!(agent.engine(), "witness");
    assert_eq!(agent.tool_names().len(), 2);
    assert_eq!(
        call(&world, &mut agent, "lcm_grep", "{}")["session"],
        agent.session_id()
    );
}

fn host_tool(
    name: &str,
    run: impl Fn(&Value) -> Result<String, String> + Send + Sync + 'static,
) -> HostTool {
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    HostTool::new(
        name,
        "What the program knows.",
        parameters,
        move |arguments, _| run(arguments),
    )
}

// contract: TOOL-1, TOOL-2, TOOL-3, TOOL-4
#[test]
fn a_program_gives_its_own_tools_to_an_agent() {
    let world = Setup::witness(&good()).window(None).world();
    let host = world.host();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let host_tools = vec![
        host_tool("ask_program", move |arguments| {
            heard.lock().unwrap().push(arguments.clone());
            Ok("plain words".to_owned())
        }),
        host_tool("structured", |_| Ok(r#"{"rows": [1, 2]}"#.to_owned())),
        host_tool("fails", |_| Err("no such row".to_owned())),
        host_tool("panics", |_| panic!("in the program")),
        // The engine has one of this name: the program's comes first.
        host_tool("lcm_grep", |arguments| {
            Ok(format!("mine {}", arguments["q"]))
        }),
        // These no provider would take.
        host_tool("ask_program", |_| Ok(String::new())),
        host_tool("no name!", |_| Ok(String::new())),
    ];
    let mine = || AgentOptions {
        host_tools: host_tools.clone(),
        ..options()
    };
    let mut agent = host.agent(mine()).unwrap();
    let names = [
        "ask_program",
        "structured",
        "fails",
        "panics",
        "lcm_grep",
        "lcm_more",
    ];
    assert_eq!(agent.tool_names(), names);
    let warnings = agent.take_warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("\"ask_program\" is left out: a tool of this name is there"));
    assert!(
        warnings[1].contains("\"no name!\" is left out") && warnings[1].contains("no usable name")
    );

    assert_eq!(
        call(&world, &mut agent, "ask_program", r#"{"q": "é"}"#),
        json!({"result": "plain words"})
    );
    assert_eq!(*asked.lock().unwrap(), [json!({"q": "é"})]);
    assert_eq!(
        call(&world, &mut agent, "structured", ""),
        json!({"rows": [1, 2]})
    );
    assert_eq!(
        call(&world, &mut agent, "fails", "{}"),
        json!({"error": "no such row"})
    );
    let broken = call(&world, &mut agent, "panics", "{}");
    assert!(
        broken["error"]
            .as_str()
            .unwrap()
            .contains("fault in the program"),
        "{broken}"
    );
    let cut = call(&world, &mut agent, "ask_program", r#"{"q": "le"#);
    assert!(
        cut["error"].as_str().unwrap().contains("no valid JSON"),
        "{cut}"
    );
    assert_eq!(
        asked.lock().unwrap().len(),
        1,
        "it was not called with that"
    );
    assert_eq!(
        call(&world, &mut agent, "lcm_grep", r#"{"q": 1}"#),
        json!({"result": "mine 1"})
    );
    assert_eq!(
        world.diary().count("tool_call"),
        0,
        "the engine's own was not offered"
    );

    // On the wire they are what any tool is, and they stay on every path.
    let offered: Value = serde_json::from_str(&world.script.last()).unwrap();
    assert_eq!(
        offered["tools"][0],
        json!({"type": "function", "function": {
            "name": "ask_program", "description": "What the program knows.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
        }})
    );
    let before = tools_of(&world.script.last());
    agent.switch_model("another");
    agent.new_session();
    world.script.cut();
    assert_eq!(
        call(&world, &mut agent, "ask_program", "{}"),
        json!({"result": "plain words"})
    );
    assert_eq!(tools_of(&world.script.last()), before);
    assert_eq!(agent.child(mine()).unwrap().tool_names(), names);
    assert_eq!(
        agent.child(options()).unwrap().tool_names(),
        ["lcm_grep", "lcm_more"]
    );
    world.check(&agent);

    // Beside the host's own, which keep their names.
    let both = host
        .agent(AgentOptions {
            tools: true,
            host_tools: vec![
                host_tool("read_file", |_| Ok(String::new())),
                host_tools[0].clone(),
            ],
            ..options()
        })
        .unwrap()
        .tool_names();
    assert_eq!(
        both,
        [
            "read_file",
            "search_files",
            "ask_program",
            "lcm_grep",
            "lcm_more"
        ]
    );
}

// contract: TOOL-3, HOOK-10
#[test]
fn an_interrupt_reaches_a_tool_of_the_program() {
    let world = Setup::witness("").world();
    let host = world.host();
    let tool = HostTool::new("waits", "Waits.", Value::Null, |_, place| {
        while !place.cancel.is_cancelled() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Err("stopped".to_owned())
    });
    let mut agent = host
        .agent(AgentOptions {
            host_tools: vec![tool],
            ..options()
        })
        .unwrap();
    world
        .script
        .say([Say::Message(hermes_message::build::calling(
            None,
            &[("c", "waits", "{}")],
        ))]);
    let interrupt = agent.interrupt();
    let report = agent.turn("wait", &mut |event| {
        if matches!(event, hermes::agent::Event::ToolBegins { .. }) {
            assert!(interrupt.interrupt());
        }
    });
    assert_eq!(report.outcome, TurnOutcome::Interrupted);
    assert!(report.was_stopped);
    assert!(agent.messages().last().unwrap().text().contains("stopped"));
    world.check(&agent);
}
