//! What survives: forty facts planted in a session of 600 messages, counted after one, three and ten compressions.

use hermes_compressor::Settings;
use hermes_compressor::helper::Helper;
use hermes_message::{Message, Role, build};

use crate::support::{
    SUMMARY, Scripted, compressed, numbered, prose, request, round, says, tokens,
};

/// A fact: who says it, the sentence, and what must still be there.
const FACTS: [(char, &str, &str); 40] = [
    (
        'U',
        "The service config is at deploy/eu-west/gateway.toml, please remember.",
        "deploy/eu-west/gateway.toml",
    ),
    ('U', "Our staging port is 18443 behind the proxy.", "18443"),
    (
        'U',
        "Marta Kowalczyk signs off every release.",
        "Marta Kowalczyk",
    ),
    (
        'U',
        "You must never touch the ledger_archive table.",
        "ledger_archive",
    ),
    (
        'U',
        "We decided to use Postgres instead of Mongo for the audit trail.",
        "Postgres instead of Mongo",
    ),
    (
        'U',
        "The budget for the whole migration is 12400 euros.",
        "12400",
    ),
    (
        'U',
        "Always run make verify-schema before a commit.",
        "make verify-schema",
    ),
    (
        'U',
        "The customer is called Nordlicht Reederei.",
        "Nordlicht Reederei",
    ),
    ('U', "The deadline is 2026-03-17 at noon.", "2026-03-17"),
    ('U', "Ticket OPS-4471 tracks the outage.", "OPS-4471"),
    (
        'A',
        "The parser entry point is src/frontend/lexer/scan.rs and nothing else.",
        "src/frontend/lexer/scan.rs",
    ),
    (
        'A',
        "I decided to keep the old wire format because two clients cannot update.",
        "two clients cannot update",
    ),
    (
        'A',
        "The build failed with error E0502 in crates/store/src/cache.rs.",
        "E0502",
    ),
    (
        'A',
        "The fix was to clone the handle before the borrow in flush_pending.",
        "flush_pending",
    ),
    (
        'A',
        "Throughput is now 8750 rows per second on the test machine.",
        "8750",
    ),
    (
        'A',
        "The feature flag is named ENABLE_SHADOW_READS.",
        "ENABLE_SHADOW_READS",
    ),
    (
        'A',
        "Root cause: the retry loop in net/backoff.py doubled the timeout twice.",
        "net/backoff.py",
    ),
    ('A', "We go with version 3.14.2 of the driver.", "3.14.2"),
    (
        'A',
        "The snapshot lives at s3://nordlicht-backup/2026/full.tar.",
        "nordlicht-backup",
    ),
    (
        'A',
        "The commit that broke it is 9fe31ac77b2.",
        "9fe31ac77b2",
    ),
    (
        'A',
        "Benchmarks are described in docs/perf/methodology.md.",
        "docs/perf/methodology.md",
    ),
    (
        'A',
        "The slow query took 41.7 seconds before the index.",
        "41.7",
    ),
    (
        'A',
        "The index is named idx_voyages_by_imo.",
        "idx_voyages_by_imo",
    ),
    (
        'A',
        "Kenji Watanabe owns the mobile client.",
        "Kenji Watanabe",
    ),
    ('A', "The queue limit was raised to 5120 entries.", "5120"),
    (
        'A',
        "Decision: dates are stored in UTC and shown in Europe/Berlin.",
        "Europe/Berlin",
    ),
    ('A', "The certificate expires on 2027-01-09.", "2027-01-09"),
    (
        'A',
        "The public endpoint is https://api.nordlicht.example/v4/voyages.",
        "api.nordlicht.example/v4",
    ),
    ('A', "Memory peaked at 913 MB during the import.", "913 MB"),
    (
        'A',
        "The cron job is called nightly-rollup and starts at 02:35.",
        "nightly-rollup",
    ),
    (
        'T',
        "error: connection refused by 10.20.7.19 on attempt 4",
        "10.20.7.19",
    ),
    (
        'T',
        "warning: table voyages_2019 has 3318204 rows",
        "3318204",
    ),
    (
        'T',
        "wrote target/release/voyager-cli",
        "target/release/voyager-cli",
    ),
    (
        'T',
        "panicked at src/ingest/ais.rs:211: index out of bounds",
        "src/ingest/ais.rs:211",
    ),
    (
        'T',
        "checksum sha256 is a83bd01f77c4 for full.tar",
        "a83bd01f77c4",
    ),
    (
        'T',
        "FAILED tests/test_tides.py::test_spring_tide",
        "test_spring_tide",
    ),
    (
        'T',
        "listening on unix socket /run/voyager/ctl.sock",
        "/run/voyager/ctl.sock",
    ),
    (
        'T',
        "created branch hotfix/tide-rounding",
        "hotfix/tide-rounding",
    ),
    (
        'T',
        "disk usage of /var/lib/voyager is 87%",
        "/var/lib/voyager",
    ),
    (
        'T',
        "Segmentation fault in libtide.so.3 (core dumped)",
        "libtide.so.3",
    ),
];

