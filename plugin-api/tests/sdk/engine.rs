//! An engine written with the SDK, seen through its real vtable.

use std::ptr;

use hermes_plugin_api::abi;
use hermes_plugin_api::message::{Identity, Message};
use hermes_plugin_api::testing::{Instance, Kit};
use hermes_plugin_api::{
    Call, CloneForAgent, CompleteRequest, Compress, ContextEngine, Create, Decision, Emit,
    EngineError, EngineState, ErrorClass, Host, List, Select, SelectContext, ToolCall, Tools,
    Verdict, engine_module,
};
use serde_json::{Value, json};

/// Does in each slot what its settings say.
struct Probe {
    state: EngineState,
    settings: Value,
    host: Host,
}

impl Probe {
    fn does(&self, slot: &str) -> &str {
        self.settings[slot].as_str().unwrap_or_default()
    }

    fn act(&self, slot: &str) -> Result<(), EngineError> {
        match self.does(slot) {
            "panic" => panic!("{slot} went wrong"),
            "panic with a number" => std::panic::panic_any(7_u32),
            "fail" => Err(EngineError::failed(format_args!("{slot} does not work"))),
            _ => Ok(()),
        }
    }
}

impl ContextEngine for Probe {
    const NAME: &'static str = "probe";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        let probe = Self {
            state: EngineState::new(cx.context_length()),
            settings: cx.config().clone(),
            host: cx.host().clone(),
        };
        probe.act("create")?;
        if probe.does("create") == "unavailable" {
            return Err(EngineError::Unavailable("no database here".to_owned()));
        }
        Ok(probe)
    }

    fn state(&self) -> EngineState {
        self.act("state").expect("the state is there");
        self.state
    }

    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }

    fn should_compress(
        &mut self,
        _: &Call<'_>,
        prompt_tokens: Option<u64>,
    ) -> Result<Decision, EngineError> {
        self.act("should_compress")?;
        if self.does("should_compress") == "block" {
            return Ok(Decision::Blocked("cooling down".to_owned()));
        }
        Ok(
            if prompt_tokens.is_some_and(|n| n >= self.state.threshold_tokens) {
                Decision::Yes
            } else {
                Decision::No
            },
        )
    }

    fn compress(
        &mut self,
        cx: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        out.keep_one(0)?;
        self.act("compress")?;
        match self.does("compress") {
            "ask" => {
                let request = CompleteRequest {
                    messages: json!([]),
                    purpose: "summary".to_owned(),
                    ..Default::default()
                };
                let answer = self
                    .host
                    .complete(Some(cx), &request, &mut |_| {})
                    .map_err(EngineError::failed)?;
                out.push(&json!({ "role": "assistant", "content": answer.text }).to_string())?;
            }
            "edit" => out.edit(
                &input.messages().get(1),
                r#"{"role":"user","content":"reworded"}"#,
            )?,
            "too far" => out.keep(1..input.messages().len() + 1)?,
            "nothing" => return Ok(Verdict::unchanged("already short")),
            _ => out.keep(1..input.messages().len())?,
        }
        Ok(Verdict::Done)
    }
}

impl SelectContext for Probe {
    fn select_context(
        &mut self,
        _: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let behind = input.conversation().map_or(0, |list| list.len());
        out.keep_from(List::Conversation, 0..behind)?;
        out.keep(input.request().len() - 1..input.request().len())?;
        Ok(Verdict::Done)
    }
}

