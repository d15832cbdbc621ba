//! An engine that appends one JSON line per call of every slot to the file that `witness.log` names, and does what the
//! rest of its settings say:
//!
//! - `select`: `none`, `all`, `equal` (pushes of equal objects), `tail` (system and the last `keep`), `drop` (the second
//!   message goes), `note` (pushes one more user message's text), `empty`, `junk` (pushes a number), `unknown` (no role).
//! - `compress`: `summary` (head, a pushed summary, tail; see `head`, `tail`), `unchanged`, `same`, `equal`, `longer`,
//!   `empty`, `junk`, `roleless`, `twice` (a foreign uid twice), `a_little` (a character less), `loses_user`, `edit` (a newer text for the
//!   first message), `own_uid` (a summary with a uid of its own).
//! - `should`: from so many tokens on; `every`: at every n-th question; `blocked`: the reason; `preflight`: from so many
//!   messages on.
//! - `tools`: a list, or a text that is handed out as it is; `answers`: what each tool does: `fail`, `no json`, or a text.
//! - `fail`, `panic`, `sleep`: by slot; `sleep` is in milliseconds and leaves a second line when it is over.
//! - `quiet`, `status`, `command`, `own_model` (an `update_model` that goes by none of the host's thresholds).

mod diary;
mod lists;
mod passes;

use std::sync::atomic::{AtomicU64, Ordering};

use hermes_plugin_api::{
    Call, CloneForAgent, Commands, Compress, ContextEngine, Create, Decision, Emit, EngineError,
    EngineState, Idle, Messages, Model, Pass, Passes, Preflight, Purpose, Select, SelectContext,
    Session, Sessions, Status, ToolCall, Tools, Turn, TurnComplete, Usage, Verdict, export_engine,
};
use serde_json::{Value, json};

use diary::Diary;

struct Witness {
    state: EngineState,
    settings: Value,
    diary: Diary,
    asked: u64,
}

/// Counts instances of this process.
static INSTANCES: AtomicU64 = AtomicU64::new(0);

fn next_instance() -> u64 {
    INSTANCES.fetch_add(1, Ordering::Relaxed)
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.diary.write("destroy", "", json!({}));
    }
}

impl ContextEngine for Witness {
    const NAME: &'static str = "witness";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        let settings = cx.config().clone();
        let mut state = EngineState::new(cx.context_length());
        state.quiet = settings["quiet"].as_bool().unwrap_or(false);
        if let Some(percent) = settings["threshold_percent"].as_f64() {
            state = state.with_threshold_percent(percent);
        }
        let diary = Diary::new(&settings, next_instance());
        let purpose = match cx.purpose() {
            Purpose::Template => "template",
            Purpose::Agent => "agent",
            Purpose::Probe => "probe",
        };
        let more = json!({"purpose": purpose, "window": cx.context_length(), "settings": settings});
        diary.write("create", "", more);
        Ok(Self {
            state,
            settings,
            diary,
            asked: 0,
        })
    }

    fn state(&self) -> EngineState {
        self.state
    }

    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }

    fn update_model(&mut self, cx: &Call<'_>, model: &Model<'_>) -> Result<(), EngineError> {
        self.state.apply_model(model);
        if self.settings["own_model"].as_bool() == Some(true) {
            self.state.threshold_tokens = model.context_length() / 10;
        }
        let more = json!({
            "model": model.model(), "window": model.context_length(), "thresholds": model.model_thresholds(),
            "percent": model.threshold_percent(), "threshold": self.state.threshold_tokens,
        });
        self.diary.enter(cx, "update_model", more)
    }

    fn update_from_response(
        &mut self,
        cx: &Call<'_>,
        usage: &Usage<'_>,
    ) -> Result<(), EngineError> {
        self.state.apply_usage(usage);
        let more = json!({
            "prompt": usage.prompt_tokens, "completion": usage.completion_tokens, "total": usage.total_tokens,
        });
        self.diary.enter(cx, "update_from_response", more)
    }

    fn session_reset(&mut self, cx: &Call<'_>) -> Result<(), EngineError> {
        self.state.reset();
        self.diary.enter(cx, "session_reset", json!({}))
    }

    fn should_compress(
        &mut self,
        cx: &Call<'_>,
        prompt_tokens: Option<u64>,
    ) -> Result<Decision, EngineError> {
        self.asked += 1;
        let over = |key: &str| {
            let from = self.settings[key].as_u64();
            from.is_some_and(|from| prompt_tokens.is_some_and(|tokens| tokens >= from))
        };
        let nth = self.settings["every"].as_u64().filter(|n| *n > 0);
        let yes = over("should") || nth.is_some_and(|n| self.asked.is_multiple_of(n));
        let more = json!({"tokens": prompt_tokens, "yes": yes});
        self.diary.enter(cx, "should_compress", more)?;
        Ok(match (yes, self.settings["blocked"].as_str()) {
            (_, Some(why)) => Decision::Blocked(why.to_owned()),
            (true, None) => Decision::Yes,
            (false, None) => Decision::No,
        })
    }

    fn compress(
        &mut self,
        cx: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let more = json!({
            "trigger": format!("{:?}", input.trigger()), "force": input.force(), "focus": input.focus(),
            "pass_id": input.pass_id(), "current": input.current_tokens(), "target": input.target_tokens(),
            "incoming": input.incoming(), "messages": diary::list(input.messages()),
        });
        self.diary.enter(cx, "compress", more)?;
        let verdict = passes::compress(&self.settings, input.messages(), out)?;
        if verdict == Verdict::Done {
            self.state.compression_count += 1;
        }
        Ok(verdict)
    }
}

