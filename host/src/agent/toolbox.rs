//! The tools of one agent: the host's own, then its engine's (TOOL-1 … TOOL-4).

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::tools::{HostTool, Place, Tool};
use crate::context::AgentEngine;
use crate::engine::{FaultKind, MessageList, ToolRequest};

/// The longest name that every provider takes.
const LONGEST_NAME: usize = 64;
/// A schema above this is a mistake; it would be paid for with every request.
const LARGEST_SCHEMA: usize = 64 * 1024;

/// What an agent can call, and the bytes that say so in each of its requests.
pub(crate) struct Toolbox {
    own: Vec<Box<dyn Tool>>,
    own_names: Vec<String>,
    engine_names: Vec<String>,
    /// Whose tools the engine's are.
    engine: Option<String>,
    schemas: Vec<Arc<str>>,
}

/// One call of the model's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
}

impl Toolbox {
    /// The host's tools, then those of the program around it. Returns what to tell of those that are left out.
    pub(crate) fn new(own: Vec<Box<dyn Tool>>, more: &[HostTool]) -> (Self, Vec<String>) {
        let mut own = own;
        let mut own_names: Vec<String> = own
            .iter()
            .filter_map(|tool| name_of(tool.schema()))
            .collect();
        let mut warnings = Vec::new();
        for tool in more {
            let why = match usable(tool.schema()) {
                Ok((name, _)) if own_names.contains(&name) => {
                    "a tool of this name is there already".to_owned()
                }
                Ok((name, schema)) => {
                    own_names.push(name);
                    own.push(tool.with_schema(schema));
                    continue;
                }
                Err(why) => why,
            };
            warnings.push(format!(
                "the program's tool {:?} is left out: {why}",
                tool.name()
            ));
        }
        let mut toolbox = Toolbox {
            own_names,
            own,
            engine_names: Vec::new(),
            engine: None,
            schemas: Vec::new(),
        };
        toolbox.schemas = toolbox.own_schemas();
        (toolbox, warnings)
    }

    fn own_schemas(&self) -> Vec<Arc<str>> {
        self.own
            .iter()
            .map(|tool| wrapped(tool.schema()).into())
            .collect()
    }

    /// Whole `{"type":"function",…}` objects, in an order that stays.
    pub(crate) fn schemas(&self) -> &[Arc<str>] {
        &self.schemas
    }

    /// The names, the host's first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.own_names
            .iter()
            .chain(&self.engine_names)
            .map(String::as_str)
    }

    /// Whether another engine serves than the one whose tools these are.
    pub(crate) fn is_outdated(&self, engine: &AgentEngine) -> bool {
        self.engine.as_deref() != Some(engine.handle.name())
    }

    /// Asks the engine for its tools again. Returns what to tell the user; the list changes only if the tools did.
    pub(crate) fn refresh(&mut self, engine: &mut AgentEngine) -> Vec<String> {
        let offered = engine.handle.tool_schemas();
        // Asking may have been what took the engine out.
        let name = engine.handle.name().to_owned();
        let mut warnings = Vec::new();
        let offered = match offered {
            Ok(offered) => offered,
            // They were had before: what cannot be asked now has not lost them (TOOL-4).
            Err(_) if self.engine.as_deref() == Some(&name) => return warnings,
            Err(fault) => {
                // Of any other fault the engine's handle tells.
                if fault.kind == FaultKind::Busy {
                    warnings.push(fault.to_string());
                }
                Vec::new()
            }
        };
        let mut schemas = self.own_schemas();
        let mut taken: HashSet<String> = self.own_names.iter().cloned().collect();
        let mut names = Vec::new();
        for schema in offered {
            match usable(schema) {
                Err(why) => warnings.push(format!(
                    "context engine '{name}' offers a tool that is left out: {why}"
                )),
                Ok((tool, _)) if !taken.insert(tool.clone()) => {
                    tracing::warn!(engine = name, tool, "a tool of this name exists already");
                }
                Ok((tool, schema)) => {
                    schemas.push(wrapped(&schema).into());
                    names.push(tool);
                }
            }
        }
        self.engine = Some(name);
        self.engine_names = names;
        if self.schemas != schemas {
            self.schemas = schemas;
        }
        warnings
    }

    /// Carries a call out. The result is JSON; a failure is `{"error": …}`, and the conversation goes on (TOOL-3).
    pub(crate) fn call(
        &self,
        call: Call<'_>,
        engine: &mut AgentEngine,
        messages: &MessageList,
        place: &Place,
    ) -> String {
        // Some providers write nothing where a tool takes no arguments.
        let arguments = match call.arguments.trim() {
            "" => "{}",
            _ => call.arguments,
        };
        if let Some(at) = self.own_names.iter().position(|name| name == call.name) {
            return self.own[at].call(arguments, place);
        }
        if !self.engine_names.iter().any(|name| name == call.name) {
            let names: Vec<&str> = self.names().collect();
            return error(format!(
                "unknown tool '{}'; there are: {}",
                call.name,
                names.join(", ")
            ));
        }
        if self.is_outdated(engine) {
            return error(format!(
                "'{}' belongs to a context engine that does not serve any more",
                call.name
            ));
        }
        if let Err(why) = serde_json::from_str::<serde::de::IgnoredAny>(arguments) {
            return error(format!(
                "the arguments are no valid JSON ({why}); were they cut off? Send the whole call again"
            ));
        }
        engine.tool_call(ToolRequest {
            name: call.name.to_owned(),
            arguments: arguments.to_owned(),
            tool_call_id: call.id.to_owned(),
            messages: Some(messages.clone()),
        })
    }
}

