//! A home with an engine, a host over it, and what must hold after every scenario.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use hermes::agent::{Agent, AgentOptions, Begin, Event, Host, HostOptions, TurnReport};
use hermes::config::HermesHome;
use hermes::context::Outcome;
use hermes::provider::Provider;
use hermes::store::{FILE_NAME, Store, StoreOptions};
use hermes_message::sequence::{self, Policy};
use hermes_message::{Message, Role};
use hermes_tests::{FakeProvider, Home, built};
use serde_json::Value;

use crate::script::Script;

/// The keys that no provider ever sees (UID-9).
const IDENTITY: [&str; 4] = [
    "message_uid",
    "_absorbed_message_uids",
    "_tool_call_uids",
    "_tool_call_uid",
];

/// What a world is made of.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    engine: String,
    witness: String,
    context: String,
    compression: String,
    window: Option<u64>,
    /// A real server instead of the script.
    url: Option<String>,
    /// More sections of the configuration.
    also: String,
}

impl Setup {
    /// The witness with these settings, a line each.
    pub(crate) fn witness(lines: &str) -> Self {
        Self {
            engine: "witness".to_owned(),
            witness: lines.to_owned(),
            context: String::new(),
            compression: String::new(),
            window: Some(100_000),
            url: None,
            also: String::new(),
        }
    }

    /// Another engine; `newest` implements no optional slot.
    pub(crate) fn engine(name: &str) -> Self {
        Self {
            engine: name.to_owned(),
            ..Self::witness("")
        }
    }

    /// Lines below `context.timeouts`.
    pub(crate) fn timeouts(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.context);
        self
    }

    /// Lines below `compression`.
    pub(crate) fn compression(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.compression);
        self
    }

    /// `model.context_length`; `None` leaves it to the provider.
    pub(crate) fn window(mut self, window: impl Into<Option<u64>>) -> Self {
        self.window = window.into();
        self
    }

    /// A real server instead of the script.
    pub(crate) fn http(mut self, provider: &FakeProvider) -> Self {
        self.url = Some(provider.url());
        self
    }

    /// More sections of the configuration, behind the others.
    pub(crate) fn also(mut self, text: &str) -> Self {
        text.clone_into(&mut self.also);
        self
    }

    pub(crate) fn world(self) -> World {
        let home = Home::new();
        let world = World {
            diary: home.outside().join("diary.jsonl"),
            home,
            script: Arc::default(),
            is_scripted: self.url.is_none(),
        };
        for name in ["witness", "newest"] {
            let _ = world
                .home
                .plugin(name)
                .manifest(&format!("name: {name}\nversion: 0.1.0\n"))
                .library(&format!("lib{name}.so"), built().library(name));
        }
        world.configure(&self);
        world
    }
}

/// A home, and a model that is scripted.
pub(crate) struct World {
    pub(crate) home: Home,
    pub(crate) script: Arc<Script>,
    is_scripted: bool,
    diary: PathBuf,
}

impl World {
    pub(crate) fn configure(&self, setup: &Setup) {
        let indented = |lines: &str| {
            lines.lines().fold(String::new(), |mut text, line| {
                let _ = writeln!(text, "  {line}");
                text
            })
        };
        let mut text = format!("context:\n  engine: {}\n", setup.engine);
        if !setup.context.is_empty() {
            let _ = write!(text, "  timeouts:\n{}", indented(&indented(&setup.context)));
        }
        text.push_str("model:\n  default: test-model\n");
        if let Some(url) = &setup.url {
            let _ = write!(
                text,
                "  provider: custom\n  base_url: {url}\n  api_key: fake-key\n"
            );
        }
        if let Some(window) = setup.window {
            let _ = writeln!(text, "  context_length: {window}");
        }
        if !setup.compression.is_empty() {
            let _ = write!(text, "compression:\n{}", indented(&setup.compression));
        }
        let log = self.diary.display();
        let _ = write!(text, "witness:\n  log: {log}\n{}", indented(&setup.witness));
        text.push_str(&setup.also);
        self.home.config(&text);
    }

