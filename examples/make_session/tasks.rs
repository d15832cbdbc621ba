//! What the user asks for, and how the agent goes about it. What it says is computed from what it has read.

use serde_json::json;

use crate::Session;

/// Lines of one look into a file.
const LOOK: usize = 110;

/// One task about one file; which one depends on the file's number.
pub(crate) fn work_on(session: &mut Session, number: usize, path: &str) {
    if let Some(rule) = standing_order(number) {
        session.user(rule);
        session.assistant(&format!("Noted, and kept from here on: {rule}"));
    }
    match number % 5 {
        0 => explain(session, path),
        1 => document(session, path),
        2 => rename(session, path),
        3 => measure(session, path),
        _ => trace_uses(session, path),
    }
}

/// The last exchange: a question that can only be answered from what went before.
pub(crate) fn finish(session: &mut Session) {
    session.user("Before we stop: which of my standing orders are in force, and which edits did you make first and last?");
    session.assistant(
        "In force: no new dependencies, names in full words, edits only in files read before, and a decision is \
         recorded with its reason. The edits are listed in the answers above, in the order they were made; nothing \
         was committed.",
    );
    session.user("Good. Write down the next step and its first command.");
}

fn standing_order(number: usize) -> Option<&'static str> {
    match number {
        0 => Some("Standing order A: do not add dependencies; if one seems needed, ask."),
        7 => Some(
            "Standing order B: names are full words. `cfg` and `ctx` are fine only where a standard API uses them.",
        ),
        15 => Some(
            "Standing order C: when you decide between two ways, write one line `DECISION: … because …`.",
        ),
        _ => None,
    }
}

fn explain(session: &mut Session, path: &str) {
    session.user(&format!(
        "What is {path} for, and how is it put together? Read it all, then answer in a few lines."
    ));
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    session.call(
        Some("First the neighbourhood, then the file."),
        &[("list_files", json!({"path": folder}))],
    );
    read_all(session, path);
    let items = public_items(session, path);
    let head = first_words(session, path);
    session.assistant(&format!(
        "{path}: {head} It has {} public items{}. Its tests {}.",
        items.len(),
        list(&items),
        if has_tests(session, path) {
            "stand at its end"
        } else {
            "are elsewhere"
        },
    ));
}

fn document(session: &mut Session, path: &str) {
    session.user(&format!(
        "Check {path} against our rules and mend what you find."
    ));
    let report = session
        .call(None, &[("check", json!({"path": path}))])
        .remove(0);
    read_all(session, path);
    let Some(fault) = report
        .lines()
        .find(|line| line.contains("no documentation"))
    else {
        session.assistant(&format!(
            "{path} follows the rules: {}. Nothing to mend, nothing changed.",
            report.lines().next().unwrap_or_default()
        ));
        return;
    };
    let item = fault
        .split("no documentation: ")
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let name = item
        .split(['(', '<'])
        .next()
        .unwrap_or_default()
        .replace("pub fn ", "");
    let new = format!("/// {}.\n{item}", spoken(&name));
    let outcome = session
        .call(
            Some(&format!(
                "`{name}` has no documentation comment; I add one that says what it returns."
            )),
            &[("edit_file", json!({"path": path, "old": item, "new": new}))],
        )
        .remove(0);
    session.call(None, &[("check", json!({"path": path}))]);
    session.assistant(&format!(
        "Done: {outcome}. Found by the check: {}.",
        report.lines().next().unwrap_or_default()
    ));
}

fn rename(session: &mut Session, path: &str) {
    session.user(&format!(
        "Is there a name in {path} that could say more? Propose one rename, and try it."
    ));
    // The wrong path is a slip that agents really make; the tool says so.
    let wrong = path.replace(".rs", "/mod.rs");
    session.call(
        None,
        &[(
            "read_file",
            json!({"path": wrong, "from": 1, "lines": LOOK}),
        )],
    );
    session.assistant_then_read(
        path,
        &format!(
            "There is no {wrong}: modules here are a file beside a folder. Reading {path} instead."
        ),
    );
    let Some(name) = private_function(session, path) else {
        session.assistant(&format!(
            "No private function in {path}; every name is part of the public surface and stays."
        ));
        return;
    };
    let found = session
        .call(
            Some(&format!(
                "`{name}` is private, so a rename stays in this file. Where is it used?"
            )),
            &[(
                "search",
                json!({"pattern": format!("{name}("), "path": path}),
            )],
        )
        .remove(0);
    let new = format!("{name}_here");
    let outcome = session
        .call(
            None,
            &[(
                "edit_file",
                json!({"path": path, "old": format!("fn {name}("), "new": format!("fn {new}(")}),
            )],
        )
        .remove(0);
    let uses = found.lines().count();
    let decision = format!(
        "DECISION: keep `{name}` because a rename to `{new}` touches {uses} places and says nothing that its module \
         does not say already. What the trial edit reported: {outcome}. I take it back."
    );
    let back = json!({"path": path, "old": format!("fn {new}("), "new": format!("fn {name}(")});
    session.call(Some(&decision), &[("edit_file", back)]);
    session.assistant(&format!("{path} is as it was."));
}

