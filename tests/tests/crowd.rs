//! Many agents in one process, and one agent for very long: no cross-talk, bounded, flat.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hermes::agent::{Agent, AgentOptions, Host, HostOptions};
use hermes::config::HermesHome;
use hermes::engine::{TurnOutcome, Usage};
use hermes::provider::{Cancel, Delta, Failure, Finish, Provider, Reply};
use hermes::store::{Durability, StoreOptions};
use hermes_message::sequence::{self, Policy};
use hermes_message::{Message, build};
use hermes_tests::Home;
use serde_json::Value;

/// A model that repeats the last thing that was said to it, and looks at every request as a strict provider would.
#[derive(Debug, Default)]
struct Parrot {
    requests: AtomicUsize,
    /// Does not read the request: in a long conversation that would be all that is measured.
    blind: bool,
}

impl Provider for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }
    fn parameters(&self) -> &str {
        "\"stream\":true"
    }
    fn send(
        &self,
        body: &str,
        _: &Cancel,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = if self.blind {
            "yes, ".repeat(40)
        } else {
            let said = newest(body);
            format!("I heard: {said}")
        };
        on(Delta::Text(&answer));
        let prompt = i64::try_from(body.len() / 4).unwrap_or(i64::MAX);
        Ok(Reply {
            message: build::assistant(&answer),
            finish: Finish::Stop,
            usage: Some(Usage {
                prompt_tokens: Some(prompt),
                completion_tokens: Some(20),
                total_tokens: Some(prompt + 20),
                ..Usage::default()
            }),
            notes: Vec::new(),
        })
    }
    fn context_length(&self, _: &str) -> Option<u64> {
        None
    }
}

/// The newest user text of a request, which must be valid and hold no identity.
fn newest(body: &str) -> String {
    let body: Value = serde_json::from_str(body).expect("a JSON body");
    let messages: Vec<Message> = body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| Message::parse(&message.to_string()).expect("a message"))
        .collect();
    assert_eq!(sequence::check(&messages, Policy::Request), []);
    for message in &messages {
        assert!(
            !message.stored().contains("message_uid"),
            "{}",
            message.stored()
        );
    }
    let user = messages
        .iter()
        .rev()
        .find(|message| message.role() == hermes_message::Role::User);
    user.expect("a user").text().into_owned()
}

fn host(home: &Home, provider: Parrot, durability: Durability) -> (Host, Arc<Parrot>) {
    let provider = Arc::new(provider);
    let host = Host::open(HostOptions {
        home: HermesHome::at(home.path()),
        provider: Some(provider.clone()),
        directory: home.outside().to_owned(),
        store: Some(StoreOptions {
            durability,
            ..StoreOptions::default()
        }),
        ..HostOptions::default()
    })
    .expect("a host");
    (host, provider)
}

/// Resident memory of this process in KiB; `None` where nobody says.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

fn words(agent: usize, turn: usize) -> String {
    let mut text = format!("agent {agent} turn {turn}:");
    for word in 0..60 {
        let _ = write!(text, " w{}", agent * 1000 + turn * 61 + word);
    }
    text
}

