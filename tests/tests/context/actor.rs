//! An engine that does what it is told, rightly or wrongly, and writes down what it was asked.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use hermes::context::AgentEngine;
use hermes::engine::{EngineSettings, Ledger, ModelInfo, Services, Template};
use hermes::plugin::EngineModule;
use hermes_message::Message;
use hermes_plugin_api::{
    Call, Compress, ContextEngine, Create, Decision, Emit, EngineError, EngineState, MessageView,
    Messages, Model, Pass, Passes, Preflight, Select, SelectContext, Session, Sessions, Turn,
    TurnComplete, Usage, Verdict, engine_module,
};
use serde_json::json;

/// What one actor is to do, and what it has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) should: bool,
    pub(crate) preflight: bool,
    pub(crate) select: &'static str,
    pub(crate) compress: &'static str,
    pub(crate) log: Vec<String>,
}

static SCRIPTS: LazyLock<Mutex<HashMap<String, Script>>> = LazyLock::new(Mutex::default);

/// Reads or changes the script of an actor.
pub(crate) fn script<T>(id: &str, change: impl FnOnce(&mut Script) -> T) -> T {
    let mut scripts = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
    change(scripts.entry(id.to_owned()).or_default())
}

/// What the actor was asked since this was last called.
pub(crate) fn take_log(id: &str) -> Vec<String> {
    script(id, |script| std::mem::take(&mut script.log))
}

/// An agent with an actor of this name.
pub(crate) fn actor(id: &str) -> AgentEngine {
    agent(engine_module!(Actor), id)
}

/// An agent with an engine that has the required members only.
pub(crate) fn plain(id: &str) -> AgentEngine {
    agent(engine_module!(Plain), id)
}

fn agent(module: &'static hermes_engine_abi::Module, id: &str) -> AgentEngine {
    let module = EngineModule::from_static(module).expect("a module that passes the checks");
    let settings = EngineSettings {
        config: json!({"id": id}),
        context_length: 0,
    };
    let services = Services {
        ledger: Ledger::new(),
        ..Services::default()
    };
    let template = Template::create(&module, settings, services).expect("the registered instance");
    script(id, |script| *script = Script::default());
    let handle = template.clone_for_agent().expect("an instance");
    let engine = AgentEngine::new(handle, &ModelInfo::default(), None, None);
    // What a test sees begins after that.
    take_log(id);
    engine
}

struct Core {
    id: String,
    state: EngineState,
}

impl Core {
    fn create(cx: &Create<'_>) -> Self {
        let id = cx.config()["id"].as_str().unwrap_or_default().to_owned();
        Core {
            id,
            state: EngineState::new(cx.context_length()),
        }
    }

    fn log(&self, line: String) {
        script(&self.id, |script| script.log.push(line));
    }

    fn should_compress(&self, tokens: Option<u64>) -> Decision {
        self.log(format!("should_compress {}", tokens.is_some()));
        if script(&self.id, |script| script.should) {
            Decision::Yes
        } else {
            Decision::No
        }
    }

    fn compress(
        &mut self,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        self.log(format!(
            "compress {} {:?} focus={:?}",
            input.pass_id(),
            input.trigger(),
            input.focus()
        ));
        let mode = script(&self.id, |script| script.compress);
        let verdict = play(mode, input.messages(), input.incoming(), out)?;
        if verdict == Verdict::Done {
            self.state.compression_count += 1;
        }
        Ok(verdict)
    }
}

fn parsed(view: &MessageView<'_>) -> Result<Message, EngineError> {
    view.parse()
        .map_err(|error| EngineError::failed(error.to_string()))
}

