//! What a client has sent.

use serde_json::Value;

/// One request as it came over the wire.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// `POST`, `GET`.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The path without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or(&self.target)
    }

    /// Whether it asks for a chat completion.
    #[must_use]
    pub fn is_chat(&self) -> bool {
        self.path().ends_with("/chat/completions")
    }

    /// The value of a header, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| &**value)
    }

    /// All headers, in their order.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The bytes of the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body as text.
    ///
    /// # Panics
    /// It is no UTF-8.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a request is text")
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// It is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The messages in the body.
    ///
    /// # Panics
    /// It has none.
    #[must_use]
    pub fn messages(&self) -> Vec<Value> {
        match self.json().get_mut("messages").map(Value::take) {
            Some(Value::Array(messages)) => messages,
            other => panic!("no list of messages: {other:?}"),
        }
    }

    /// The names of the tools in the body.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        let body = self.json();
        let tools = body.get("tools").and_then(Value::as_array);
        let name = |tool: &Value| Some(tool["function"]["name"].as_str()?.to_owned());
        tools.into_iter().flatten().filter_map(name).collect()
    }

    /// Whether it asks for a stream.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        // Inside a text the quotes would be escaped.
        std::str::from_utf8(&self.body)
            .is_ok_and(|body| body.contains("\"stream\":true") || body.contains("\"stream\": true"))
    }
}