// contract: CLONE-1, CLONE-2, CLONE-3, PASS-5, PASS-12, PASS-2
// case: 38
#[test]
fn twenty_agents_run_side_by_side_without_hearing_each_other() {
    const AGENTS: usize = 20;
    const TURNS: usize = 12;
    let home = Home::new();
    home.config("model: {default: parrot, context_length: 2400}\ncompression: {threshold: 0.5}\n");
    let (host, provider) = host(&home, Parrot::default(), Durability::Normal);
    let before = resident();
    let mut agents: Vec<Agent> = (0..AGENTS)
        .map(|_| host.agent(AgentOptions::default()).expect("an agent"))
        .collect();
    let made = resident();
    let reports: Vec<(String, u32)> = std::thread::scope(|scope| {
        let threads: Vec<_> = agents
            .iter_mut()
            .enumerate()
            .map(|(number, agent)| {
                scope.spawn(move || {
                    let mut compressions = 0;
                    for turn in 0..TURNS {
                        let said = words(number, turn);
                        let report = agent.turn(&said, &mut |_| {});
                        assert_eq!(report.outcome, TurnOutcome::Completed, "{:?}", report.error);
                        assert_eq!(report.answer, format!("I heard: {said}"));
                        compressions += report.compressions;
                    }
                    (agent.session_id().to_owned(), compressions)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    if let (Some(before), Some(made), Some(after)) = (before, made, resident()) {
        println!(
            "memory per agent: {} KiB when made, {} KiB after {TURNS} turns",
            made.saturating_sub(before) / AGENTS as u64,
            after.saturating_sub(before) / AGENTS as u64
        );
    }
    assert!(provider.requests.load(Ordering::Relaxed) >= AGENTS * TURNS);
    let store = host.store().expect("a store");
    let mut seen = HashSet::new();
    for (number, (session, compressions)) in reports.iter().enumerate() {
        assert!(seen.insert(session.clone()), "a session of its own");
        assert!(*compressions > 0, "agent {number} was compacted");
        // Every message once, in its own session, archived or live.
        let rows = store.messages(session, true).expect("rows");
        let mut said: HashMap<String, usize> = HashMap::new();
        for row in &rows {
            let text = row.message.text().into_owned();
            assert!(
                !text.contains("agent ") || text.contains(&format!("agent {number} ")),
                "agent {number} has a message of another: {text}"
            );
            if row.message.role() == hermes_message::Role::User {
                *said.entry(text).or_default() += 1;
            }
        }
        for turn in 0..TURNS {
            assert!(
                said.contains_key(&words(number, turn)),
                "agent {number}, turn {turn}"
            );
        }
        let live = store.messages(session, false).expect("rows");
        let agent = &agents[number];
        let texts: Vec<&str> = live.iter().map(|row| &**row.message.stored()).collect();
        let held: Vec<&str> = agent
            .messages()
            .iter()
            .map(|message| &**message.stored())
            .collect();
        assert_eq!(
            texts, held,
            "agent {number}: the store has what the agent has"
        );
    }
    drop(agents);
    let report = store.check(false, &mut |_, _, _| {}).expect("checked");
    assert!(report.is_clean(), "{report:?}");
}

/// What a long conversation came to.
struct Soak {
    memory: Vec<(usize, Option<u64>)>,
    times: Vec<(usize, Duration)>,
    compressions: u32,
}

/// One conversation of so many turns, compacted again and again.
fn soak(turns: usize) -> Soak {
    let home = Home::new();
    home.config("model: {default: parrot, context_length: 16000}\ncompression: {threshold: 0.5}\n");
    let parrot = Parrot {
        blind: true,
        ..Parrot::default()
    };
    let (host, _) = host(&home, parrot, Durability::Normal);
    let mut agent = host.agent(AgentOptions::default()).expect("an agent");
    let mut soak = Soak {
        memory: Vec::new(),
        times: Vec::new(),
        compressions: 0,
    };
    let step = turns / 10;
    let mut quiet = Vec::new();
    for turn in 0..turns {
        let said = words(0, turn);
        let begun = Instant::now();
        let report = agent.turn(&said, &mut |_| {});
        // Turns with a pass in them are of another kind.
        if report.compressions == 0 {
            quiet.push(begun.elapsed());
        }
        assert_eq!(
            report.outcome,
            TurnOutcome::Completed,
            "turn {turn}: {:?}",
            report.error
        );
        soak.compressions += report.compressions;
        if (turn + 1) % step == 0 {
            quiet.sort_unstable();
            soak.times.push((turn + 1, quiet[quiet.len() / 2]));
            soak.memory.push((turn + 1, resident()));
            quiet.clear();
        }
    }
    // Every message is in the store once: live, or archived by a pass.
    let session = agent.session_id().to_owned();
    let store = host.store().expect("a store");
    let rows = store.messages(&session, true).expect("rows");
    let mut users: HashMap<String, HashSet<String>> = HashMap::new();
    for row in &rows {
        if row.message.role() == hermes_message::Role::User {
            let uid = row.message.identity().uid.clone().expect("an id");
            users
                .entry(row.message.text().into_owned())
                .or_default()
                .insert(uid.to_string());
        }
    }
    for turn in 0..turns {
        let uids = users.get(&words(0, turn)).map_or(0, HashSet::len);
        assert_eq!(uids, 1, "turn {turn} is in the store once");
    }
    let live: Vec<&str> = agent
        .messages()
        .iter()
        .filter_map(|message| message.identity().uid.as_deref())
        .collect();
    let distinct: HashSet<&str> = live.iter().copied().collect();
    assert_eq!(
        live.len(),
        distinct.len(),
        "no id twice in the live transcript"
    );
    assert!(agent.status().tokens < 16_000, "{:?}", agent.status());
    soak
}

// contract: PASS-8, UID-1
#[test]
fn a_long_conversation_stays_small_and_loses_nothing() {
    let soak = soak(400);
    assert!(soak.compressions >= 3, "{} passes", soak.compressions);
}

/// `cargo test --release -p hermes-tests --test crowd -- --ignored --nocapture ten_thousand`
#[test]
#[ignore = "takes a minute; prints memory and time per turn along the way"]
fn ten_thousand_turns_in_flat_memory_and_time() {
    let soak = soak(10_000);
    println!("{:>8} {:>14} {:>12}", "turn", "median turn", "memory KiB");
    for ((turn, time), (_, memory)) in soak.times.iter().zip(&soak.memory) {
        println!("{turn:>8} {time:>14.1?} {:>12}", memory.unwrap_or(0));
    }
    println!("{} passes", soak.compressions);
    if let (Some((_, Some(early))), Some((_, Some(late)))) =
        (soak.memory.first(), soak.memory.last())
    {
        assert!(
            late * 100 <= early * 110,
            "memory grew from {early} to {late} KiB between turn 1,000 and 10,000"
        );
    }
}
