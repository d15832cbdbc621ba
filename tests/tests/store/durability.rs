//! An acknowledged turn is on the disk, not only in the system's memory.

use std::io::Write;
use std::process::Command;

use hermes::store::{Mark, Store, StoreOptions};

use crate::support::*;

/// Counts in the system calls of a child: between two acknowledgements stands a sync of the write-ahead log.
// contract: PASS-7
#[test]
fn every_acknowledged_turn_is_preceded_by_a_sync_of_the_log() {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: strace is not installed");
        return;
    }
    let home = Home::new();
    home.open();
    let trace = home.folder.path().join("trace");
    let child = child("durability::worker_child", home.folder.path());
    let out = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fdatasync,fsync,write", "-o"])
        .arg(&trace)
        .arg(child.get_program())
        .args(child.get_args())
        .env("HERMES_STORE_CHILD", home.folder.path())
        .output()
        .unwrap();
    if !out.status.success() && String::from_utf8_lossy(&out.stderr).contains("ptrace") {
        println!("skipped: strace may not trace here");
        return;
    }
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let trace = std::fs::read_to_string(&trace).unwrap();
    let mut synced = false;
    let mut acknowledged = 0;
    for line in trace.lines() {
        if (line.contains("fdatasync(") || line.contains("fsync(")) && line.contains("state.db-wal")
        {
            assert!(
                line.contains("= 0") || line.contains("unfinished"),
                "{line}"
            );
            synced = true;
        } else if line.contains("write(1<") && line.contains("ACK ") {
            assert!(synced, "acknowledged without a sync: {line}");
            synced = false;
            acknowledged += 1;
        }
    }
    assert_eq!(acknowledged, TURNS, "every turn was seen in the trace");
}

const TURNS: usize = 20;

#[test]
#[ignore = "the child of the durability test"]
fn worker_child() {
    let Some(folder) = child_folder() else { return };
    let store = Store::open(&folder.join("state.db"), StoreOptions::default()).unwrap();
    let id = session(&store);
    let mut mark = Mark::default();
    for n in 0..TURNS {
        store.append(&id, &mut turns(2), &mut mark).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "ACK {n}").unwrap();
        out.flush().unwrap();
    }
}
