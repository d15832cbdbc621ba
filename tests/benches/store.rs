//! Figures of the session store: `cargo bench -p hermes-tests --bench store`.
//!
//! Prints ratios and growth, asserts nothing. What is compared with the real program runs it, on the same
//! disk, in turns with ours; where it cannot be installed that line is left out.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hermes::store::{Durability, Mark, NewSession, Query, Store, StoreOptions};
use hermes_message::Message;

const TEXT: &str = "lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor \
    sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet \
    lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem \
    ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum \
    dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet ";

/// One group of figures.
type Bench = fn(&Path);

fn main() {
    // On the disk that the workspace is on, as the temporary folder may be memory.
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    // `-- resume` runs one of them.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let all: [(&str, Bench); 5] = [
        ("append", append),
        ("import", import),
        ("resume", resume),
        ("search", search),
        ("compact", compact),
    ];
    for (name, run) in all {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            run(&root);
        }
    }
}

fn folder(root: &Path) -> tempfile::TempDir {
    tempfile::tempdir_in(root).unwrap()
}

fn open(folder: &tempfile::TempDir, durability: Durability) -> Store {
    let options = StoreOptions {
        durability,
        catch_up_budget: Duration::ZERO,
        ..StoreOptions::default()
    };
    Store::open(&folder.path().join("state.db"), options).unwrap()
}

fn message(value: serde_json::Value) -> Message {
    Message::parse(&value.to_string()).unwrap()
}

/// Four messages: a question, a call, its result, an answer.
fn turn(n: usize) -> Vec<Message> {
    vec![
        message(serde_json::json!({"role": "user", "content": format!("question {n} {TEXT}")})),
        message(
            serde_json::json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": format!("c{n}"), "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a.rs\"}"}}]}),
        ),
        message(
            serde_json::json!({"role": "tool", "content": TEXT, "tool_call_id": format!("c{n}"), "tool_name": "read"}),
        ),
        message(serde_json::json!({"role": "assistant", "content": format!("answer {n} {TEXT}")})),
    ]
}

/// A session of `messages` messages; every hundredth turn says something in Japanese.
fn session(store: &Store, id: &str, messages: usize) -> Mark {
    store
        .create_session(&NewSession {
            id: Some(id),
            source: "cli",
            ..NewSession::default()
        })
        .unwrap();
    let mut mark = Mark::default();
    let all: Vec<Message> = (0..messages.div_ceil(4))
        .flat_map(|n| {
            let mut turn = turn(n);
            if n % 100 == 0 {
                turn[0] = message(serde_json::json!({"role": "user", "content": format!("{n} 東京の天気を教えてください {TEXT}")}));
            }
            turn
        })
        .take(messages)
        .collect();
    for part in all.chunks(1000) {
        store.append(id, &mut part.to_vec(), &mut mark).unwrap();
    }
    mark
}

fn rate(count: usize, time: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap()) / time.as_secs_f64()
}

/// The median of several runs.
fn median(runs: usize, mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..runs).map(|_| run()).collect();
    times.sort();
    times[runs / 2]
}

/// The time this thread had a processor, where the system tells: what is left of a figure on a busy machine.
fn on_processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(
        stat.split(' ')
            .next()
            .and_then(|ns| ns.parse().ok())
            .unwrap_or(0),
    )
}

/// The median time on the processor.
fn median_on_processor<T>(runs: usize, mut run: impl FnMut() -> T) -> Duration {
    median(runs, || {
        let start = on_processor();
        let result = black_box(run());
        let time = on_processor().saturating_sub(start);
        drop(result);
        time
    })
}

/// How long the work takes; letting go of its result does not count.
fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let time = start.elapsed();
    drop(result);
    time
}

