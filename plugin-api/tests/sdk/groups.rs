//! The optional groups that `engine.rs` does not implement, so that every slot of the SDK runs once.

use hermes_plugin_api::abi;
use hermes_plugin_api::message::Message;
use hermes_plugin_api::testing::Kit;
use hermes_plugin_api::{
    Call, ContextEngine, Create, EngineError, EngineState, Passes, Status, Turn, TurnComplete,
    engine_module,
};
use serde_json::{Value, json};

/// Remembers what it was told.
#[derive(Clone)]
struct Rest {
    state: EngineState,
    seen: Vec<String>,
}

impl ContextEngine for Rest {
    const NAME: &'static str = "rest";
    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self {
            state: EngineState::new(cx.context_length()),
            seen: Vec::new(),
        })
    }
    passive!(state);
}

impl hermes_plugin_api::Sessions for Rest {
    fn session_start(
        &mut self,
        cx: &Call<'_>,
        s: &hermes_plugin_api::Session<'_>,
    ) -> Result<(), EngineError> {
        self.seen.push(format!(
            "start {} {:?} after {}",
            cx.session_id(),
            s.reason(),
            s.last_pass_id()
        ));
        Ok(())
    }
    fn session_end(
        &mut self,
        _: &Call<'_>,
        s: &hermes_plugin_api::Session<'_>,
    ) -> Result<(), EngineError> {
        self.seen
            .push(format!("end with {}", s.messages().map_or(0, |m| m.len())));
        Ok(())
    }
}

impl Passes for Rest {
    fn pass_result(
        &mut self,
        _: &Call<'_>,
        p: &hermes_plugin_api::Pass<'_>,
    ) -> Result<(), EngineError> {
        self.seen
            .push(format!("pass {} committed {}", p.pass_id(), p.committed()));
        Ok(())
    }
}

impl TurnComplete for Rest {
    fn turn_complete(&mut self, _: &Call<'_>, turn: &Turn<'_>) -> Result<(), EngineError> {
        self.seen.push(format!(
            "turn {:?} usage {}",
            turn.outcome(),
            turn.usage().is_some()
        ));
        Ok(())
    }
}

impl Status for Rest {
    fn status(&mut self, _: &Call<'_>) -> Result<String, EngineError> {
        Ok(json!({ "seen": self.seen }).to_string())
    }
}

impl hermes_plugin_api::Preflight for Rest {
    fn preflight(
        &mut self,
        _: &Call<'_>,
        _: Option<u64>,
        messages: hermes_plugin_api::Messages<'_>,
    ) -> Result<bool, EngineError> {
        Ok(messages.len() > 1)
    }
}

impl hermes_plugin_api::Commands for Rest {
    fn command(&mut self, _: &Call<'_>, argv: &[String]) -> Result<String, EngineError> {
        Ok(argv.join("+"))
    }
}

impl hermes_plugin_api::Idle for Rest {
    fn idle(&mut self, _: &Call<'_>) -> Result<bool, EngineError> {
        Ok(true)
    }
}

// contract: ENG-6, ENG-7, ENG-12, ENG-13, ENG-15, LIFE-1
#[test]
fn optional_groups_receive_what_the_host_says() {
    let mut engine = Kit::new(engine_module!(Rest)).create().expect("creates");
    let talk: Vec<Message> = [
        "{\"role\":\"system\",\"content\":\"s\"}",
        "{\"role\":\"user\",\"content\":\"hello\"}",
    ]
    .iter()
    .map(|json| Message::parse(json).expect("valid"))
    .collect();
    engine
        .session_start("s1", abi::START_RESUME, "p7", &talk)
        .expect("answers");
    engine.turn_complete(&talk).expect("answers");
    engine.pass_result(true, &talk).expect("answers");
    engine.pass_result(false, &[]).expect("answers");
    engine.session_end(&talk).expect("answers");
    let status: Value = serde_json::from_str(&engine.status().expect("answers")).expect("JSON");
    assert_eq!(
        status["seen"],
        json!([
            "start s1 Resume after p7",
            "turn Completed usage false",
            "pass test-pass committed true",
            "pass test-pass committed false",
            "end with 2"
        ])
    );
    assert!(engine.preflight(&talk).expect("answers"));
    assert!(!engine.preflight(&talk[..1]).expect("answers"));
    assert_eq!(
        engine.command(&["show", "all"]).expect("answers"),
        "show+all"
    );
    assert!(engine.idle().expect("answers"));
}