impl Tools for Probe {
    fn tool_schemas(&mut self, _: &Call<'_>) -> Result<String, EngineError> {
        Ok(r#"[{"name":"probe"}]"#.to_owned())
    }

    fn tool_call(&mut self, _: &Call<'_>, call: &ToolCall<'_>) -> Result<String, EngineError> {
        let arguments: Value = call.arguments_as()?;
        Ok(json!({ "name": call.name(), "arguments": arguments }).to_string())
    }
}

impl CloneForAgent for Probe {
    fn clone_for_agent(&self, cx: &Call<'_>) -> Result<Self, EngineError> {
        self.act("clone")?;
        Ok(Self {
            state: self.state,
            settings: self.settings.clone(),
            host: cx.host().clone(),
        })
    }
}

fn probe(settings: Value) -> Instance {
    Kit::new(engine_module!(Probe))
        .config(settings)
        .context_length(200_000)
        .create()
        .expect("creates")
}

fn talk() -> Vec<Message> {
    [
        "{\"role\":\"system\",\"content\":\"s\"}",
        "{\"role\":\"user\",\"content\":\"hello\"}",
    ]
    .into_iter()
    .zip(["aaaa", "bbbb"])
    .map(|(json, uid)| {
        Message::with_identity(
            json,
            Identity {
                uid: Some(uid.into()),
                ..Identity::default()
            },
        )
        .expect("valid")
    })
    .collect()
}

/// A type with nothing but the required members, and `Clone`.
#[derive(Clone)]
struct Plain(EngineState);

impl ContextEngine for Plain {
    const NAME: &'static str = "plain";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self(
            EngineState::new(cx.context_length()).with_threshold_percent(0.5),
        ))
    }

    passive!(0);
}

fn plain() -> Instance {
    Kit::new(engine_module!(Plain))
        .context_length(1000)
        .create()
        .expect("creates")
}

// contract: HOOK-1, ENG-16, ENG-17
#[test]
fn a_slot_exists_exactly_where_the_trait_is_implemented() {
    let (plain, probe) = (plain(), probe(json!({})));
    let (plain, probe) = (plain.vtable(), probe.vtable());
    assert!(
        plain.select_context.is_none()
            && plain.turn_complete.is_none()
            && plain.tool_schemas.is_none()
    );
    assert!(
        plain.tool_call.is_none() && plain.session_start.is_none() && plain.session_end.is_none()
    );
    assert!(plain.pass_result.is_none() && plain.preflight.is_none() && plain.status.is_none());
    assert!(plain.command.is_none() && plain.idle.is_none());
    assert!(plain.clone.is_some(), "made from Clone");
    assert!(
        probe.select_context.is_some() && probe.tool_schemas.is_some() && probe.tool_call.is_some()
    );
    assert!(probe.clone.is_some(), "the author's own");
    assert!(probe.turn_complete.is_none() && probe.idle.is_none());
}

// contract: ENG-5, ENG-8, ENG-9, CFG-2, TEST-1
#[test]
fn the_defaults_are_those_of_the_contract() {
    let state = Kit::new(engine_module!(Probe))
        .create()
        .expect("creates")
        .state();
    assert_eq!(
        (
            state.last_prompt_tokens,
            state.last_completion_tokens,
            state.last_total_tokens
        ),
        (0, 0, 0)
    );
    assert_eq!(
        (
            state.threshold_tokens,
            state.context_length,
            state.compression_count
        ),
        (0, 0, 0)
    );
    assert_eq!(
        (
            state.threshold_percent,
            state.protect_first_n,
            state.protect_last_n,
            state.flags
        ),
        (0.75, 3, 6, 0)
    );

    let mut engine = probe(json!({}));
    assert_eq!(
        (
            engine.state().context_length,
            engine.state().threshold_tokens
        ),
        (200_000, 150_000)
    );
    engine.update_from_response(100, 20).expect("answers");
    assert_eq!(
        (
            engine.state().last_prompt_tokens,
            engine.state().last_total_tokens
        ),
        (100, 120)
    );
    engine.session_reset().expect("answers");
    assert_eq!(
        (
            engine.state().last_prompt_tokens,
            engine.state().threshold_tokens
        ),
        (0, 150_000)
    );
}

// contract: CFG-2
// case: 22
#[test]
fn switching_models_returns_to_the_engines_own_threshold() {
    let mut engine = plain();
    let thresholds = json!({ "glm-5": 0.7, "glm-5-1m": 0.25, "": 0.1, "bad": 1.7, "t": true });
    let mut seen = Vec::new();
    for model in [
        "z/glm-5-1m",
        "z/glm-5",
        "other",
        "glm-51m",
        "z/glm-5",
        "other",
    ] {
        engine
            .update_model(model, 1000, &thresholds)
            .expect("answers");
        seen.push(engine.state().threshold_tokens);
    }
    assert_eq!(seen, [250, 700, 500, 500, 700, 500]);
}

