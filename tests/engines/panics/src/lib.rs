//! A Rust engine that misbehaves in the slot that its settings name: `panics: {compress: panic}`.
//!
//! Values: `panic`, `panic with a number`, `fail`, `sleep` (3 s), `thread` (a thread of its own panics), `tls` (leaves
//! thread-local state with a destructor behind), `trace` (writes through `tracing`), `print` (`println!`), `abort` (takes the process down). Without a
//! setting a slot does what a good engine does. `drop` is a slot like the others.

use std::cell::RefCell;
use std::time::Duration;

use hermes_plugin_api::{
    Call, CloneForAgent, Commands, Compress, ContextEngine, Create, Decision, Emit, EngineError,
    EngineState, Idle, Messages, Pass, Passes, Preflight, Select, SelectContext, Session, Sessions,
    Status, ToolCall, Tools, Turn, TurnComplete, Verdict, export_engine,
};
use serde_json::{Value, json};

/// Thread-local state whose destructor runs when the thread ends, long after the call.
struct Leftover(Vec<u8>);

impl Drop for Leftover {
    fn drop(&mut self) {
        self.0.fill(0);
    }
}

thread_local! {
    static LEFTOVER: RefCell<Leftover> = RefCell::new(Leftover(vec![1; 64]));
}

struct Panics {
    state: EngineState,
    settings: Value,
    calls: u64,
}

impl Panics {
    fn act(&mut self, slot: &str) -> Result<(), EngineError> {
        self.calls += 1;
        act(&self.settings, slot)
    }
}

fn act(settings: &Value, slot: &str) -> Result<(), EngineError> {
    match settings[slot].as_str().unwrap_or_default() {
        "panic" => panic!("boom in {slot}"),
        "panic with a number" => std::panic::panic_any(7_u32),
        "fail" => Err(EngineError::failed(format_args!(
            "{slot} failed as it was told"
        ))),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3));
            Ok(())
        }
        "thread" => {
            let thread = std::thread::Builder::new().name("worker of panics".to_owned());
            let joined = thread.spawn(|| panic!("boom in a thread"))?.join();
            debug_assert!(joined.is_err());
            Ok(())
        }
        "tls" => {
            LEFTOVER.with_borrow_mut(|leftover| leftover.0.push(1));
            Ok(())
        }
        "trace" => {
            tracing::warn!(slot, number = 7, "traced");
            Ok(())
        }
        "abort" => std::process::abort(),
        "print" => {
            println!("panics printed this");
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        // A destructor has nobody to answer to; only a panic of it is of interest.
        let _ = act(&self.settings, "drop");
    }
}

impl ContextEngine for Panics {
    const NAME: &'static str = "panics";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        act(cx.config(), "create")?;
        Ok(Self {
            state: EngineState::new(cx.context_length()),
            settings: cx.config().clone(),
            calls: 0,
        })
    }

    fn state(&self) -> EngineState {
        // A failure cannot be expressed here; a panic can.
        let _ = act(&self.settings, "state");
        self.state
    }

    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }

    fn update_model(
        &mut self,
        _: &Call<'_>,
        model: &hermes_plugin_api::Model<'_>,
    ) -> Result<(), EngineError> {
        self.state.apply_model(model);
        self.act("update_model")
    }

    fn update_from_response(
        &mut self,
        _: &Call<'_>,
        usage: &hermes_plugin_api::Usage<'_>,
    ) -> Result<(), EngineError> {
        self.state.apply_usage(usage);
        self.act("update_from_response")
    }

    fn session_reset(&mut self, _: &Call<'_>) -> Result<(), EngineError> {
        self.state.reset();
        self.act("session_reset")
    }

    fn should_compress(
        &mut self,
        _: &Call<'_>,
        prompt_tokens: Option<u64>,
    ) -> Result<Decision, EngineError> {
        self.act("should_compress")?;
        let over = prompt_tokens.is_some_and(|tokens| tokens >= self.state.threshold_tokens);
        Ok(if over { Decision::Yes } else { Decision::No })
    }

    fn compress(
        &mut self,
        _: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let count = input.messages().len();
        out.keep(0..count.min(1))?;
        self.act("compress")?;
        out.keep(count.min(1)..count)?;
        Ok(Verdict::Done)
    }
}

impl CloneForAgent for Panics {
    fn clone_for_agent(&self, _: &Call<'_>) -> Result<Self, EngineError> {
        act(&self.settings, "clone")?;
        Ok(Self {
            state: self.state,
            settings: self.settings.clone(),
            calls: 0,
        })
    }
}

impl Sessions for Panics {
    fn session_start(&mut self, _: &Call<'_>, _: &Session<'_>) -> Result<(), EngineError> {
        self.act("session_start")
    }

    fn session_end(&mut self, _: &Call<'_>, _: &Session<'_>) -> Result<(), EngineError> {
        self.act("session_end")
    }
}

impl Passes for Panics {
    fn pass_result(&mut self, _: &Call<'_>, _: &Pass<'_>) -> Result<(), EngineError> {
        self.act("pass_result")
    }
}

impl Preflight for Panics {
    fn preflight(
        &mut self,
        _: &Call<'_>,
        _: Option<u64>,
        _: Messages<'_>,
    ) -> Result<bool, EngineError> {
        self.act("preflight")?;
        Ok(false)
    }
}

impl SelectContext for Panics {
    fn select_context(
        &mut self,
        _: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let count = input.request().len();
        out.keep(0..count / 2)?;
        self.act("select_context")?;
        out.keep(count / 2..count)?;
        Ok(Verdict::Done)
    }
}

impl TurnComplete for Panics {
    fn turn_complete(&mut self, _: &Call<'_>, _: &Turn<'_>) -> Result<(), EngineError> {
        self.act("turn_complete")
    }
}

impl Tools for Panics {
    fn tool_schemas(&mut self, _: &Call<'_>) -> Result<String, EngineError> {
        self.act("tool_schemas")?;
        Ok(json!([{ "name": "panics_count", "description": "Counts calls", "parameters": { "type": "object" } }])
            .to_string())
    }

    fn tool_call(&mut self, _: &Call<'_>, _: &ToolCall<'_>) -> Result<String, EngineError> {
        self.act("tool_call")?;
        Ok(json!({ "calls": self.calls }).to_string())
    }
}

impl Status for Panics {
    fn status(&mut self, _: &Call<'_>) -> Result<String, EngineError> {
        self.act("status")?;
        Ok(json!({ "calls": self.calls }).to_string())
    }
}

impl Commands for Panics {
    fn command(&mut self, _: &Call<'_>, argv: &[String]) -> Result<String, EngineError> {
        self.act("command")?;
        Ok(argv.join(" "))
    }
}

impl Idle for Panics {
    fn idle(&mut self, _: &Call<'_>) -> Result<bool, EngineError> {
        self.act("idle")?;
        Ok(false)
    }
}

export_engine!(Panics);