    pub(crate) fn host(&self) -> Host {
        Host::open(HostOptions {
            home: HermesHome::at(self.home.path()),
            provider: self
                .is_scripted
                .then(|| -> Arc<dyn Provider> { self.script.clone() }),
            directory: self.home.outside().to_owned(),
            platform: "test".to_owned(),
            ..HostOptions::default()
        })
        .expect("a host")
    }

    /// A host whose engine is the one that was asked for, and an agent.
    pub(crate) fn agent(&self) -> (Host, Agent) {
        let host = self.host();
        assert_eq!(host.fallback(), None, "{:?}", host.take_warnings());
        let agent = host.agent(options()).expect("an agent");
        (host, agent)
    }

    /// An agent in a stored session.
    pub(crate) fn resume(&self, host: &Host, session: &str) -> Agent {
        let begin = Begin::Resume(session.to_owned());
        host.agent(AgentOptions { begin, ..options() })
            .expect("the session goes on")
    }

    /// The store, through a door of its own: as another program would see it.
    pub(crate) fn store(&self) -> Store {
        Store::open(&self.home.path().join(FILE_NAME), StoreOptions::default()).expect("a store")
    }

    /// Every line that the witness has written, its trial in another process aside.
    pub(crate) fn diary(&self) -> Diary {
        let text = fs::read_to_string(&self.diary).unwrap_or_default();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a JSON line"));
        Diary(lines.collect())
    }

    pub(crate) fn forget(&self) {
        let _ = fs::remove_file(&self.diary);
    }

    /// What must hold whatever has happened: the store is sound, its live rows are the agent's transcript byte for
    /// byte, each once; every request was valid, without identity, and began like the one before it.
    pub(crate) fn check(&self, agent: &Agent) {
        self.check_requests();
        let store = self.store();
        let report = store.check(false, &mut |_, _, _| {}).expect("checked");
        assert!(report.is_clean(), "{report:?}");
        if agent.messages().is_empty() {
            return;
        }
        let rows = store
            .messages(agent.session_id(), false)
            .expect("the session's rows");
        let stored: Vec<&str> = rows.iter().map(|row| &**row.message.stored()).collect();
        let live: Vec<&str> = agent
            .messages()
            .iter()
            .map(|message| &**message.stored())
            .collect();
        assert_eq!(stored, live, "the rows are the transcript");
        let mut seen = HashSet::new();
        for (row, message) in rows.iter().zip(agent.messages()) {
            assert_eq!(row.message.identity(), message.identity());
            let uid = message
                .identity()
                .uid
                .clone()
                .expect("every message has one");
            assert!(seen.insert(uid.clone()), "{uid} stands twice: {live:#?}");
        }
    }

    /// Every request so far is one that any provider takes.
    pub(crate) fn check_requests(&self) {
        let mut before: Option<(usize, String)> = None;
        for body in self.script.bodies() {
            check_body(&body.text);
            let list = list_of(&body.text);
            if let Some((segment, before)) = &before
                && *segment == body.segment
            {
                assert!(
                    list.starts_with(before.as_str()),
                    "the front of the request has changed:\n{before}\n{list}"
                );
            }
            before = Some((body.segment, list));
        }
    }
}

pub(crate) fn options() -> AgentOptions {
    AgentOptions {
        system_prompt: Some("Be brief.".to_owned()),
        tools: false,
        ..AgentOptions::default()
    }
}

/// A body that any provider takes, without identity.
pub(crate) fn check_body(body: &str) {
    let messages = messages_of(body);
    let broken = sequence::check(&messages, Policy::Request);
    assert!(broken.is_empty(), "{broken:?}: {body}");
    let value: Value = serde_json::from_str(body).expect("JSON");
    for message in value["messages"].as_array().expect("a list") {
        for key in IDENTITY {
            assert!(message.get(key).is_none(), "{key} in {message}");
        }
    }
}

/// The messages of a body.
pub(crate) fn messages_of(body: &str) -> Vec<Message> {
    let value: Value = serde_json::from_str(body).expect("JSON");
    let all = value["messages"].as_array().expect("a list").clone();
    all.iter()
        .map(|message| Message::parse(&message.to_string()).expect("a message"))
        .collect()
}