impl CloneForAgent for Witness {
    fn clone_for_agent(&self, cx: &Call<'_>) -> Result<Self, EngineError> {
        let instance = next_instance();
        let more = json!({"made": instance});
        self.diary.enter(cx, "clone", more)?;
        Ok(Self {
            state: self.state,
            settings: self.settings.clone(),
            diary: self.diary.of(instance),
            asked: 0,
        })
    }
}

impl Sessions for Witness {
    fn session_start(&mut self, cx: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError> {
        let more = json!({
            "reason": format!("{:?}", session.reason()), "old": session.old_session_id(),
            "parent": session.parent_session_id(), "root": session.root_session_id(),
            "platform": session.platform(), "conversation": session.conversation_id(),
            "last_pass_id": session.last_pass_id(), "messages": session.messages().map(diary::list),
        });
        self.diary.enter(cx, "session_start", more)
    }

    fn session_end(&mut self, cx: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError> {
        let more = json!({
            "root": session.root_session_id(), "last_pass_id": session.last_pass_id(),
            "messages": session.messages().map(diary::list),
        });
        self.diary.enter(cx, "session_end", more)
    }
}

impl Passes for Witness {
    fn pass_result(&mut self, cx: &Call<'_>, pass: &Pass<'_>) -> Result<(), EngineError> {
        let more = json!({
            "pass_id": pass.pass_id(), "committed": pass.committed(), "why": pass.reason(),
            "messages": pass.messages().map(diary::list),
        });
        self.diary.enter(cx, "pass_result", more)
    }
}

impl Preflight for Witness {
    fn preflight(
        &mut self,
        cx: &Call<'_>,
        prompt_tokens: Option<u64>,
        messages: Messages<'_>,
    ) -> Result<bool, EngineError> {
        let from = self.settings["preflight"].as_u64();
        let yes = from.is_some_and(|from| messages.len() as u64 >= from);
        let more = json!({"tokens": prompt_tokens, "yes": yes, "messages": diary::list(messages)});
        self.diary.enter(cx, "preflight", more)?;
        Ok(yes)
    }
}

impl SelectContext for Witness {
    fn select_context(
        &mut self,
        cx: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let more = json!({
            "request": diary::list(input.request()), "conversation": input.conversation().map(diary::list),
            "incoming": input.incoming(), "budget": input.budget_tokens(), "fixed": input.fixed_tokens(),
            "attempt": input.attempt(),
        });
        self.diary.enter(cx, "select_context", more)?;
        lists::select(&self.settings, input.request(), out)
    }
}

impl TurnComplete for Witness {
    fn turn_complete(&mut self, cx: &Call<'_>, turn: &Turn<'_>) -> Result<(), EngineError> {
        let usage = turn.usage().map(|usage| {
            json!({
                "prompt": usage.prompt_tokens, "completion": usage.completion_tokens, "total": usage.total_tokens,
            })
        });
        let more = json!({
            "outcome": format!("{:?}", turn.outcome()), "turn_id": turn.turn_id(), "api_calls": turn.api_calls(),
            "usage": usage, "messages": diary::list(turn.messages()),
        });
        self.diary.enter(cx, "turn_complete", more)
    }
}

impl Tools for Witness {
    fn tool_schemas(&mut self, cx: &Call<'_>) -> Result<String, EngineError> {
        self.diary.enter(cx, "tool_schemas", json!({}))?;
        Ok(match &self.settings["tools"] {
            Value::Null => "[]".to_owned(),
            Value::String(text) => text.clone(),
            list => list.to_string(),
        })
    }

    fn tool_call(&mut self, cx: &Call<'_>, call: &ToolCall<'_>) -> Result<String, EngineError> {
        let more = json!({
            "name": call.name(), "arguments": call.arguments(), "id": call.tool_call_id(),
            "messages": call.messages().map(diary::list),
        });
        self.diary.enter(cx, "tool_call", more)?;
        match self.settings["answers"][call.name()].as_str() {
            Some("fail") => Err(EngineError::failed("the tool failed as it was told")),
            Some("no json") => Ok("this is no JSON".to_owned()),
            Some("panic") => panic!("boom in a tool"),
            Some(text) => Ok(json!({"answer": text}).to_string()),
            None => Ok(
                json!({"instance": self.diary.instance(), "session": cx.session_id()}).to_string(),
            ),
        }
    }
}

impl Status for Witness {
    fn status(&mut self, cx: &Call<'_>) -> Result<String, EngineError> {
        self.diary.enter(cx, "status", json!({}))?;
        Ok(json!({"asked": self.asked}).to_string())
    }
}

impl Commands for Witness {
    fn command(&mut self, cx: &Call<'_>, argv: &[String]) -> Result<String, EngineError> {
        self.diary.enter(cx, "command", json!({"argv": argv}))?;
        Ok(argv.join(" "))
    }
}

impl Idle for Witness {
    fn idle(&mut self, cx: &Call<'_>) -> Result<bool, EngineError> {
        self.diary.enter(cx, "idle", json!({}))?;
        Ok(false)
    }
}

export_engine!(Witness);