/// Plays one way to treat a list.
fn play(
    mode: &str,
    messages: Messages<'_>,
    incoming: Option<usize>,
    out: &mut Emit<'_>,
) -> Result<Verdict, EngineError> {
    let len = messages.len();
    let newest = incoming.unwrap_or(len);
    match mode {
        "" | "none" => return Ok(Verdict::unchanged("nothing to do")),
        "same" => out.keep(0..len)?,
        "equal" => messages
            .iter()
            .try_for_each(|message| out.push(message.json()))?,
        "with-identity" => messages
            .iter()
            .try_for_each(|message| out.push_message(&parsed(&message)?))?,
        "empty" => {}
        "longer" => {
            out.keep(0..len)?;
            out.push(r#"{"role":"assistant","content":"and one more thing"}"#)?;
        }
        // The system prompt and everything from the newest user message on.
        "cut" => {
            out.keep(0..1)?;
            out.keep(newest..len)?;
        }
        // The same, with a summary of its own in between, folded into the newest user message.
        "fold" => {
            let text = parsed(&messages.get(newest))?;
            out.keep(0..1)?;
            let fold = json!({"role": "user", "content": format!("Summary: much was read.\n\n{}", text.text()),
                "message_uid": "eee", "_absorbed_message_uids": [messages.get(newest).uid()]});
            out.push(&fold.to_string())?;
            out.keep(newest + 1..len)?;
        }
        // A note on the system prompt and a shorter answer, both with their identity.
        "edit" => {
            let prompt = parsed(&messages.get(0))?;
            let noted = format!("{}\n[compacted]", prompt.text());
            out.edit(
                &messages.get(0),
                &json!({"role": "system", "content": noted}).to_string(),
            )?;
            out.keep(1..4)?;
            out.edit(
                &messages.get(4),
                &json!({"role": "assistant", "content": "ok"}).to_string(),
            )?;
            out.keep(newest..len)?;
        }
        "one-shorter" => {
            out.keep(0..1)?;
            out.keep(5..len)?;
        }
        "newest-user" => out.keep(newest..newest + 1)?,
        // A result without its call.
        "orphan" => {
            out.keep(0..1)?;
            out.keep(newest..newest + 1)?;
            out.push(r#"{"role":"tool","tool_call_id":"call_9","content":"who asked?"}"#)?;
        }
        // A call without its result.
        "split" => {
            out.keep(0..3)?;
            out.keep(newest..len)?;
        }
        "no-role" => {
            out.keep(0..1)?;
            out.push(r#"{"content":"who am I?"}"#)?;
            out.keep(newest..len)?;
        }
        "only-orphan" => {
            out.push(r#"{"role":"tool","tool_call_id":"call_9","content":"who asked?"}"#)?;
        }
        "no-object" => out.push("[1]")?,
        "no-system" => out.keep(newest..len)?,
        "no-user" => {
            out.keep(0..5)?;
        }
        "uid-twice" => {
            out.keep(0..1)?;
            let uid = messages.get(1).uid().unwrap_or("u");
            out.push(&json!({"role": "user", "content": "one", "message_uid": uid}).to_string())?;
            out.push(
                &json!({"role": "assistant", "content": "two", "message_uid": uid}).to_string(),
            )?;
            out.keep(newest..len)?;
        }
        "error" => return Err(EngineError::failed("boom")),
        "panic" => panic!("the actor panics"),
        other => panic!("there is no mode {other}"),
    }
    Ok(Verdict::Done)
}

/// An engine with every group that a conversation uses.
pub(crate) struct Actor(Core);

/// An engine with the required members only.
pub(crate) struct Plain(Core);

macro_rules! required {
    ($engine:ident, $name:literal) => {
        impl ContextEngine for $engine {
            const NAME: &'static str = $name;

            fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
                Ok($engine(Core::create(cx)))
            }

            fn state(&self) -> EngineState {
                self.0.state
            }

            fn state_mut(&mut self) -> &mut EngineState {
                &mut self.0.state
            }

            fn update_model(&mut self, _: &Call<'_>, model: &Model<'_>) -> Result<(), EngineError> {
                let (percent, map) = (model.threshold_percent(), model.model_thresholds().len());
                self.0.log(format!("update_model {percent:?} of {map}"));
                self.0.state.apply_model(model);
                Ok(())
            }

            fn update_from_response(
                &mut self,
                _: &Call<'_>,
                usage: &Usage<'_>,
            ) -> Result<(), EngineError> {
                self.0
                    .log(format!("usage {:?}", usage.prompt_tokens.is_some()));
                self.0.state.apply_usage(usage);
                Ok(())
            }

            fn should_compress(
                &mut self,
                _: &Call<'_>,
                tokens: Option<u64>,
            ) -> Result<Decision, EngineError> {
                Ok(self.0.should_compress(tokens))
            }

            fn compress(
                &mut self,
                _: &Call<'_>,
                input: &Compress<'_>,
                out: &mut Emit<'_>,
            ) -> Result<Verdict, EngineError> {
                self.0.compress(input, out)
            }
        }
    };
}

required!(Actor, "actor");
required!(Plain, "plain");

impl SelectContext for Actor {
    fn select_context(
        &mut self,
        _: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let mode = script(&self.0.id, |script| script.select);
        self.0.log(format!(
            "select_context attempt {} budget {:?}",
            input.attempt(),
            input.budget_tokens()
        ));
        let list = match (mode, input.conversation()) {
            ("with-identity", Some(conversation)) => conversation,
            _ => input.request(),
        };
        play(mode, list, input.incoming(), out)
    }
}

impl TurnComplete for Actor {
    fn turn_complete(&mut self, _: &Call<'_>, turn: &Turn<'_>) -> Result<(), EngineError> {
        self.0.log(format!(
            "turn_complete {} {:?} {}",
            turn.turn_id(),
            turn.outcome(),
            turn.messages().len()
        ));
        Ok(())
    }
}

impl Sessions for Actor {
    fn session_start(&mut self, _: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError> {
        self.0.log(format!(
            "session_start {:?} last={}",
            session.reason(),
            session.last_pass_id()
        ));
        Ok(())
    }

    fn session_end(&mut self, _: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError> {
        self.0.log(format!(
            "session_end {}",
            session.messages().map_or(0, |messages| messages.len())
        ));
        Ok(())
    }
}

impl Passes for Actor {
    fn pass_result(&mut self, _: &Call<'_>, pass: &Pass<'_>) -> Result<(), EngineError> {
        let uids = pass.messages().map_or(0, |messages| {
            messages
                .iter()
                .filter(|message| message.uid().is_some())
                .count()
        });
        self.0.log(format!(
            "pass_result {} committed={} uids={uids}",
            pass.pass_id(),
            pass.committed()
        ));
        Ok(())
    }
}

impl Preflight for Actor {
    fn preflight(
        &mut self,
        _: &Call<'_>,
        _: Option<u64>,
        _: Messages<'_>,
    ) -> Result<bool, EngineError> {
        self.0.log("preflight".to_owned());
        Ok(script(&self.0.id, |script| script.preflight))
    }
}
