//! Writes the example session: an agent-shaped dialogue about this repository, one message a line.
//!
//! ```text
//! cargo run -p hermes --example make_session > examples/session.jsonl
//! ```
//!
//! Nobody is asked and nothing is random: the "agent" goes through the source files in order, uses tools whose
//! outputs are what the tools really find, makes edits to a copy in memory, runs into errors and decides things. The
//! same tree gives the same bytes.

mod tasks;
mod tools;
mod tree;

use std::io::{self, Write};

use serde_json::{Value, json};

use tools::Tools;
use tree::Tree;

/// The dialogue is long enough once it has so many messages; the task at hand is still finished.
const ENOUGH: usize = 470;

/// A dialogue that grows.
struct Session {
    messages: Vec<Value>,
    tools: Tools,
    calls: usize,
}

impl Session {
    fn new(tree: Tree) -> Self {
        Session {
            messages: Vec::new(),
            tools: Tools::new(tree),
            calls: 0,
        }
    }

    fn system(&mut self, text: &str) {
        self.messages
            .push(json!({"role": "system", "content": text}));
    }

    fn user(&mut self, text: &str) {
        self.messages.push(json!({"role": "user", "content": text}));
    }

    fn assistant(&mut self, text: &str) {
        self.messages
            .push(json!({"role": "assistant", "content": text}));
    }

    /// The assistant calls tools, several at once if need be, and reads what they say.
    fn call(&mut self, text: Option<&str>, calls: &[(&str, Value)]) -> Vec<String> {
        let mut made = Vec::new();
        let mut results = Vec::new();
        for (name, arguments) in calls {
            self.calls += 1;
            let id = format!("call_{:04}", self.calls);
            made.push(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()},
            }));
            results.push((id, self.tools.run(name, arguments)));
        }
        self.messages
            .push(json!({"role": "assistant", "content": text, "tool_calls": made}));
        for (id, output) in &results {
            self.messages
                .push(json!({"role": "tool", "tool_call_id": id, "content": output}));
        }
        results.into_iter().map(|(_, output)| output).collect()
    }
}

fn main() -> io::Result<()> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = Tree::read(&root)?;
    let paths = tree.sources();
    let mut session = Session::new(tree);
    session.system(SYSTEM);
    for (number, path) in paths.iter().enumerate() {
        if session.messages.len() >= ENOUGH {
            break;
        }
        tasks::work_on(&mut session, number, path);
    }
    tasks::finish(&mut session);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for message in &session.messages {
        serde_json::to_writer(&mut out, message)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

const SYSTEM: &str = "You are a maintenance agent for a Rust workspace. You read before you write, you change one \
thing at a time, and you say what you decided and why.\n\n\
Tools: list_files(path), read_file(path, from, lines), search(pattern, path), edit_file(path, old, new), \
check(path).\n\n\
RULE-1: never edit a file that you have not read in this session.\n\
RULE-2: a public item without a documentation comment is a fault.\n\
RULE-3: lines stay under 120 columns.\n\
RULE-4: if a tool reports an error, say so before you try again.";
