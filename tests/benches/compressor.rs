//! How long a pass takes: 10,000 messages and 7 MB within 35 ms, and time that grows with the text and not faster.
//!
//! `cargo bench -p hermes-tests --bench compressor`. With `--write FILE` the transcript of the 10,000 messages is written
//! for the peer in `tests/peers/compress` instead.

use std::time::{Duration, Instant};

use hermes_compressor::Settings;
use hermes_compressor::helper::{Ask, Failure, Helper, Reply};
use hermes_compressor::pass::{self, Outcome, Request};
use hermes_compressor::row::Row;
use hermes_message::{Message, build};

const SUMMARY: &str = "## Goal\nPort the parser of the project to the new grammar and keep every old test.\n\
## Completed Actions\n1. read the sources of the parser with read_file, all of them without an error\n\
2. wrote down what each part does and which of them depend on the old grammar\n\
## Key Decisions\n- the old tests stay as they are, because two clients depend on them\n";

struct Scripted;

impl Helper for Scripted {
    fn window(&self) -> u64 {
        200_000
    }

    fn ask(&mut self, _: &Ask<'_>) -> Result<Reply, Failure> {
        Ok(Reply {
            text: SUMMARY.to_owned(),
            finish_reason: "stop".to_owned(),
        })
    }
}

/// Turns of a question, two tool rounds and an answer: six messages, about 700 bytes each.
fn transcript(count: usize) -> Vec<Message> {
    let mut messages = vec![build::system("You are Hermes.")];
    let mut turn = 0_usize;
    while messages.len() < count {
        let words = |seed: usize, n: usize| {
            (0..n)
                .map(|i| {
                    format!(
                        "word{} of line {} in part {}",
                        (seed * 31 + i * 7) % 997,
                        i,
                        seed % 89
                    )
                })
                .collect::<Vec<_>>()
        };
        messages.push(build::user(&format!(
            "Question {turn}: {}",
            words(turn, 14).join(", ")
        )));
        for n in 0..2 {
            let id = format!("call_{turn}_{n}");
            let arguments = format!("{{\"path\":\"src/part_{turn}_{n}.rs\"}}");
            messages.push(build::calling(
                Some(&words(turn + n, 12).join(" ")),
                &[(&id, "read_file", &arguments)],
            ));
            messages.push(build::tool(&id, &words(turn + n + 5, 38).join("\n")));
        }
        messages.push(build::assistant(&words(turn + 9, 24).join(". ")));
        turn += 1;
    }
    messages.truncate(count - 1);
    messages.push(build::user("And now?"));
    messages
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A pass from messages whose estimates are known, as the host has them.
fn measure(messages: &[Message], helped: bool, rounds: usize) -> Duration {
    for message in messages {
        std::hint::black_box(message.tokens());
    }
    let request = Request {
        window: 200_000,
        threshold: 150_000,
        ..Request::default()
    };
    let times = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            let rows = Row::all(messages);
            let mut helper = Scripted;
            let helper: Option<&mut dyn Helper> = if helped { Some(&mut helper) } else { None };
            let outcome = pass::compress(&rows, &Settings::default(), helper, &request);
            let spent = start.elapsed();
            assert!(matches!(outcome, Outcome::Made(_)), "{outcome:?}");
            spent
        })
        .collect();
    median(times)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == "--write") {
        let file = arguments.get(place + 1).expect("--write FILE");
        let lines: String = transcript(10_000)
            .iter()
            .map(|m| format!("{}\n", m.stored()))
            .collect();
        std::fs::write(file, lines).expect("a writable file");
        return;
    }
    let debug = cfg!(debug_assertions);
    println!("messages      bytes   scripted helper   extractive");
    let mut times = Vec::new();
    for count in [1_000, 3_000, 10_000, 30_000, 100_000] {
        let messages = transcript(count);
        let bytes: usize = messages.iter().map(|m| m.stored().len()).sum();
        let rounds = if count > 10_000 || debug { 3 } else { 11 };
        let scripted = measure(&messages, true, rounds);
        let extractive = measure(&messages, false, rounds.min(3));
        println!(
            "{count:>8} {bytes:>10} {:>14.2} ms {:>9.2} ms",
            scripted.as_secs_f64() * 1e3,
            extractive.as_secs_f64() * 1e3
        );
        times.push((count, scripted));
    }
    let per = |place: usize| times[place].1.as_secs_f64() / times[place].0 as f64;
    let growth = per(4) / per(0);
    let ten_thousand = times[2].1;
    println!("time per message, 100,000 to 1,000: {growth:.2} (near-linear is about 1)");
    println!("ours_ms={:.2}", ten_thousand.as_secs_f64() * 1e3);
    if !debug {
        println!(
            "10,000 messages: {} (the budget is 35 ms)",
            if ten_thousand < Duration::from_millis(35) {
                "within the budget"
            } else {
                "OVER THE BUDGET"
            }
        );
    }
}