fn measure(session: &mut Session, path: &str) {
    session.user(&format!(
        "How large are the functions of {path}? I want to know whether it must be split."
    ));
    read_all(session, path);
    let text = session.tools.tree.get(path).unwrap_or_default();
    let lines = text.lines().count();
    let functions = text
        .lines()
        .filter(|line| line.trim_start().starts_with("fn ") || line.contains("pub fn "))
        .count();
    let longest = text.lines().map(str::len).max().unwrap_or(0);
    let verdict = if lines > 300 {
        "it is a candidate for a split"
    } else {
        "it stays one file"
    };
    session.assistant(&format!(
        "{path}: {lines} lines, {functions} functions, about {} lines each; the longest line has {longest} bytes. \
         DECISION: {verdict}, because the limit is 300 lines.",
        lines / functions.max(1),
    ));
}

fn trace_uses(session: &mut Session, path: &str) {
    session.user(&format!(
        "Who uses what {path} exports? Look for the first two items outside of it."
    ));
    let items = public_items(session, path);
    let calls: Vec<_> = items
        .iter()
        .take(2)
        .map(|item| ("search", json!({"pattern": item, "path": ""})))
        .collect();
    if calls.is_empty() {
        session.call(
            None,
            &[(
                "search",
                json!({"pattern": path.rsplit('/').next().unwrap_or(path), "path": ""}),
            )],
        );
        session.assistant(&format!(
            "{path} exports nothing by name; it is used through its module alone."
        ));
        return;
    }
    let outputs = session.call(Some("Both searches at once."), &calls);
    read_all(session, path);
    let outside: Vec<usize> = outputs
        .iter()
        .map(|output| {
            output
                .lines()
                .filter(|line| !line.starts_with(path))
                .count()
        })
        .collect();
    session.assistant(&format!(
        "Outside of {path}: {} lines mention {}{}.",
        outside[0],
        items[0],
        items
            .get(1)
            .zip(outside.get(1))
            .map_or(String::new(), |(item, count)| format!(
                ", {count} mention {item}"
            ))
    ));
}

fn read_all(session: &mut Session, path: &str) {
    let lines = session
        .tools
        .tree
        .get(path)
        .map_or(0, |text| text.lines().count());
    // Four looks are enough for any file that an answer is about.
    for from in (1..=lines.max(1)).step_by(LOOK).take(4) {
        session.call(
            None,
            &[(
                "read_file",
                json!({"path": path, "from": from, "lines": LOOK}),
            )],
        );
    }
}

impl Session {
    fn assistant_then_read(&mut self, path: &str, text: &str) {
        self.call(
            Some(text),
            &[("read_file", json!({"path": path, "from": 1, "lines": LOOK}))],
        );
    }
}

fn public_items(session: &Session, path: &str) -> Vec<String> {
    let text = session.tools.tree.get(path).unwrap_or_default();
    let words = [
        "pub fn ",
        "pub struct ",
        "pub enum ",
        "pub trait ",
        "pub const ",
    ];
    let named = text.lines().filter_map(|line| {
        let rest = words
            .iter()
            .find_map(|word| line.trim_start().strip_prefix(word))?;
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        (end > 3).then(|| rest[..end].to_owned())
    });
    let mut items: Vec<String> = named.collect();
    items.dedup();
    items
}

fn private_function(session: &Session, path: &str) -> Option<String> {
    let text = session.tools.tree.get(path)?;
    let line = text.lines().find(|line| line.starts_with("fn "))?;
    Some(
        line.trim_start_matches("fn ")
            .split(['(', '<'])
            .next()?
            .to_owned(),
    )
}

fn has_tests(session: &Session, path: &str) -> bool {
    session
        .tools
        .tree
        .get(path)
        .is_some_and(|text| text.contains("#[cfg(test)]"))
}

fn first_words(session: &Session, path: &str) -> String {
    let text = session.tools.tree.get(path).unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.starts_with("//! "))
        .unwrap_or("//! It has no introduction.");
    line.trim_start_matches("//! ").to_owned()
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        String::new()
    } else {
        format!(
            ": {}",
            items.iter().take(8).cloned().collect::<Vec<_>>().join(", ")
        )
    }
}

fn spoken(name: &str) -> String {
    let words = name.trim().replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