fn append(root: &Path) {
    let python = python();
    let (mut ours, mut busy) = (Vec::new(), Vec::new());
    let (mut theirs, mut catch_up) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let home = folder(root);
        let store = open(&home, Durability::Full);
        store
            .create_session(&NewSession {
                id: Some("s"),
                source: "cli",
                ..NewSession::default()
            })
            .unwrap();
        let mut mark = Mark::default();
        let turns: Vec<Vec<Message>> = (0..250).map(turn).collect();
        let before = on_processor();
        let time = timed(|| {
            for mut turn in turns {
                store.append("s", &mut turn, &mut mark).unwrap();
            }
        });
        busy.push(rate(1000, on_processor().saturating_sub(before)));
        ours.push(rate(1000, time));
        catch_up.push(rate(
            1000,
            timed(|| store.catch_up(Duration::from_secs(60)).unwrap()),
        ));
        if let Some(python) = &python {
            let home = folder(root);
            let out = Command::new(python)
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/peer.py"))
                .arg("bench")
                .arg(home.path().join("state.db"))
                .arg("1000")
                .env("HERMES_HOME", home.path())
                .env("HOME", home.path())
                .output()
                .unwrap();
            let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
            theirs.push(value["rows_per_second"].as_f64().unwrap());
        }
    }
    for list in [&mut ours, &mut busy, &mut theirs, &mut catch_up] {
        list.sort_by(f64::total_cmp);
    }
    print!(
        "append, turns of 4, synced: {:.0} rows/s, {:.0} a second on the processor",
        ours[1], busy[1]
    );
    if theirs.len() == 3 {
        print!(
            "; the peer {:.0} rows/s; ratio {:.1}",
            theirs[1],
            ours[1] / theirs[1]
        );
    }
    println!("; catch-up of the index {:.0} rows/s", catch_up[1]);
    let floor = floor(root);
    println!(
        "  (the disk alone: {floor:?} to write {} kB in place and sync them, which is {:.0} rows/s at the most)",
        TURN / 1024,
        rate(4, floor)
    );
}

/// What the commit of a turn of four writes to the log: eleven pages or twelve.
const TURN: usize = 47 * 1024;

/// The least that a turn can cost: its bytes over old ones, and a sync.
fn floor(root: &Path) -> Duration {
    use std::io::{Seek, SeekFrom, Write};
    let file = tempfile::NamedTempFile::new_in(root).unwrap();
    let mut file = file.as_file();
    file.write_all(&vec![1; 100 * TURN]).unwrap();
    file.sync_all().unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    median(99, || {
        timed(|| {
            file.write_all(&[2; TURN]).unwrap();
            file.sync_data().unwrap();
        })
    })
}