/// Turns with the facts spread over them; 600 messages.
fn planted() -> Vec<Message> {
    let mut messages = vec![build::system("You are a careful engineer.")];
    let mut facts = FACTS.iter().enumerate();
    for turn in 0..150 {
        let fact = if turn % 3 == 1 || turn % 11 == 0 {
            facts.next()
        } else {
            None
        };
        let with = |who: char, text: String| match fact {
            Some((_, (speaker, fact, _))) if *speaker == who => {
                format!("{text} {fact} {}", prose(turn + 7, 20))
            }
            _ => text,
        };
        messages.push(build::user(&with(
            'U',
            format!("Now go on with step {turn}. {}", prose(turn, 25)),
        )));
        let result = match fact {
            Some((_, ('T', fact, _))) => {
                format!("{}\n{fact}\n{}", prose(turn + 40, 60), prose(turn + 41, 60))
            }
            _ => prose(turn + 40, 120),
        };
        let path = format!("{{\"path\":\"src/part_{}.rs\"}}", turn % 40);
        messages.extend(round(&format!("c{turn}"), "read_file", &path, &result));
        messages.push(build::assistant(&with(
            'A',
            format!("Step {turn} is done. {}", prose(turn + 900, 50)),
        )));
    }
    assert!(facts.next().is_none(), "all facts are planted");
    messages.push(build::user("What do you still know?"));
    numbered(messages)
}

fn remaining(list: &[Message]) -> usize {
    let text: String = list
        .iter()
        .map(|m| {
            let calls: String = m
                .tool_calls()
                .iter()
                .map(|call| call.arguments().into_owned())
                .collect();
            format!("{}\n{calls}\n", m.text())
        })
        .collect();
    FACTS
        .iter()
        .filter(|(_, _, mark)| text.contains(mark))
        .count()
}

/// The system prompt and as many of the newest turns as fit: what an engine without summaries can do.
fn newest_turns(messages: &[Message], budget: u64) -> Vec<Message> {
    let mut spent = u64::from(messages[0].tokens());
    let mut from = messages.len();
    while from > 1 && spent + u64::from(messages[from - 1].tokens()) <= budget {
        from -= 1;
        spent += u64::from(messages[from].tokens());
    }
    while from < messages.len() && messages[from].role() != Role::User {
        from += 1;
    }
    let mut out = vec![messages[0].clone()];
    out.extend_from_slice(&messages[from..]);
    out
}

fn filler(depth: usize) -> Vec<Message> {
    (0..40)
        .flat_map(|n| {
            let seed = 20_000 + depth * 100 + n;
            [
                build::assistant(&prose(seed, 60)),
                build::user(&format!("Go on with part {n}. {}", prose(seed + 50, 30))),
            ]
        })
        .collect()
}

/// Facts left after 1, 3 and 10 compressions.
fn course(mut pass: impl FnMut(&[Message]) -> Vec<Message>) -> [usize; 3] {
    let mut list = planted();
    let mut left = [0; 3];
    for depth in 1..=10 {
        list = pass(&list);
        if let Some(place) = [1, 3, 10].iter().position(|at| *at == depth) {
            left[place] = remaining(&list);
        }
        list.extend(filler(depth));
    }
    left
}

// contract: ENG-4
#[test]
fn an_extract_keeps_at_least_twice_as_many_facts_as_the_newest_turns_of_the_same_size() {
    println!(
        "facts left of {} after 1, 3 and 10 compressions",
        FACTS.len()
    );
    for window in [8_192, 32_768] {
        let ask = request(window);
        let mut sizes = Vec::new();
        let extract = course(|list| {
            let next = compressed(list, &Settings::default(), None, &ask);
            sizes.push(tokens(&next));
            next
        });
        let mut budgets = sizes.iter();
        let newest = course(|list| newest_turns(list, *budgets.next().expect("as many passes")));
        let scripted = course(|list| {
            let mut helper = Scripted::new(0, |_, _: &str| says(SUMMARY));
            let helper: &mut dyn Helper = &mut helper;
            compressed(list, &Settings::default(), Some(helper), &ask)
        });
        println!("window {window}: compressor with the extractive summary {extract:?}");
        println!(
            "window {window}: compressor with a helper that forgets  {scripted:?} (index and quotes alone)"
        );
        println!("window {window}: newest turns in the same budget        {newest:?}");
        for (place, (extract, newest)) in extract.iter().zip(&newest).enumerate() {
            assert!(
                *extract >= 2 * newest && *extract >= 8,
                "window {window}, place {place}: {extract} and {newest}"
            );
        }
    }
}
