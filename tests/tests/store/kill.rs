//! Killed at a random moment, the store opens with the old transcript or the new one.
//!
//! A child appends, compacts in place, rotates and branches in a loop; it says on its output what it has
//! been told is written. `SIGKILL` proves all or nothing; that an acknowledged turn is on the disk is
//! proved in `durability`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use hermes::store::{Mark, NewSession, Store, StoreOptions};

use crate::support::*;

/// Ten rounds always; `cargo test -p hermes-tests --test store -- --ignored kill::two_hundred` runs 200.
const ROUNDS: usize = 10;

// contract: PASS-7
#[test]
fn killed_at_any_moment_the_transcript_is_the_old_or_the_new_one() {
    rounds(ROUNDS);
}

// contract: PASS-7
#[test]
#[ignore = "200 rounds take a few minutes; run by hand"]
fn two_hundred() {
    rounds(200);
}

fn rounds(rounds: usize) {
    let home = Home::new();
    home.open();
    let mut survived = HashMap::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..rounds {
        let mut child = child("kill::worker_child", home.folder.path())
            .env("HERMES_STORE_ROUND", round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Every moment counts from when the child works, not from when it starts.
        while !lines.next().unwrap().unwrap().contains("ready") {}
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // After so many words of the child, whatever the machine's speed, and then somewhere in its next work.
        let mut heard: Vec<String> = (0..random % 30).map_while(|_| lines.next()?.ok()).collect();
        std::thread::sleep(Duration::from_micros((random >> 20) % 12_000));
        child.kill().unwrap();
        child.wait().unwrap();
        heard.extend(lines.map_while(Result::ok));
        let said: Vec<Vec<String>> = heard
            .into_iter()
            // The last line may have been cut by the kill.
            .filter(|line| line.ends_with(" ."))
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
        check(&home, round, &said, &mut survived);
    }
    println!("{rounds} rounds: {survived:?}");
    for kind in ["turn", "compact", "rotate"] {
        assert!(
            survived.get(kind).copied().unwrap_or(0) > 0,
            "no {kind} was ever acknowledged"
        );
    }
}

/// What the child was told must be there, and what is there must be whole.
fn check(home: &Home, round: usize, said: &[Vec<String>], survived: &mut HashMap<String, usize>) {
    let store = Store::open(&home.file(), StoreOptions::default()).unwrap();
    let root = format!("r{round}");
    assert_clean(&store);
    let mut turns = Vec::new();
    let mut passes = Vec::new();
    let mut begun: Option<String> = None;
    for line in said {
        *survived.entry(line[0].clone()).or_default() += 1;
        match line[0].as_str() {
            "turn" => turns.push(line[1].clone()),
            "begin" => begun = Some(line[1].clone()),
            "compact" | "rotate" => {
                passes.push(line[1].clone());
                begun = None;
            }
            _ => {}
        }
    }
    // Every acknowledged turn is in some row of the lineage, once under its uid.
    let lineage = store.lineage(&root).unwrap();
    let mut texts = HashMap::<String, std::collections::HashSet<String>>::new();
    for id in &lineage {
        for row in store.messages(id, true).unwrap() {
            texts
                .entry(row.message.text().into_owned())
                .or_default()
                .insert(uid(&row.message));
        }
    }
    for turn in &turns {
        for text in [format!("question {turn}"), format!("answer {turn}")] {
            assert_eq!(
                texts.get(&text).map(std::collections::HashSet::len),
                Some(1),
                "round {round}: {text}"
            );
        }
    }
    // The transcript is that of the last acknowledged pass, or of the one that was under way.
    let back = store.resume(&root).unwrap();
    let last = back.session.last_pass_id.clone();
    assert!(
        last == passes.last().cloned() || (begun.is_some() && last == begun),
        "round {round}: {last:?} is neither {:?} nor {begun:?}",
        passes.last()
    );
    let live: Vec<String> = back
        .messages
        .iter()
        .map(|m| m.text().into_owned())
        .collect();
    let summaries: Vec<&String> = live
        .iter()
        .filter(|text| text.starts_with("summary "))
        .collect();
    match &last {
        None => assert!(summaries.is_empty()),
        Some(pass) => {
            assert_eq!(summaries, [&format!("summary {pass}")], "round {round}");
            assert_eq!(live[0], *summaries[0]);
        }
    }
    // Behind the summary: the kept tail and what was written since, without a gap and whole turns only.
    let numbers: Vec<u64> = live
        .iter()
        .filter_map(|t| t.strip_prefix("question ")?.parse().ok())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "round {round}: {numbers:?}"
    );
    let answers = live.iter().filter(|t| t.starts_with("answer ")).count();
    assert_eq!(answers, numbers.len(), "round {round}: half a turn");
    if let (Some(acknowledged), Some(there)) = (
        turns.last().and_then(|t| t.parse::<u64>().ok()),
        numbers.last(),
    ) {
        assert!(
            *there == acknowledged || *there == acknowledged + 1,
            "round {round}: {there} after {acknowledged}"
        );
    }
    // The dead holder's lock is in nobody's way.
    let mark = back.mark;
    let lock = store.begin_pass(&back.session.id, &mark, "after", Duration::from_secs(60));
    if std::path::Path::new("/proc/self/stat").exists() {
        store.end_pass(&lock.unwrap()).unwrap();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line} .").unwrap();
    out.flush().unwrap();
}

/// The child's work, until it is killed.
#[test]
#[ignore = "the child of the kill test"]
fn worker_child() {
    let Some(folder) = child_folder() else { return };
    let round = std::env::var("HERMES_STORE_ROUND").unwrap();
    let store = Store::open(&folder.join("state.db"), StoreOptions::default()).unwrap();
    let mut id = format!("r{round}");
    store
        .create_session(&NewSession {
            id: Some(&id),
            source: "cli",
            ..NewSession::default()
        })
        .unwrap();
    let mut mark = Mark::default();
    let mut live = Vec::new();
    say("ready");
    for n in 0u64.. {
        let mut turn = vec![
            user(&format!("question {n}")),
            calls(&["k"]),
            result("k", &"r".repeat(2000)),
            assistant(&format!("answer {n}")),
        ];
        store.append(&id, &mut turn, &mut mark).unwrap();
        say(&format!("turn {n}"));
        live.extend(turn);
        if n % 2 == 1 {
            let pass = format!("{round}-{n}");
            say(&format!("begin {pass}"));
            let lock = store
                .begin_pass(&id, &mark, "child", Duration::from_secs(60))
                .unwrap();
            let mut result = vec![summary(&format!("summary {pass}"))];
            result.extend_from_slice(&live[live.len() - 4..]);
            let (word, done) = if n % 4 == 3 {
                (
                    "rotate",
                    store
                        .commit_rotation(&lock, &pass, &NewSession::default(), &result)
                        .unwrap(),
                )
            } else {
                (
                    "compact",
                    store.commit_in_place(&lock, &pass, &result).unwrap(),
                )
            };
            say(&format!("{word} {pass}"));
            store.end_pass(&lock).unwrap();
            (id, live, mark) = (done.session, done.messages, done.mark);
        }
        if n % 3 == 2 {
            store.branch(&id, &NewSession::default()).unwrap();
            say(&format!("branch {n}"));
        }
        if n % 5 == 4 {
            store.catch_up(Duration::from_millis(20)).unwrap();
        }
    }
}