fn python() -> Option<String> {
    let out = Command::new("sh")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/setup.sh"))
        .output()
        .ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn import(root: &Path) {
    let home = folder(root);
    let store = open(&home, Durability::Full);
    for n in 0..10 {
        session(&store, &format!("s{n}"), 5000);
    }
    let native: Vec<String> = (0..10)
        .map(|n| store.export(&format!("s{n}")).unwrap())
        .collect();
    let native = native.join("\n");
    let foreign: String = (0..10)
        .map(|n| {
            let all: Vec<String> = store
                .messages(&format!("s{n}"), false)
                .unwrap()
                .iter()
                .map(|m| m.message.stored().to_string())
                .collect();
            format!(
                "{{\"n\":{n},\"messages\":[{{\"role\":\"system\",\"content\":\"{n}\"}},{}]}}\n",
                all.join(",")
            )
        })
        .collect();
    for (name, file) in [("exports", native), ("recordings", foreign)] {
        let other = folder(root);
        let copy = open(&other, Durability::Full);
        let before = on_processor();
        let time = timed(|| copy.import(file.as_bytes(), &mut |_, _, _| {}).unwrap());
        let busy = on_processor().saturating_sub(before);
        println!(
            "import of {name}: {:.0} messages/s, {:.0} a second on the processor ({} MB)",
            rate(50_000, time),
            rate(50_000, busy),
            file.len() / 1_000_000
        );
    }
}

fn resume(root: &Path) {
    let home = folder(root);
    let store = open(&home, Durability::Off);
    session(&store, "long", 10_000);
    let long = median(15, || timed(|| store.resume("long").unwrap()));
    let busy = median_on_processor(15, || store.resume("long").unwrap());
    println!("resume of 10,000 messages: {long:?}, on the caller's processor {busy:?}");
    let mut figures = Vec::new();
    for rows in [10_000, 100_000] {
        let home = folder(root);
        let store = open(&home, Durability::Off);
        session(&store, "before", rows / 2);
        session(&store, "live", 200);
        session(&store, "after", rows / 2);
        figures.push(median(101, || timed(|| store.resume("live").unwrap())));
    }
    println!(
        "resume of 200 messages: {:?} in 10,000 rows, {:?} in 100,000 rows; growth {:.2}",
        figures[0],
        figures[1],
        figures[1].as_secs_f64() / figures[0].as_secs_f64()
    );
}

fn search(root: &Path) {
    for text in ["lorem", "東京", "\"question 77\"", "lorem 東京"] {
        let mut figures = Vec::new();
        for rank in [false, true] {
            for rows in [10_000, 100_000] {
                let store = indexed(root, rows);
                let query = Query {
                    text,
                    rank,
                    ..Query::default()
                };
                assert!(!store.search(&query).unwrap().is_empty());
                figures.push(median(7, || timed(|| store.search(&query).unwrap())));
            }
        }
        println!(
            "search of {text}: {:?} in 10,000 rows, {:?} in 100,000 (growth {:.1}); ranked {:?}, {:?}",
            figures[0],
            figures[1],
            figures[1].as_secs_f64() / figures[0].as_secs_f64(),
            figures[2],
            figures[3]
        );
    }
}

/// An indexed store with so many rows, made once.
fn indexed(root: &Path, rows: usize) -> std::sync::Arc<Store> {
    use std::sync::{Arc, Mutex};
    static MADE: Mutex<Vec<(usize, Arc<Store>, tempfile::TempDir)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap();
    if let Some((_, store, _)) = made.iter().find(|(there, _, _)| *there == rows) {
        return Arc::clone(store);
    }
    let home = folder(root);
    let store = Arc::new(open(&home, Durability::Off));
    for n in 0..10 {
        session(&store, &format!("s{n}"), rows / 10);
    }
    let time = timed(|| store.catch_up(Duration::from_secs(600)).unwrap());
    println!(
        "index of {rows} rows: {time:?}, {:.0} rows/s",
        rate(rows, time)
    );
    made.push((rows, Arc::clone(&store), home));
    store
}

fn compact(root: &Path) {
    let mut figures = Vec::new();
    for rest in [0, 50_000] {
        let home = folder(root);
        let store = open(&home, Durability::Full);
        if rest > 0 {
            session(&store, "rest", rest);
        }
        let (mut times, mut busy) = (Vec::new(), Vec::new());
        for n in 0..5 {
            let id = format!("long{n}");
            session(&store, &id, 10_000);
            store.catch_up(Duration::from_secs(600)).unwrap();
            let back = store.resume(&id).unwrap();
            let mut result = back.messages[..3].to_vec();
            result.push(message(serde_json::json!({"role": "user", "content": "summary", "_compressed_summary": true})));
            result.extend_from_slice(&back.messages[9900..]);
            let lock = store
                .begin_pass(&id, &back.mark, "bench", Duration::from_secs(60))
                .unwrap();
            let before = on_processor();
            times.push(timed(|| {
                store.commit_in_place(&lock, "p", &result).unwrap()
            }));
            busy.push(on_processor().saturating_sub(before));
            store.end_pass(&lock).unwrap();
        }
        times.sort();
        busy.sort();
        println!("  (on the processor {:?})", busy[2]);
        figures.push(times[2]);
    }
    println!(
        "in-place commit over 10,000 messages: {:?}, with 50,000 other rows {:?}; growth {:.2}",
        figures[0],
        figures[1],
        figures[1].as_secs_f64() / figures[0].as_secs_f64()
    );
}