/// The text of a body's messages, without the closing bracket.
pub(crate) fn list_of(body: &str) -> String {
    let from = body.find("\"messages\":").expect("messages");
    let end = body
        .find(",\"tools\":[")
        .or_else(|| body.rfind(",\"stream\""));
    body[from..end.unwrap_or(body.len())]
        .trim_end_matches(']')
        .to_owned()
}

/// The tools of a body, as text.
pub(crate) fn tools_of(body: &str) -> String {
    let value: Value = serde_json::from_str(body).expect("JSON");
    value["tools"].to_string()
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect()
}

/// What a surface heard of one turn.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) statuses: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) text: String,
    pub(crate) again: usize,
    /// `model→other`, whenever another model was asked.
    pub(crate) instead: Vec<String>,
}

impl Heard {
    pub(crate) fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.text.push_str(text),
            Event::Status(line) => self.statuses.push(line.to_owned()),
            Event::Warning(line) => self.warnings.push(line.to_owned()),
            Event::Again { .. } => self.again += 1,
            Event::Instead { model, other, .. } => self.instead.push(format!("{model}→{other}")),
            _ => {}
        }
    }
}

pub(crate) fn turn(agent: &mut Agent, text: &str) -> TurnReport {
    listen(agent, text).0
}

pub(crate) fn listen(agent: &mut Agent, text: &str) -> (TurnReport, Heard) {
    let mut heard = Heard::default();
    let report = agent.turn(text, &mut |event| heard.hear(event));
    (report, heard)
}

/// A few turns, each of about `words` words.
pub(crate) fn talk(agent: &mut Agent, turns: usize, words: usize) {
    for number in 0..turns {
        let report = turn(
            agent,
            &format!("question {number} {}", "word ".repeat(words)),
        );
        assert_eq!(report.error, None);
    }
}

/// A pass that somebody asks for.
pub(crate) fn compress(agent: &mut Agent) -> Outcome {
    agent.compress(None, &mut |_| {})
}

/// A pass that somebody asks for, and that has to be committed.
#[track_caller]
pub(crate) fn compact(agent: &mut Agent) {
    let outcome = compress(agent);
    assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
}

/// What the witness has written down.
#[derive(Clone, Debug)]
pub(crate) struct Diary(pub(crate) Vec<Value>);

impl Diary {
    pub(crate) fn of(&self, slot: &str) -> Vec<&Value> {
        self.0.iter().filter(|line| line["slot"] == slot).collect()
    }

    /// The slots in the order of their calls, those of one instance.
    pub(crate) fn slots(&self, instance: &Value) -> Vec<&str> {
        let lines = self.0.iter().filter(|line| line["instance"] == *instance);
        lines
            .map(|line| line["slot"].as_str().expect("a slot"))
            .collect()
    }

    /// The slots in the order of their calls, those of all instances.
    pub(crate) fn order(&self) -> Vec<&str> {
        let slots = self.0.iter().map(|line| line["slot"].as_str());
        slots.map(|slot| slot.expect("a slot")).collect()
    }

    /// The instances that agents have got, in order.
    pub(crate) fn instances(&self) -> Vec<Value> {
        self.of("clone")
            .iter()
            .map(|line| line["made"].clone())
            .collect()
    }

    pub(crate) fn count(&self, slot: &str) -> usize {
        self.of(slot).len()
    }
}

/// The uids in a list of the diary.
pub(crate) fn uids(list: &Value) -> Vec<String> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|message| message["uid"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// The uids of a transcript.
pub(crate) fn own_uids(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .map(|message| {
            message
                .identity()
                .uid
                .as_deref()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// The message texts in a list of the diary.
pub(crate) fn jsons(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|message| message["json"].as_str().expect("a text"))
        .collect()
}

pub(crate) fn count_of(messages: &[Message], role: Role) -> usize {
    messages
        .iter()
        .filter(|message| message.role() == role)
        .count()
}
