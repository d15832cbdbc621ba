//! The engine's tools, commands and status.

use serde_json::{Value, json};

use super::EngineHandle;
use crate::engine::args::SlotArgs;
use crate::engine::outcome::Success;
use crate::engine::{EngineFault, FaultKind, PassControl, Slot, ToolRequest};

impl EngineHandle {
    /// The schemas of the engine's tools, as it gives them; none without the slot.
    ///
    /// # Errors
    /// Says why they could not be had; the agent then has none of this engine's tools.
    pub fn tool_schemas(&mut self) -> Result<Vec<Value>, EngineFault> {
        const SLOT: Slot = Slot::ToolSchemas;
        if !self.has(SLOT) {
            return Ok(Vec::new());
        }
        let text = self.text(SLOT, SlotArgs::None)?;
        match serde_json::from_str(&text) {
            Ok(Value::Array(schemas)) => Ok(schemas),
            Ok(_) => Err(self.refuse(SLOT, "wrote JSON that is no array".to_owned())),
            Err(error) => Err(self.refuse(SLOT, format!("wrote what is no JSON: {error}"))),
        }
    }

    /// What a tool call may take, for [`EngineHandle::steered_tool_call`].
    #[must_use]
    pub fn tool_control(&self) -> PassControl {
        PassControl::new(self.core.services.timeouts.of(Slot::ToolCall), None)
    }

    /// Runs one of the engine's tools. The answer is always JSON; a fault is `{"error": …}` (TOOL-3).
    pub fn tool_call(&mut self, tool: ToolRequest) -> String {
        let control = self.tool_control();
        self.steered_tool_call(tool, &control)
    }

    /// [`EngineHandle::tool_call`], and `control` can stop it from outside.
    pub fn steered_tool_call(&mut self, tool: ToolRequest, control: &PassControl) -> String {
        const SLOT: Slot = Slot::ToolCall;
        let name = tool.name.clone();
        let error = |text: String| json!({ "error": text }).to_string();
        if !self.has(SLOT) {
            return error(format!("Unknown context engine tool: {name}"));
        }
        let answer = self.ask_steered(SLOT, SlotArgs::Tool(tool), None, control);
        let fault = match answer.and_then(|answer| self.written(SLOT, answer)) {
            Ok(text) => match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
                Ok(_) => return text,
                Err(error) => self.refuse(SLOT, format!("wrote what is no JSON: {error}")),
            },
            Err(fault) => fault,
        };
        error(format!(
            "Context engine tool '{name}' failed: {}",
            fault.why
        ))
    }

    /// Figures for a person: the usual ones, and the engine's own where it has some (ENG-13).
    pub fn status(&mut self) -> Value {
        let mut status = self.state().status();
        if !self.has(Slot::Status) {
            return status;
        }
        let Ok(text) = self.text(Slot::Status, SlotArgs::None) else {
            return status;
        };
        match serde_json::from_str(&text) {
            Ok(Value::Object(own)) => {
                // The call may have changed the usual ones.
                status = self.state().status();
                if let Value::Object(all) = &mut status {
                    all.extend(own);
                }
            }
            Ok(_) | Err(_) => {
                self.refuse(Slot::Status, "wrote what is no JSON object".to_owned());
            }
        }
        status
    }

    /// A command of the user's to the engine; the answer is text for a person.
    ///
    /// # Errors
    /// Says why there is no answer.
    pub fn command(&mut self, words: &[String]) -> Result<String, EngineFault> {
        const SLOT: Slot = Slot::Command;
        if !self.has(SLOT) {
            let why = "is not offered by this engine";
            return Err(self.core.fault(FaultKind::Unsupported, SLOT, why));
        }
        let words = Value::from(words.to_vec()).to_string();
        self.text(SLOT, SlotArgs::Command(words))
    }

    fn text(&mut self, slot: Slot, args: SlotArgs) -> Result<String, EngineFault> {
        let answer = self.ask(slot, args, None)?;
        self.written(slot, answer)
    }

    fn written(&mut self, slot: Slot, mut answer: Success) -> Result<String, EngineFault> {
        let text = answer.returned.sink.text();
        text.map_err(|why| self.refuse(slot, why))
    }

    fn refuse(&mut self, slot: Slot, why: String) -> EngineFault {
        let fault = self.core.fault(FaultKind::InvalidOutput, slot, why);
        self.keep_books(slot, Some(&fault));
        fault
    }
}
