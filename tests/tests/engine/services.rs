//! What an engine may ask of the host.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes::engine::{
    Completer, CompressRequest, Emission, EngineSettings, PassControl, Services, Template,
};
use hermes::plugin::EngineModule;
use hermes_plugin_api::{
    Call, CompleteRequest, Compress, ContextEngine, Create, Decision, Emit, EngineError,
    EngineState, Level, Verdict, engine_module,
};
use serde_json::json;

use crate::support::{Host, conversation};

/// Asks the model in `compress`, and says what came of it.
struct Asking {
    state: EngineState,
    host: hermes_plugin_api::Host,
    on_thread: bool,
}

impl ContextEngine for Asking {
    const NAME: &'static str = "asking";
    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        for level in [Level::Error, Level::Warn, Level::Info, Level::Debug] {
            cx.host().log(level, &format!("{level:?}"));
        }
        Ok(Self {
            state: EngineState::new(cx.context_length()),
            host: cx.host().clone(),
            on_thread: cx.config()["on_thread"] == true,
        })
    }
    fn state(&self) -> EngineState {
        self.state
    }
    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }
    fn should_compress(&mut self, _: &Call<'_>, _: Option<u64>) -> Result<Decision, EngineError> {
        Ok(Decision::Blocked(self.host.can_complete().to_string()))
    }
    fn compress(
        &mut self,
        cx: &Call<'_>,
        _: &Compress<'_>,
        _: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let request = CompleteRequest {
            messages: json!([{"role": "user", "content": "sum up"}]),
            max_tokens: Some(9),
            purpose: "test".to_owned(),
            timeout: Some(Duration::from_secs(5)),
        };
        let answer = if self.on_thread {
            let host = self.host.clone();
            std::thread::spawn(move || host.complete(None, &request, &mut |_| {}))
                .join()
                .map_err(|_| EngineError::failed("the thread died"))?
        } else {
            let mut parts = String::new();
            let answer = self
                .host
                .complete(Some(cx), &request, &mut |part| parts.push_str(part));
            self.host.log(Level::Info, &format!("parts {parts}"));
            answer
        };
        Ok(Verdict::unchanged(match answer {
            Ok(completion) => format!("{} by {}", completion.text, completion.model),
            Err(error) => format!("{:?}: {}", error.class, error.message),
        }))
    }
}

/// Answers as it is told, and remembers what it was asked.
struct Model {
    behaves: &'static str,
    asked: Mutex<Vec<String>>,
}

impl Completer for Model {
    fn complete(
        &self,
        request: &str,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
        on_text: &mut dyn FnMut(&str),
    ) -> String {
        assert_eq!(timeout, Some(Duration::from_secs(5)));
        self.asked.lock().unwrap().push(request.to_owned());
        match self.behaves {
            "panics" => panic!("as it was told to"),
            "streams" => {
                for _ in 0..12 {
                    std::thread::sleep(Duration::from_millis(100));
                    on_text("x");
                }
            }
            "waits" => {
                while !cancelled() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                return json!({"error": {"class": "cancelled", "message": "stopped"}}).to_string();
            }
            "refuses" => {
                return json!({"error": {"class": "quota", "message": "no money", "retry_after_ms": 7}})
                    .to_string();
            }
            _ => on_text("short"),
        }
        json!({"text": "short", "finish_reason": "stop", "model": "m", "usage": {}}).to_string()
    }
    fn context_length(&self) -> u64 {
        1000
    }
}

fn run(
    behaves: &'static str,
    on_thread: bool,
    control: &PassControl,
) -> (String, Arc<Model>, Host) {
    let host = Host::new();
    let model = Arc::new(Model {
        behaves,
        asked: Mutex::default(),
    });
    let services = Services {
        completer: Some(Arc::clone(&model) as Arc<dyn Completer>),
        ..host.services()
    };
    let settings = EngineSettings {
        config: json!({ "on_thread": on_thread }),
        context_length: 1000,
    };
    let module = EngineModule::from_static(engine_module!(Asking)).unwrap();
    let template = Template::create(&module, settings, services).unwrap();
    let mut engine = template.clone_for_agent().unwrap();
    let request = CompressRequest {
        messages: conversation(),
        ..CompressRequest::default()
    };
    let reason = match engine.compress(request, control) {
        Ok(Emission::Unchanged { reason }) => reason,
        Ok(other) => panic!("{other:?}"),
        Err(fault) => fault.to_string(),
    };
    (reason, model, host)
}

fn patient() -> PassControl {
    PassControl::new(Some(Duration::from_secs(30)), None)
}

#[test]
fn a_granted_model_answers_in_a_call_and_on_the_engines_own_thread() {
    for on_thread in [false, true] {
        let (reason, model, host) = run("answers", on_thread, &patient());
        assert_eq!(reason, "short by m");
        let asked: serde_json::Value =
            serde_json::from_str(&model.asked.lock().unwrap()[0]).unwrap();
        assert_eq!(asked["purpose"], "test");
        assert_eq!(asked["max_tokens"], 9);
        assert_eq!(host.log().contains(&"parts short".to_owned()), !on_thread);
    }
}

#[test]
fn a_model_that_fails_is_an_error_with_its_class() {
    // contract: SAFE-2
    assert_eq!(run("refuses", false, &patient()).0, "Quota: no money");
    let (reason, ..) = run("panics", false, &patient());
    assert!(reason.starts_with("Other: "), "{reason}");
}

#[test]
fn text_that_streams_in_keeps_a_pass_alive() {
    // contract: PASS-4
    let control = PassControl::new(
        Some(Duration::from_millis(600)),
        Some(Duration::from_secs(30)),
    );
    assert_eq!(run("streams", false, &control).0, "short by m");
}

#[test]
fn a_completion_is_cancelled_with_its_call() {
    // contract: PASS-4
    let control = PassControl::new(Some(Duration::from_millis(300)), None);
    let (reason, ..) = run("waits", false, &control);
    assert!(
        reason.contains("came back only after its 300ms"),
        "{reason}"
    );
}

#[test]
fn without_a_grant_there_is_nothing_to_call() {
    let host = Host::new();
    let module = EngineModule::from_static(engine_module!(Asking)).unwrap();
    let template = Template::create(&module, EngineSettings::default(), host.services()).unwrap();
    let mut engine = template.clone_for_agent().unwrap();
    assert_eq!(engine.should_compress(None).reason, "false");
    let request = CompressRequest {
        messages: conversation(),
        ..CompressRequest::default()
    };
    let Ok(Emission::Unchanged { reason }) = engine.compress(request, &patient()) else {
        panic!("it says why");
    };
    assert!(reason.starts_with("NotGranted"), "{reason}");
}

#[test]
fn lines_above_the_level_are_not_logged() {
    let (_, _, host) = run("answers", false, &patient());
    let log = host.log();
    for (level, there) in [
        ("Error", true),
        ("Warn", true),
        ("Info", true),
        ("Debug", false),
    ] {
        assert_eq!(log.contains(&level.to_owned()), there, "{level}: {log:?}");
    }
}