/// `{"error": text}`.
pub(crate) fn error(text: impl Into<String>) -> String {
    json!({ "error": text.into() }).to_string()
}

fn wrapped(schema: &str) -> String {
    format!("{{\"type\":\"function\",\"function\":{schema}}}")
}

fn name_of(schema: &str) -> Option<String> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    Some(schema.get("name")?.as_str()?.to_owned())
}

/// A schema as every provider takes it, with its name; or what is wrong with it.
fn usable(schema: Value) -> Result<(String, String), String> {
    let Value::Object(mut schema) = schema else {
        return Err("it is no JSON object".to_owned());
    };
    // Some authors wrap it themselves.
    if let Some(Value::Object(inner)) = schema.remove("function") {
        schema = inner;
    }
    let name = match schema.get("name") {
        Some(Value::String(name)) if is_name(name) => name.clone(),
        Some(Value::String(name)) => {
            let shown: String = name.chars().take(80).collect();
            return Err(format!(
                "{shown:?} is no usable name (letters, digits, '_' and '-', 1 to {LONGEST_NAME} of them)"
            ));
        }
        _ => return Err("it has no name".to_owned()),
    };
    match schema.get("parameters") {
        None | Some(Value::Null) => {
            let nothing = json!({"type": "object", "properties": Map::new()});
            schema.insert("parameters".to_owned(), nothing);
        }
        Some(Value::Object(_)) => {}
        Some(_) => {
            return Err(format!(
                "'{name}': its parameters are no JSON Schema object"
            ));
        }
    }
    if !schema.get("description").is_none_or(Value::is_string) {
        schema.remove("description");
    }
    let text = Value::Object(schema).to_string();
    if text.len() > LARGEST_SCHEMA {
        return Err(format!(
            "'{name}': its schema has {} KB, more than {} KB",
            text.len() / 1024,
            LARGEST_SCHEMA / 1024
        ));
    }
    Ok((name, text))
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: TOOL-2
    // case: 45
    #[test]
    fn only_schemas_that_the_strictest_provider_takes_get_through() {
        let good = usable(json!({"name": "lcm_grep", "description": "d", "parameters": null}));
        let (name, text) = good.expect("a good schema");
        assert_eq!(name, "lcm_grep");
        assert!(
            text.contains(r#""parameters":{"type":"object","properties":{}}"#),
            "{text}"
        );
        let inner = usable(json!({"type": "function", "function": {"name": "x"}}));
        assert_eq!(inner.expect("a wrapped schema").0, "x");
        for bad in [
            json!(null),
            json!([]),
            json!({}),
            json!({"name": ""}),
            json!({"name": 7}),
            json!({"name": "bad name!"}),
            json!({"name": "n".repeat(65)}),
            json!({"name": "ok", "parameters": []}),
            json!({"name": "ok", "description": "x".repeat(LARGEST_SCHEMA)}),
        ] {
            let why = usable(bad.clone()).expect_err(&bad.to_string());
            assert!(!why.is_empty() && why.len() < 300, "{why}");
        }
    }
}
