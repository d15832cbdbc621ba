//! What the host itself takes for a turn: the model answers at once, everything else is real (the engine behind its
//! lane, the store).
//!
//! ```text
//! cargo bench -p hermes-tests --bench agent
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use hermes::agent::{Agent, AgentOptions, Begin, Host, HostOptions};
use hermes::config::HermesHome;
use hermes::context::request::Frame;
use hermes::engine::Usage;
use hermes::provider::{Cancel, Delta, Failure, Finish, Provider, Reply};
use hermes::store::{Durability, Mark, NewSession, Store, StoreOptions};
use hermes_message::{Message, build};
use hermes_tests::{Compile, workspace};
use serde_json::json;

/// Counts what the measured thread allocates.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A model that answers at once. It looks at the body as little as a socket would.
#[derive(Debug)]
struct Instantly;

impl Provider for Instantly {
    fn name(&self) -> &str {
        "instantly"
    }
    fn parameters(&self) -> &str {
        ""
    }
    fn send(
        &self,
        body: &str,
        _: &Cancel,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        black_box(body.len());
        on(Delta::Text("Yes."));
        Ok(Reply {
            message: build::assistant("Yes."),
            finish: Finish::Stop,
            usage: Some(Usage {
                prompt_tokens: Some(100),
                completion_tokens: Some(2),
                total_tokens: Some(102),
                ..Usage::default()
            }),
            notes: Vec::new(),
        })
    }
    fn context_length(&self, _: &str) -> Option<u64> {
        None
    }
}

/// One turn of 4 messages, 1.1 KB each.
fn turn(number: usize) -> [Message; 4] {
    let text = format!("{number} {}", "some words of a turn ".repeat(50));
    [
        json!({"role": "user", "content": text}),
        json!({"role": "assistant", "content": text, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}),
        json!({"role": "tool", "tool_call_id": "c", "content": text}),
        json!({"role": "assistant", "content": text}),
    ]
    .map(|value| Message::parse(&value.to_string()).expect("a message"))
}

/// A home whose store has one session of so many messages, and a window that holds ten times as many.
fn home(messages: usize) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("config.yaml"),
        "model: {default: bench, context_length: 100000000}\n",
    )
    .expect("written");
    let options = StoreOptions {
        durability: Durability::Off,
        ..StoreOptions::default()
    };
    let store = Store::open(&folder.path().join("state.db"), options).expect("a store");
    let id = store
        .create_session(&NewSession {
            source: "bench",
            ..NewSession::default()
        })
        .expect("a session");
    let mut mark = Mark::default();
    let mut batch: Vec<Message> = (0..messages / 4).flat_map(turn).collect();
    store.append(&id, &mut batch, &mut mark).expect("written");
    while store
        .catch_up(Duration::from_secs(5))
        .expect("indexed")
        .pending
        > 0
    {}
    (folder, id)
}

fn agent(home: &std::path::Path, session: &str, durability: Durability) -> (Host, Agent) {
    let host = Host::open(HostOptions {
        home: HermesHome::at(home),
        provider: Some(std::sync::Arc::new(Instantly)),
        directory: home.to_owned(),
        store: Some(StoreOptions {
            durability,
            ..StoreOptions::default()
        }),
        ..HostOptions::default()
    })
    .expect("a host");
    let begin = Begin::Resume(session.to_owned());
    let options = AgentOptions {
        begin,
        ..AgentOptions::default()
    };
    let agent = host.agent(options).expect("an agent");
    (host, agent)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Median time and allocations of a turn.
fn measure(agent: &mut Agent, turns: usize) -> (Duration, u64) {
    for _ in 0..5 {
        agent.turn("warm up?", &mut |_| {});
    }
    let mut allocations = Vec::new();
    let times = (0..turns)
        .map(|_| {
            let before = COUNT.get();
            let begun = Instant::now();
            let report = agent.turn("Is that so?", &mut |_| {});
            let took = begun.elapsed();
            allocations.push(COUNT.get() - before);
            assert_eq!(report.error, None);
            took
        })
        .collect();
    allocations.sort_unstable();
    (median(times), allocations[allocations.len() / 2])
}

fn join(agent: &Agent) -> Duration {
    let frame = Frame::new("bench", &[]);
    let times = (0..21)
        .map(|_| {
            let begun = Instant::now();
            black_box(frame.body(agent.messages()));
            begun.elapsed()
        })
        .collect();
    median(times)
}

fn main() {
    println!(
        "one turn (a question, an answer) with the built-in engine and a real store; median of 101"
    );
    println!(
        "{:>10} {:>12} {:>12} {:>12} {:>14} {:>12}",
        "messages", "turn", "join alone", "the rest", "synced (FULL)", "allocations"
    );
    for messages in [100, 1_000, 10_000] {
        let (folder, session) = home(messages);
        let (host, mut one) = agent(folder.path(), &session, Durability::Off);
        let (time, allocations) = measure(&mut one, 101);
        let joined = join(&one);
        drop(one);
        drop(host);
        let (_host, mut one) = agent(folder.path(), &session, Durability::Full);
        let (synced, _) = measure(&mut one, 101);
        println!(
            "{messages:>10} {time:>12.1?} {joined:>12.1?} {:>12.1?} {synced:>14.1?} {allocations:>12}",
            time.saturating_sub(joined)
        );
    }
    without_hooks();
}

/// An engine that has no optional slot at all, beside the built-in.
fn without_hooks() {
    let (folder, session) = home(1_000);
    let plugin = folder.path().join("plugins/idle");
    std::fs::create_dir_all(&plugin).expect("a folder");
    let library = Compile::source(workspace().join("tests/peers/llama/idle.c")).library();
    std::fs::copy(library, plugin.join("libidle.so")).expect("copied");
    std::fs::write(
        plugin.join("plugin.yaml"),
        "name: idle\nlibrary: libidle.so\nversion: 1.0.0\n",
    )
    .expect("written");
    println!("\nallocations of the agent's thread in a turn, 1,000 messages");
    for engine in ["compressor", "idle"] {
        let config = format!(
            "model: {{default: bench, context_length: 100000000}}\ncontext: {{engine: {engine}}}\n"
        );
        std::fs::write(folder.path().join("config.yaml"), config).expect("written");
        let (host, mut one) = agent(folder.path(), &session, Durability::Off);
        assert_eq!(one.engine(), engine, "{:?}", host.take_warnings());
        let (time, allocations) = measure(&mut one, 101);
        println!("{engine:>12} {time:>12.1?} {allocations:>8}");
    }
}