// contract: ENG-4, UID-18, TEST-2
#[test]
fn kept_messages_are_the_hosts_own_and_edited_ones_keep_their_identity() {
    let talk = talk();
    let kept = probe(json!({})).compress(&talk).expect("answers");
    assert_eq!(kept.sources, [Some((0, 0)), Some((0, 1))]);
    let edited = probe(json!({ "compress": "edit" }))
        .compress(&talk)
        .expect("answers");
    assert_eq!((edited.kept(), edited.pushed()), (1, 1));
    assert_eq!(edited.messages[1].identity().uid.as_deref(), Some("bbbb"));
    assert_eq!(edited.messages[1].text(), "reworded");
    let hello = [Message::parse(r#"{"role":"user","content":"hello"}"#).expect("valid")];
    assert_eq!(
        probe(json!({}))
            .compress(&hello)
            .expect("answers")
            .messages
            .len(),
        1
    );
}

// contract: ENG-17
#[test]
fn reasons_reach_the_host() {
    let unchanged = probe(json!({ "compress": "nothing" }))
        .compress(&talk())
        .expect("answers");
    assert!(unchanged.is_unchanged());
    assert_eq!(unchanged.text, "already short");
    let blocked = probe(json!({ "should_compress": "block" }))
        .should_compress(Some(1))
        .expect("answers");
    assert_eq!(blocked, (false, "cooling down".to_owned()));
    let failure = Kit::new(engine_module!(Probe))
        .config(json!({ "create": "unavailable" }))
        .create()
        .expect_err("refuses");
    assert_eq!(
        (failure.status, failure.text.as_str()),
        (abi::ERR_UNAVAILABLE, "no database here")
    );
}

// contract: ENG-14
#[test]
fn a_selection_may_mix_both_lists() {
    let talk = talk();
    let chosen = probe(json!({}))
        .select_context(&talk[1..], &talk[..1], 1000)
        .expect("answers");
    assert_eq!(chosen.sources, [Some((1, 0)), Some((0, 0))]);
}

// contract: SAFE-2
// case: 52
#[test]
fn a_panic_becomes_a_status_and_the_instance_is_dead() {
    for what in ["panic", "panic with a number"] {
        let mut engine = probe(json!({ "compress": what }));
        let failure = engine.compress(&talk()).expect_err("panics");
        assert_eq!(failure.status, abi::ERR_PANIC);
        assert!(
            failure.text.contains("engine probe panicked in compress"),
            "{}",
            failure.text
        );
        assert!(failure.text.contains(if what == "panic" {
            "compress went wrong"
        } else {
            "payload is not text"
        }));
        assert!(
            engine
                .logs()
                .iter()
                .any(|(_, line)| line.contains("panicked in compress"))
        );
        let later = engine.should_compress(Some(1)).expect_err("dead");
        assert_eq!(later.status, abi::ERR_PANIC, "{later}");
        assert_eq!(engine.clone_for_agent().expect_err("dead").slot, "clone");
    }
    let failure = Kit::new(engine_module!(Probe))
        .config(json!({ "create": "panic" }))
        .create()
        .expect_err("panics");
    assert_eq!(failure.status, abi::ERR_PANIC);
    let failure = probe(json!({ "clone": "panic" }))
        .clone_for_agent()
        .expect_err("panics");
    assert_eq!(failure.status, abi::ERR_PANIC);
    assert_eq!(probe(json!({ "state": "panic" })).state().context_length, 0);
}

// contract: ENG-11
#[test]
fn errors_carry_their_text() {
    let failure = probe(json!({ "compress": "fail" }))
        .compress(&talk())
        .expect_err("fails");
    assert_eq!(
        (failure.status, failure.text.as_str()),
        (abi::ERR_FAILED, "compress does not work")
    );
    let failure = probe(json!({ "compress": "too far" }))
        .compress(&talk())
        .expect_err("fails");
    assert_eq!(failure.status, abi::ERR_INVALID);
    let failure = probe(json!({}))
        .tool_call("probe", "{half")
        .expect_err("fails");
    assert!(
        failure.text.starts_with("arguments of probe"),
        "{}",
        failure.text
    );
    let answer = probe(json!({}))
        .tool_call("probe", r#"{"a":1}"#)
        .expect("answers");
    assert_eq!(answer, r#"{"name":"probe","arguments":{"a":1}}"#);
}

#[test]
fn the_helper_model_answers_or_says_why_not() {
    let kit = Kit::new(engine_module!(Probe)).config(json!({ "compress": "ask" }));
    let done = kit
        .clone()
        .scripted(["a summary"])
        .create()
        .expect("creates")
        .compress(&talk())
        .expect("answers");
    assert_eq!(done.messages[1].text(), "a summary");
    let failure = kit
        .create()
        .expect("creates")
        .compress(&talk())
        .expect_err("no model");
    assert!(failure.text.contains("`llm`"), "{}", failure.text);
    let refusing = kit.completer(|_| r#"{"error":{"class":"quota","message":"spent"}}"#.to_owned());
    let failure = refusing
        .create()
        .expect("creates")
        .compress(&talk())
        .expect_err("refuses");
    assert_eq!(failure.text, "spent");
}

#[test]
fn a_host_outlived_by_a_copy_answers_like_one_without_services() {
    static KEPT: std::sync::Mutex<Option<Host>> = std::sync::Mutex::new(None);
    #[derive(Clone)]
    struct Keeps(EngineState);
    impl ContextEngine for Keeps {
        const NAME: &'static str = "keeps";
        fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
            *KEPT.lock().expect("free") = Some(cx.host().clone());
            Ok(Self(EngineState::new(0)))
        }
        passive!(0);
    }
    let engine = Kit::new(engine_module!(Keeps))
        .scripted(["x"])
        .create()
        .expect("creates");
    let host = KEPT.lock().expect("free").clone().expect("kept");
    assert!(host.can_complete() && host.count_tokens("some words") > 0);
    drop(engine);
    assert!(!host.can_complete());
    assert_eq!(host.count_tokens("some words"), 0);
    let error = host
        .complete(None, &CompleteRequest::default(), &mut |_| {})
        .expect_err("gone");
    assert_eq!(error.class, ErrorClass::NotGranted);
}

// contract: CLONE-2, ENG-16
#[test]
fn a_clone_has_a_budget_of_its_own() {
    let parent = plain();
    let mut child = parent.clone_for_agent().expect("clones");
    child.update_model("small", 8, &json!({})).expect("answers");
    assert_eq!(
        (parent.state().context_length, child.state().context_length),
        (1000, 8)
    );
}

// contract: ENG-18
#[test]
fn structs_of_other_minors_are_read_and_filled_within_their_size() {
    // SAFETY: the vtable of a static module.
    let vtable = unsafe { *engine_module!(Plain).engine };
    let mut raw = ptr::null_mut();
    let create = vtable.create.expect("required");
    // SAFETY: complete arguments; the host is absent, which every service survives.
    let status = unsafe {
        create(
            ptr::null(),
            &abi::Call::EMPTY,
            &abi::CreateArgs::EMPTY,
            &mut raw,
        )
    };
    assert_eq!(status, abi::OK);
    // A host that knows only the first part of the struct: nothing beyond it may be written.
    #[repr(C)]
    struct Short {
        size: u32,
        flags: u32,
        prompt: i64,
        guard: u64,
    }
    let mut short = Short {
        size: 16,
        flags: 9,
        prompt: 9,
        guard: 0xdead_beef,
    };
    let state = vtable.state.expect("required");
    // SAFETY: a living instance and an out struct whose size says 16 writable bytes.
    let status = unsafe { state(raw, (&raw mut short).cast()) };
    assert_eq!(
        (status, short.flags, short.prompt, short.guard, short.size),
        (abi::OK, 0, 0, 0xdead_beef, 16)
    );
    // SAFETY: NULL is refused, not written to.
    assert_eq!(unsafe { state(raw, ptr::null_mut()) }, abi::ERR_INVALID);
    // SAFETY: once, and nobody is inside.
    unsafe { vtable.destroy.expect("required")(raw) };
}
