//! What the store's tests share.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use hermes::store::{Durability, Mark, NewSession, Store, StoreOptions};
use hermes_message::Message;
use rusqlite::Connection;

/// Options that do not wait for the disk: most tests are about what is written, not when it is synced.
pub(crate) fn quick() -> StoreOptions {
    StoreOptions {
        durability: Durability::Off,
        ..StoreOptions::default()
    }
}

pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.file(), quick()).unwrap()
    }

    /// The store as its file is: what is missing in old rows and in the index stays missing.
    pub(crate) fn open_as_it_is(&self) -> Store {
        let options = StoreOptions {
            backfill_budget: Duration::ZERO,
            catch_up_budget: Duration::ZERO,
            ..quick()
        };
        Store::open(&self.file(), options).unwrap()
    }

    pub(crate) fn sql(&self) -> Connection {
        let conn = Connection::open(self.file()).unwrap();
        conn.busy_timeout(Duration::from_secs(20)).unwrap();
        conn
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.sql().query_row(sql, [], |r| r.get(0)).unwrap()
    }
}

pub(crate) fn message(json: &str) -> Message {
    Message::parse(json).unwrap()
}

pub(crate) fn user(text: &str) -> Message {
    said("user", text)
}

pub(crate) fn assistant(text: &str) -> Message {
    said("assistant", text)
}

pub(crate) fn said(role: &str, text: &str) -> Message {
    message(&serde_json::json!({"role": role, "content": text}).to_string())
}

/// An assistant message that makes one call for each id.
pub(crate) fn calls(ids: &[&str]) -> Message {
    let calls: Vec<_> = ids
        .iter()
        .map(|id| {
            serde_json::json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a.rs\"}"}})
        })
        .collect();
    message(
        &serde_json::json!({"role": "assistant", "content": null, "tool_calls": calls}).to_string(),
    )
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    message(&serde_json::json!({"role": "tool", "content": text, "tool_call_id": id}).to_string())
}

pub(crate) fn summary(text: &str) -> Message {
    message(
        &serde_json::json!({"role": "user", "content": text, "_compressed_summary": true})
            .to_string(),
    )
}

pub(crate) fn uid(message: &Message) -> String {
    message.identity().uid.as_deref().expect("a uid").to_owned()
}

pub(crate) fn uids(messages: &[Message]) -> Vec<String> {
    messages.iter().map(uid).collect()
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|m| m.text().into_owned()).collect()
}

pub(crate) fn is_uid(text: &str) -> bool {
    text.len() == 32
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

pub(crate) fn session(store: &Store) -> String {
    store
        .create_session(&NewSession {
            source: "cli",
            ..NewSession::default()
        })
        .unwrap()
}

/// A session that holds `messages`; returns them with their ids.
pub(crate) fn filled(store: &Store, mut messages: Vec<Message>) -> (String, Vec<Message>, Mark) {
    let id = session(store);
    let mut mark = Mark::default();
    store.append(&id, &mut messages, &mut mark).unwrap();
    (id, messages, mark)
}

/// `turns` questions with their answers.
pub(crate) fn turns(turns: usize) -> Vec<Message> {
    (0..turns)
        .flat_map(|n| {
            [
                user(&format!("question {n}")),
                assistant(&format!("answer {n}")),
            ]
        })
        .collect()
}

pub(crate) fn assert_clean(store: &Store) {
    let report = store.check(false, &mut |_, _, _| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

/// A whole in-place pass.
pub(crate) fn compact(
    store: &Store,
    id: &str,
    mark: &Mark,
    pass: &str,
    result: &[Message],
) -> hermes::store::Committed {
    let lock = store
        .begin_pass(id, mark, "test", Duration::from_secs(60))
        .unwrap();
    let done = store.commit_in_place(&lock, pass, result).unwrap();
    store.end_pass(&lock).unwrap();
    done
}

/// This test binary again, running only the given (ignored) test with `folder` in its environment.
pub(crate) fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            test,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("HERMES_STORE_CHILD", folder)
        .env_remove("RUST_BACKTRACE");
    command
}

/// The folder that [`child`] passed; `None` when somebody runs the ignored tests by hand.
pub(crate) fn child_folder() -> Option<PathBuf> {
    std::env::var_os("HERMES_STORE_CHILD").map(PathBuf::from)
}

pub(crate) fn all_done(children: Vec<Child>) {
    for child in children {
        let out = child.wait_with_output().unwrap();
        assert!(
            out.status.success(),
            "a child failed:\n{}\n{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
}
