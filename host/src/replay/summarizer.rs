//! The helper model of a replay: none, or a script of its answers.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::engine::Completer;

/// `--summarizer deterministic|scripted:FILE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Summarizer {
    /// No model: an engine that wants a summary makes one itself.
    #[default]
    Deterministic,
    /// The answers stand in a file, in order.
    Scripted(PathBuf),
}

impl FromStr for Summarizer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "deterministic" {
            return Ok(Summarizer::Deterministic);
        }
        match text.strip_prefix("scripted:") {
            Some("") | None => Err("write `deterministic` or `scripted:FILE`".to_owned()),
            Some(file) => Ok(Summarizer::Scripted(PathBuf::from(file))),
        }
    }
}

/// A script cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be opened or read.
    #[error("cannot read the script {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is no JSON.
    #[error("{path}: line {line}, column {column}: {reason}")]
    Json {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser missed.
        reason: String,
    },
    /// One of the answers is none.
    #[error(
        "{path}: answer {number} is {found}; an answer is a text, null, or an object with \"text\" or \"error\""
    )]
    Answer {
        /// The file.
        path: PathBuf,
        /// From 1.
        number: usize,
        /// What stands there.
        found: &'static str,
    },
}

/// A model that answers from a script.
///
/// After the last answer every further call is an error, so that a script that is too short shows.
#[derive(Debug)]
pub struct Script {
    answers: Vec<Value>,
    next: Mutex<usize>,
}

impl Script {
    /// Reads a script: a JSON array of answers, or one answer after another (JSONL).
    ///
    /// # Errors
    /// When the file cannot be read, is no JSON, or holds something that is no answer.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let failed = |source| ScriptError::Read {
            path: path.to_owned(),
            source,
        };
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(std::io::Error::other("it is no regular file")));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let values = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}'))
            .into_iter::<Value>()
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| ScriptError::Json {
                path: path.to_owned(),
                line: error.line(),
                column: error.column(),
                reason: reason(&error),
            })?;
        let values = match <[Value; 1]>::try_from(values) {
            Ok([Value::Array(answers)]) => answers,
            Ok(one) => one.into(),
            Err(values) => values,
        };
        let answers = values.into_iter().enumerate().map(|(at, value)| {
            answer(value).map_err(|found| ScriptError::Answer {
                path: path.to_owned(),
                number: at + 1,
                found,
            })
        });
        Ok(Script {
            answers: answers.collect::<Result<_, _>>()?,
            next: Mutex::new(0),
        })
    }

    /// Begins again with the first answer.
    pub fn rewind(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = 0;
    }
}

impl Completer for Script {
    fn complete(
        &self,
        _request: &str,
        _timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
        on_text: &mut dyn FnMut(&str),
    ) -> String {
        if cancelled() {
            return json!({"error": {"class": "cancelled", "message": "cancelled"}}).to_string();
        }
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            *next - 1
        };
        let Some(answer) = self.answers.get(at) else {
            let message = format!(
                "the script has {} answers, this is call {}",
                self.answers.len(),
                at + 1
            );
            return json!({"error": {"class": "other", "message": message}}).to_string();
        };
        if let Some(text) = answer.get("text").and_then(Value::as_str) {
            on_text(text);
        }
        answer.to_string()
    }

    fn context_length(&self) -> u64 {
        0
    }
}

/// serde_json's sentence without the position at its end, which is told apart.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// An answer in the form that `complete` gives.
fn answer(value: Value) -> Result<Value, &'static str> {
    match value {
        Value::Null => Ok(completion(Map::new(), "")),
        Value::String(text) => Ok(completion(Map::new(), &text)),
        Value::Object(mut object) => match object.remove("error") {
            Some(Value::String(message)) => {
                Ok(json!({"error": {"class": "other", "message": message}}))
            }
            Some(Value::Object(mut error)) => {
                error.entry("class").or_insert_with(|| json!("other"));
                error
                    .entry("message")
                    .or_insert_with(|| json!("scripted failure"));
                Ok(json!({"error": error}))
            }
            Some(_) => Err("an object whose \"error\" is neither text nor object"),
            None => {
                let text = match object.remove("text") {
                    Some(Value::String(text)) => text,
                    Some(Value::Null) | None => String::new(),
                    Some(_) => return Err("an object whose \"text\" is no text"),
                };
                Ok(completion(object, &text))
            }
        },
        Value::Bool(_) => Err("a truth value"),
        Value::Number(_) => Err("a number"),
        Value::Array(_) => Err("a list"),
    }
}

fn completion(mut rest: Map<String, Value>, text: &str) -> Value {
    rest.insert("text".to_owned(), json!(text));
    rest.entry("finish_reason").or_insert_with(|| json!("stop"));
    rest.entry("model").or_insert_with(|| json!("scripted"));
    rest.entry("usage").or_insert_with(|| json!({}));
    Value::Object(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Result<Script, ScriptError> {
        let file = tempfile::NamedTempFile::new().expect("temp file");
        std::fs::write(file.path(), text).expect("written");
        Script::read(file.path())
    }

    fn ask(script: &Script) -> Value {
        let answer = script.complete("{}", None, &|| false, &mut |_| {});
        serde_json::from_str(&answer).expect("an answer is JSON")
    }

    #[test]
    fn answers_come_in_order_whatever_the_form_of_the_script() {
        for text in [
            r#"["one", null, {"error": {"class": "quota"}}]"#,
            "\"one\"\nnull\n{\"error\":{\"class\":\"quota\"}}\n",
        ] {
            let script = script(text).expect("a script");
            assert_eq!(ask(&script)["text"], "one");
            assert_eq!(ask(&script)["text"], "");
            assert_eq!(ask(&script)["error"]["class"], "quota");
            assert!(
                ask(&script)["error"]["message"]
                    .as_str()
                    .is_some_and(|m| m.contains("3 answers"))
            );
            script.rewind();
            assert_eq!(ask(&script)["text"], "one");
        }
    }

    #[test]
    fn what_is_no_script_is_refused_with_its_place() {
        let told = |text| script(text).expect_err("refused").to_string();
        assert!(told("[1]").contains("answer 1 is a number"));
        assert!(told("\"a\"\n{\"text\": }").contains("line 2, column"));
        assert!(Script::read(Path::new("/")).is_err());
        assert!("scripted:".parse::<Summarizer>().is_err());
    }
}
