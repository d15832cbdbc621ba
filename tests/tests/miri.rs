//! The protocol of the border with engines that are linked statically: no library is opened, so that Miri can watch every
//! pointer that crosses, in both directions (`cargo +nightly miri test -p hermes-tests --test miri`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes::engine::{
    CompressRequest, Delivery, Emission, Emitted, EngineHandle, EngineSettings, FaultKind, Ledger,
    MessageList, ModelInfo, PassControl, PassOutcome, Services, Serving, SessionInfo, Slot,
    Template, Timeouts, ToolRequest, TurnInfo, Usage,
};
use hermes::plugin::EngineModule;
use hermes_message::Message;
use hermes_plugin_api::{
    Call, CloneForAgent, Commands, Compress, ContextEngine, Create, Decision, Emit, EngineError,
    EngineState, Idle, Level, Pass, Passes, Preflight, Select, SelectContext, Session, Sessions,
    Status, ToolCall, Tools, Turn, TurnComplete, Verdict, engine_module,
};
use serde_json::json;

/// How many of the engine below are alive.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Uses every part of the border.
struct Everything {
    state: EngineState,
    host: hermes_plugin_api::Host,
    panics: bool,
    seen: Vec<String>,
}

impl Everything {
    fn new(state: EngineState, host: hermes_plugin_api::Host, panics: bool) -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Self {
            state,
            host,
            panics,
            seen: Vec::new(),
        }
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        self.host.log(Level::Info, "dropped");
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ContextEngine for Everything {
    const NAME: &'static str = "everything";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        if cx.config()["fails"] == true {
            return Err(EngineError::failed("as it was told to"));
        }
        cx.host().log(Level::Info, "created");
        let panics = cx.config()["panics"] == true;
        Ok(Self::new(
            EngineState::new(cx.context_length()),
            cx.host().clone(),
            panics,
        ))
    }
    fn state(&self) -> EngineState {
        self.state
    }
    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }
    fn should_compress(
        &mut self,
        cx: &Call<'_>,
        tokens: Option<u64>,
    ) -> Result<Decision, EngineError> {
        cx.check()?;
        if tokens == Some(13) {
            return Ok(Decision::Blocked("unlucky".to_owned()));
        }
        Ok(Decision::Yes)
    }
    fn compress(
        &mut self,
        cx: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let messages = input.messages();
        if messages.len() < 3 {
            return Ok(Verdict::unchanged("already short"));
        }
        cx.progress(1, 2);
        out.keep_one(0)?;
        let last = messages.get(messages.len() - 1);
        let summary = json!({"role": "user", "content": format!("{} of {}", cx.session_id(), messages.len())});
        out.push(&summary.to_string())?;
        out.edit(&last, r#"{"role":"assistant","content":"shorter"}"#)?;
        self.state.compression_count += 1;
        Ok(Verdict::Done)
    }
}
impl SelectContext for Everything {
    fn select_context(
        &mut self,
        _: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        if self.panics {
            panic!("as it was told to");
        }
        let request = input.request();
        self.seen = request
            .iter()
            .map(|message| message.json().to_owned())
            .collect();
        out.keep(0..request.len() - 1)?;
        // A copy of the host's own message, spelled otherwise.
        let last = request.get(request.len() - 1);
        let mut value: serde_json::Value = serde_json::from_str(last.json())?;
        let content = value["content"].take();
        out.push(&json!({"content": content, "role": value["role"]}).to_string())?;
        Ok(Verdict::Done)
    }
}
impl TurnComplete for Everything {
    fn turn_complete(&mut self, _: &Call<'_>, turn: &Turn<'_>) -> Result<(), EngineError> {
        let usage = turn.usage().is_some();
        let callers = turn.messages().iter().filter_map(|m| m.caller()).count();
        self.host
            .log(Level::Info, &format!("turn {usage} {callers}"));
        Ok(())
    }
}
impl Tools for Everything {
    fn tool_schemas(&mut self, _: &Call<'_>) -> Result<String, EngineError> {
        Ok(r#"[{"name":"look","description":"d","parameters":{}}]"#.to_owned())
    }
    fn tool_call(&mut self, _: &Call<'_>, call: &ToolCall<'_>) -> Result<String, EngineError> {
        Ok(json!({"tool": call.name(), "seen": self.seen.len()}).to_string())
    }
}
impl Sessions for Everything {
    fn session_start(&mut self, cx: &Call<'_>, _: &Session<'_>) -> Result<(), EngineError> {
        self.host
            .log(Level::Info, &format!("session {}", cx.session_id()));
        Ok(())
    }
    fn session_end(&mut self, _: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError> {
        let count = session.messages().map_or(0, |messages| messages.len());
        self.host.log(Level::Info, &format!("end with {count}"));
        Ok(())
    }
}
impl Passes for Everything {
    fn pass_result(&mut self, _: &Call<'_>, pass: &Pass<'_>) -> Result<(), EngineError> {
        let (id, committed) = (pass.pass_id().to_owned(), pass.committed());
        self.host
            .log(Level::Info, &format!("pass {id} {committed}"));
        Ok(())
    }
}
impl Preflight for Everything {
    fn preflight(
        &mut self,
        _: &Call<'_>,
        _: Option<u64>,
        messages: hermes_plugin_api::Messages<'_>,
    ) -> Result<bool, EngineError> {
        Ok(messages.len() > 2)
    }
}
impl Status for Everything {
    fn status(&mut self, _: &Call<'_>) -> Result<String, EngineError> {
        Ok(r#"{"mine":1}"#.to_owned())
    }
}
impl Commands for Everything {
    fn command(&mut self, _: &Call<'_>, words: &[String]) -> Result<String, EngineError> {
        Ok(words.join("+"))
    }
}
impl Idle for Everything {
    fn idle(&mut self, _: &Call<'_>) -> Result<bool, EngineError> {
        Ok(false)
    }
}
impl CloneForAgent for Everything {
    fn clone_for_agent(&self, cx: &Call<'_>) -> Result<Self, EngineError> {
        Ok(Self::new(self.state, cx.host().clone(), self.panics))
    }
}

/// Has nothing but the required members, and is created again for each agent.
struct Bare(EngineState);

impl ContextEngine for Bare {
    const NAME: &'static str = "compressor";
    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self(EngineState::new(cx.context_length())))
    }
    fn state(&self) -> EngineState {
        self.0
    }
    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.0
    }
    fn should_compress(&mut self, _: &Call<'_>, _: Option<u64>) -> Result<Decision, EngineError> {
        Ok(Decision::No)
    }
    fn compress(
        &mut self,
        _: &Call<'_>,
        _: &Compress<'_>,
        _: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        Ok(Verdict::unchanged("never"))
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn services() -> (Services, Log) {
    let log = Log::default();
    let lines = Arc::clone(&log);
    let long = Duration::from_secs(600);
    let services = Services {
        log: Arc::new(move |_: &str, _, line: &str| lines.lock().unwrap().push(line.to_owned())),
        count_tokens: Arc::new(|text: &str| text.len() as u64),
        timeouts: Timeouts {
            hooks: long,
            quick: long,
            lifecycle: long,
            tools: long,
            grace: long,
            ..Timeouts::default()
        },
        ledger: Ledger::new(),
        ..Services::default()
    };
    (services, log)
}

fn templates(config: serde_json::Value) -> (Result<Template, hermes::engine::EngineFault>, Log) {
    let (services, log) = services();
    let settings = EngineSettings {
        config,
        context_length: 1000,
    };
    let bare = EngineModule::from_static(engine_module!(Bare)).unwrap();
    let builtin = Template::create(&bare, EngineSettings::default(), services.clone()).unwrap();
    let module = EngineModule::from_static(engine_module!(Everything)).unwrap();
    let template = Template::create(&module, settings, services);
    (template.map(|template| template.with_builtin(builtin)), log)
}

fn conversation() -> MessageList {
    let messages = [
        r#"{"role":"user","content":"hello","message_uid":"u1"}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}],"message_uid":"u2"}"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"result"}"#,
        r#"{"role":"assistant","content":"bye","message_uid":"u3"}"#,
    ];
    let messages: Vec<_> = messages
        .iter()
        .map(|m| Message::parse(m).unwrap())
        .collect();
    MessageList::stored(&messages)
}

fn life(engine: &mut EngineHandle, log: &Log) {
    let list = conversation();
    let session = SessionInfo {
        session_id: "s1".to_owned(),
        messages: Some(list.clone()),
        ..SessionInfo::default()
    };
    let model = ModelInfo {
        model: "m".to_owned(),
        context_length: 2000,
        ..ModelInfo::default()
    };
    assert_eq!(engine.update_model(&model), Delivery::Done);
    assert_eq!(engine.session_start(&session), Delivery::Done);
    assert!(engine.preflight(None, &list));
    let Emission::Messages(items) = engine
        .select_context(&list, &list, Some(0), 2000, 0, 0)
        .unwrap()
    else {
        panic!("it selects");
    };
    let own: Vec<_> = (0..4)
        .map(|index| Emitted::Kept { list: 0, index })
        .collect();
    assert_eq!(items, own, "the copy is the host's message");
    let usage = Usage {
        prompt_tokens: Some(5),
        total_tokens: Some(6),
        ..Usage::default()
    };
    assert_eq!(engine.update_from_response(&usage), Delivery::Done);
    assert_eq!(engine.state().last_prompt_tokens, 5);
    assert!(engine.should_compress(Some(1)).yes);
    assert_eq!(engine.should_compress(Some(13)).reason, "unlucky");

    // On the lane, and on this thread.
    for (id, timeout) in [("p1", Some(Duration::from_secs(600))), ("p2", None)] {
        let request = CompressRequest {
            messages: list.clone(),
            pass_id: id.to_owned(),
            focus: Some("that".to_owned()),
            ..CompressRequest::default()
        };
        let control = PassControl::new(timeout, timeout);
        let Emission::Messages(items) = engine.compress(request, &control).unwrap() else {
            panic!("it compresses");
        };
        assert_eq!(items[0], Emitted::Kept { list: 0, index: 0 });
        let texts: Vec<_> = items
            .iter()
            .map(|i| i.message(&[&list]).unwrap().stored().to_string())
            .collect();
        assert!(texts[1].contains("s1 of 4"), "{texts:?}");
        let edited = items[2].message(&[&list]).unwrap();
        assert_eq!(edited.identity().uid.as_deref(), Some("u3"), "UID-18");
        assert_eq!(control.progress(), (1, 2));
        let outcome = PassOutcome::Committed(list.clone());
        assert_eq!(engine.pass_result(id, outcome), Delivery::Done);
    }
    let short = CompressRequest {
        messages: MessageList::stored(&list.messages()[..1]),
        ..CompressRequest::default()
    };
    let emission = engine
        .compress(short, &PassControl::new(None, None))
        .unwrap();
    assert!(matches!(emission, Emission::Unchanged { reason } if reason == "already short"));

    engine.turn_complete(TurnInfo {
        messages: list.clone(),
        usage: Some(usage),
        ..TurnInfo::default()
    });
    assert_eq!(engine.tool_schemas().unwrap()[0]["name"], "look");
    let tool = ToolRequest {
        name: "look".to_owned(),
        messages: Some(list.clone()),
        ..ToolRequest::default()
    };
    assert_eq!(engine.tool_call(tool), r#"{"tool":"look","seen":4}"#);
    assert_eq!(engine.status()["mine"], 1);
    assert_eq!(engine.command(&["a".into(), "b".into()]).unwrap(), "a+b");
    engine.idle(&PassControl::new(None, None));
    assert_eq!(engine.session_end(&session), Delivery::Done);
    assert_eq!(engine.session_reset(), Delivery::Done);
    let log = log.lock().unwrap();
    for line in [
        "created",
        "session s1",
        "pass p1 true",
        "pass p2 true",
        "turn true 1",
        "end with 4",
    ] {
        assert!(log.iter().any(|l| l == line), "{line}: {log:?}");
    }
}

/// One after the other, because Miri wants every thread to have ended, and the counter is shared.
#[test]
fn the_whole_protocol() {
    // contract: TEST-1, CLONE-1, HOOK-9, UID-18, SAFE-2, SAFE-4
    // case: 52
    whole_life_of_two_agents();
    death_and_replacement();
    no_instance();
    let report = hermes::engine::shutdown(Duration::from_secs(600));
    assert_eq!(report, hermes::engine::Shutdown::default());
    assert_eq!(ALIVE.load(Ordering::SeqCst), 0, "each was destroyed, once");
}

fn whole_life_of_two_agents() {
    let (template, log) = templates(json!({}));
    let template = template.unwrap();
    let mut parent = template.clone_for_agent().unwrap();
    let mut child = template.clone_for_agent().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| life(&mut parent, &log));
        scope.spawn(|| life(&mut child, &log));
    });
    drop(template);
    assert_eq!(parent.state().context_length, 2000);
}

fn death_and_replacement() {
    let (template, _log) = templates(json!({"panics": true}));
    let mut engine = template.unwrap().clone_for_agent().unwrap();
    let list = conversation();
    for round in 0..3 {
        assert_eq!(*engine.serving(), Serving::Itself, "{round}");
        let fault = engine
            .select_context(&list, &list, None, 0, 0, 0)
            .unwrap_err();
        assert_eq!(fault.kind, FaultKind::Panic);
        assert!(fault.why.contains("as it was told to"), "{fault}");
    }
    assert_eq!(engine.name(), "compressor");
    assert!(!engine.has(Slot::SelectContext));
}

fn no_instance() {
    let (template, _log) = templates(json!({"fails": true}));
    let fault = template.err().unwrap();
    assert!(fault.why.contains("as it was told to"), "{fault}");
}
