//! `context.timeouts`: how long each call into an engine may take.

use super::read::Reader;
use std::time::Duration;

/// One budget a call. Each field is the key of the same name below `context.timeouts`, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// `select_context`. Default 10 s.
    pub select_context: Duration,
    /// `on_turn_complete`. Default 10 s.
    pub turn_complete: Duration,
    /// `should_compress_preflight`. Default 10 s.
    pub preflight: Duration,
    /// Reading the counters. Default 2 s.
    pub state: Duration,
    /// `update_from_response`. Default 2 s.
    pub usage: Duration,
    /// `update_model`. Default 2 s.
    pub model: Duration,
    /// `on_session_reset`. Default 2 s.
    pub reset: Duration,
    /// `should_compress`. Default 2 s.
    pub should_compress: Duration,
    /// Making an instance. Default 10 s.
    pub create: Duration,
    /// Copying an instance for an agent. Default 10 s.
    pub clone: Duration,
    /// `on_session_start` and `on_session_end`. Default 10 s.
    pub session: Duration,
    /// Telling the engine what became of its result. Default 10 s.
    pub pass_result: Duration,
    /// `handle_tool_call`. Default 60 s.
    pub tool_call: Duration,
    /// A command of the engine. Default 60 s.
    pub command: Duration,
}

/// The keys below `context.timeouts`. `hooks` sets the three hooks at once; their own keys beat it.
pub(crate) const KNOWN: &[&str] = &[
    "hooks",
    "select_context",
    "turn_complete",
    "preflight",
    "state",
    "usage",
    "model",
    "reset",
    "should_compress",
    "create",
    "clone",
    "session",
    "pass_result",
    "tool_call",
    "command",
];

/// A time that can be waited for.
pub(crate) fn usable(seconds: f64) -> bool {
    (0.001..=super::compression::MAX_SECONDS).contains(&seconds)
}

impl Default for Timeouts {
    fn default() -> Self {
        let (short, medium, long) = (
            Duration::from_secs(2),
            Duration::from_secs(10),
            Duration::from_secs(60),
        );
        Self {
            select_context: medium,
            turn_complete: medium,
            preflight: medium,
            state: short,
            usage: short,
            model: short,
            reset: short,
            should_compress: short,
            create: medium,
            clone: medium,
            session: medium,
            pass_result: medium,
            tool_call: long,
            command: long,
        }
    }
}

impl Timeouts {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        reader.section(&["context", "timeouts"]);
        let mut seconds = |name: &str, default: Duration| {
            let key = ["context", "timeouts", name];
            let value = reader.number(&key, default.as_secs_f64(), "seconds above 0", usable);
            Duration::from_secs_f64(value)
        };
        let default = Self::default();
        let hooks = seconds("hooks", default.select_context);
        Self {
            select_context: seconds("select_context", hooks),
            turn_complete: seconds("turn_complete", hooks),
            preflight: seconds("preflight", hooks),
            state: seconds("state", default.state),
            usage: seconds("usage", default.usage),
            model: seconds("model", default.model),
            reset: seconds("reset", default.reset),
            should_compress: seconds("should_compress", default.should_compress),
            create: seconds("create", default.create),
            clone: seconds("clone", default.clone),
            session: seconds("session", default.session),
            pass_result: seconds("pass_result", default.pass_result),
            tool_call: seconds("tool_call", default.tool_call),
            command: seconds("command", default.command),
        }
    }

    /// A budget by the name of its key; none for `hooks`, which is no budget by itself.
    pub(crate) fn seconds(&self, name: &str) -> Option<f64> {
        let budget = match name {
            "select_context" => self.select_context,
            "turn_complete" => self.turn_complete,
            "preflight" => self.preflight,
            "state" => self.state,
            "usage" => self.usage,
            "model" => self.model,
            "reset" => self.reset,
            "should_compress" => self.should_compress,
            "create" => self.create,
            "clone" => self.clone,
            "session" => self.session,
            "pass_result" => self.pass_result,
            "tool_call" => self.tool_call,
            "command" => self.command,
            _ => return None,
        };
        Some(budget.as_secs_f64())
    }
}
