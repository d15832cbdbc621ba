//! Tools of the program that embeds the host.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Place, Tool};

/// What carries a call out.
type Run = dyn Fn(&Value, &Place) -> Result<String, String> + Send + Sync;

/// A tool that your program gives to an agent, in [`AgentOptions::host_tools`](crate::agent::AgentOptions::host_tools).
///
/// ```
/// use hermes::agent::tools::HostTool;
/// use serde_json::json;
///
/// let weather = HostTool::new(
///     "weather",
///     "The weather in a city, now.",
///     json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
///     |arguments, _place| match arguments["city"].as_str() {
///         Some(city) => Ok(format!("It rains in {city}.")),
///         None => Err("`city` is missing".to_owned()),
///     },
/// );
/// assert_eq!(weather.name(), "weather");
/// ```
///
/// The function gets the arguments as the model wrote them: valid JSON, but not checked against the schema. It runs on the
/// thread that runs the turn, one call at a time for each agent, and for as long as it likes; when the user
/// interrupts the turn, [`Place::cancel`] becomes true, and a call that may take long looks at it. Its text goes to the
/// model: as it is where it is a JSON object or list, else as `{"result": …}`. An error, and a panic, is told to the
/// model as `{"error": …}`, and the conversation goes on.
#[derive(Clone)]
pub struct HostTool {
    name: String,
    description: String,
    parameters: Value,
    run: Arc<Run>,
}

impl HostTool {
    /// A tool with a name (letters, digits, `_` and `-`, at most 64), a description for the model, and a JSON Schema of its
    /// arguments (`null`: it takes none).
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        run: impl Fn(&Value, &Place) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        HostTool {
            name: name.into(),
            description: description.into(),
            parameters,
            run: Arc::new(run),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a provider is told of it.
    pub(in crate::agent) fn schema(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        })
    }

    /// The tool with its schema in the form in which a request carries it.
    pub(in crate::agent) fn with_schema(&self, schema: String) -> Box<dyn Tool> {
        Box::new(Offered {
            schema,
            run: Arc::clone(&self.run),
        })
    }
}

impl fmt::Debug for HostTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

struct Offered {
    schema: String,
    run: Arc<Run>,
}

impl Tool for Offered {
    fn schema(&self) -> &str {
        &self.schema
    }

    fn call(&self, arguments: &str, place: &Place) -> String {
        let error = |text: String| json!({ "error": text }).to_string();
        let arguments: Value = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(why) => {
                return error(format!(
                    "the arguments are no valid JSON ({why}); were they cut off? Send the whole call again"
                ));
            }
        };
        // What it shares with the program is the program's to mend; the conversation goes on.
        match catch_unwind(AssertUnwindSafe(|| (self.run)(&arguments, place))) {
            Ok(Ok(text)) => as_json(text),
            Ok(Err(why)) => error(why),
            Err(_) => error("the tool failed because of a fault in the program".to_owned()),
        }
    }
}

/// An object or a list stays what it is.
fn as_json(text: String) -> String {
    let is_structured = text.trim_start().starts_with(['{', '[']);
    if is_structured && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() {
        return text;
    }
    json!({ "result": text }).to_string()
}
