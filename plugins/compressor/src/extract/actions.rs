//! What was done: calls and what came of them, runs of the same tool in one line.

use std::borrow::Cow;

use hermes_message::Role;
use serde_json::Value;

use crate::turns::Turn;

/// One call and its outcome.
struct Action<'a> {
    tool: &'a str,
    target: String,
    outcome: Option<String>,
    failed: bool,
}

/// Hands over a line for each action, or for each run of calls of one tool, with what it is worth.
pub(crate) fn collect(turns: &[Turn<'_>], out: &mut impl FnMut(String, u32)) {
    let mut run: Vec<Action<'_>> = Vec::new();
    let mut at = 0;
    while at < turns.len() {
        let turn = &turns[at];
        at += 1;
        let mut actions: Vec<Action<'_>> = turn
            .calls
            .iter()
            .map(|(tool, arguments)| Action {
                tool,
                target: target(arguments),
                outcome: None,
                failed: false,
            })
            .collect();
        for action in &mut actions {
            // Results stand behind their call in the order of the calls.
            let Some(result) = turns.get(at).filter(|turn| turn.role == Role::Tool) else {
                break;
            };
            (action.outcome, action.failed) = outcome(result);
            at += 1;
        }
        for action in actions {
            let same = run
                .last()
                .is_some_and(|last| last.tool == action.tool && !last.failed && !action.failed);
            if !same {
                flush(&mut run, out);
            }
            run.push(action);
        }
    }
    flush(&mut run, out);
}

fn flush(run: &mut Vec<Action<'_>>, out: &mut impl FnMut(String, u32)) {
    let actions = std::mem::take(run);
    let Some(first) = actions.first() else { return };
    let worth = worth(first);
    if let [only] = actions.as_slice() {
        let outcome = only.outcome.as_deref().unwrap_or("no result");
        out(format!("{}({}) → {outcome}", only.tool, only.target), worth);
        return;
    }
    let mut targets: Vec<&str> = Vec::new();
    for action in &actions {
        if !action.target.is_empty()
            && !targets.contains(&action.target.as_str())
            && targets.len() < 6
        {
            targets.push(&action.target);
        }
    }
    let last = actions
        .last()
        .and_then(|action| action.outcome.as_deref())
        .unwrap_or("no result");
    out(
        format!(
            "{} ×{}: {} → last: {last}",
            first.tool,
            actions.len(),
            targets.join(", ")
        ),
        worth + 4,
    );
}

/// Changes and failures tell more than looks.
fn worth(action: &Action<'_>) -> u32 {
    const CHANGES: [&str; 12] = [
        "write", "edit", "create", "delete", "remove", "patch", "commit", "apply", "update",
        "insert", "book", "send",
    ];
    let tool = action.tool.to_ascii_lowercase();
    if action.failed {
        26
    } else if CHANGES.iter().any(|word| tool.contains(word)) {
        24
    } else {
        12
    }
}

/// The argument that says best what a call was about.
fn target(arguments: &str) -> String {
    const TELLING: [&str; 10] = [
        "path",
        "file",
        "file_path",
        "filename",
        "command",
        "cmd",
        "query",
        "url",
        "pattern",
        "name",
    ];
    let value: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
    let found = value.as_object().and_then(|map| {
        TELLING
            .iter()
            .find_map(|key| map.get(*key).and_then(Value::as_str))
            .map(Cow::Borrowed)
            .or_else(|| map.values().find_map(Value::as_str).map(Cow::Borrowed))
            .or_else(|| {
                map.iter()
                    .next()
                    .map(|(key, value)| Cow::Owned(format!("{key}={value}")))
            })
    });
    one_line(
        &found.unwrap_or(Cow::Borrowed(if value.is_object() {
            ""
        } else {
            arguments
        })),
        90,
    )
}

/// The line of a result that tells most, and whether the call failed.
fn outcome(result: &Turn<'_>) -> (Option<String>, bool) {
    let text = result.text.trim();
    let lines = || text.lines().map(str::trim).filter(|line| line.len() > 1);
    let fault = |line: &&str| {
        let line = line.to_ascii_lowercase();
        [
            "error",
            "failed",
            "exception",
            "traceback",
            "panicked",
            "not found",
            "denied",
        ]
        .iter()
        .any(|w| line.contains(w))
    };
    let failed_line = lines().take(30).find(fault);
    let count = text.lines().count();
    let told = match (failed_line, lines().next()) {
        (Some(line), _) => one_line(line, 160),
        (None, Some(first)) if count <= 2 => one_line(first, 120),
        (None, Some(first)) => format!("{} ({count} lines)", one_line(first, 90)),
        (None, None) => result
            .media
            .note()
            .unwrap_or_else(|| "done, no output".to_owned()),
    };
    (Some(told), failed_line.is_some())
}

/// A text in one line of at most so many characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (place, word) in text.split_whitespace().enumerate() {
        if place > 0 {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > most {
            let cut = out.floor_char_boundary(most);
            out.truncate(cut);
            out.push('…');
            break;
        }
    }
    out
}
