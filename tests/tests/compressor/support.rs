//! Transcripts, helpers and checks that the tests share.

use hermes_compressor::Settings;
use hermes_compressor::assemble::Step;
use hermes_compressor::helper::{Ask, Class, Failure, Helper, Reply};
use hermes_compressor::pass::{self, Made, Outcome, Request};
use hermes_compressor::row::Row;
use hermes_message::sequence::{Policy, introduced};
use hermes_message::{CallUid, Message, Role, build};
use hermes_plugin_api::testing::Kit;

/// A host for the built-in engine.
pub(crate) fn kit(window: u64) -> Kit {
    Kit::new(hermes_compressor::module()).context_length(window)
}

/// Gives every message and every call an identity, as a store would.
pub(crate) fn numbered(messages: Vec<Message>) -> Vec<Message> {
    let callers = hermes_message::sequence::callers(&messages);
    let call_uid = |at: usize, n: usize| format!("{at:016x}{n:016x}");
    let mut open: Vec<usize> = vec![0; messages.len()];
    messages
        .iter()
        .enumerate()
        .map(|(at, message)| {
            let mut identity = message.identity().clone();
            if identity.uid.is_none() {
                identity.uid = Some(uid(at).into());
            }
            for (n, call) in message.tool_calls().iter().enumerate() {
                if identity.tool_call_uids.get(call.key()).is_none() {
                    identity
                        .tool_call_uids
                        .set(call.key(), CallUid::One(call_uid(at, n).into()));
                }
            }
            if let Some(caller) = callers[at] {
                let n = open[caller];
                open[caller] += 1;
                identity.tool_call_uid = Some(call_uid(caller, n).into());
            }
            message.replaced_identity(identity)
        })
        .collect()
}

/// The uid that [`numbered`] gives to a message.
pub(crate) fn uid(at: usize) -> String {
    format!("{at:032x}")
}

/// A helper that answers with a function of the question and its number.
pub(crate) struct Scripted<F> {
    pub(crate) window: u64,
    pub(crate) asked: Vec<String>,
    pub(crate) answer: F,
}

impl<F: FnMut(usize, &str) -> Result<Reply, Failure>> Scripted<F> {
    pub(crate) fn new(window: u64, answer: F) -> Self {
        Self {
            window,
            asked: Vec::new(),
            answer,
        }
    }
}

impl<F: FnMut(usize, &str) -> Result<Reply, Failure>> Helper for Scripted<F> {
    fn window(&self) -> u64 {
        self.window
    }

    fn ask(&mut self, ask: &Ask<'_>) -> Result<Reply, Failure> {
        self.asked.push(ask.prompt.to_owned());
        (self.answer)(self.asked.len() - 1, ask.prompt)
    }
}

pub(crate) fn says(text: &str) -> Result<Reply, Failure> {
    Ok(Reply {
        text: text.to_owned(),
        finish_reason: "stop".to_owned(),
    })
}

pub(crate) fn fails(class: Class) -> Result<Reply, Failure> {
    Err(Failure::new(class, format!("scripted {class:?}")))
}

pub(crate) const SUMMARY: &str = "## Goal\nport the parser to the new grammar\n## Completed Actions\n1. read forty files with read_file, all of them fine";

/// Runs the algorithm on messages.
pub(crate) fn run(
    messages: &[Message],
    settings: &Settings,
    helper: Option<&mut dyn Helper>,
    request: &Request<'_>,
) -> Outcome {
    let rows = Row::all(messages);
    pass::compress(&rows, settings, helper, request)
}

/// The new list.
pub(crate) fn list(messages: &[Message], made: &Made) -> Vec<Message> {
    let mut out = Vec::new();
    for step in &made.steps {
        match step {
            Step::Keep(range) => out.extend_from_slice(&messages[range.clone()]),
            Step::Edit { index, json } => {
                out.push(messages[*index].rewritten(json).expect("an edited message"))
            }
            Step::Push { json } => out.push(Message::parse(json).expect("a new message")),
        }
    }
    out
}

/// Runs the algorithm and gives the new list; a list that stays is given back as it is.
pub(crate) fn compressed(
    messages: &[Message],
    settings: &Settings,
    helper: Option<&mut dyn Helper>,
    request: &Request<'_>,
) -> Vec<Message> {
    match run(messages, settings, helper, request) {
        Outcome::Made(made) => list(messages, &made),
        Outcome::Unchanged(..) => messages.to_vec(),
    }
}

pub(crate) fn request(window: u64) -> Request<'static> {
    let threshold = hermes_compressor::threshold::resolve(window, 0, 0.5, None).tokens;
    Request {
        window,
        threshold,
        ..Request::default()
    }
}

pub(crate) fn tokens(messages: &[Message]) -> u64 {
    messages
        .iter()
        .map(|message| u64::from(message.tokens()))
        .sum()
}

/// The new list breaks no rule that the old one kept, is not larger, and keeps prompt and newest user message.
pub(crate) fn assert_sound(before: &[Message], after: &[Message], what: &str) {
    let faults = introduced(before, after, Policy::Request);
    assert!(faults.is_empty(), "{what}: {faults:?}\n{}", outline(after));
    assert!(
        tokens(after) <= tokens(before),
        "{what}: larger, {} > {}",
        tokens(after),
        tokens(before)
    );
    if before.first().is_some_and(|m| m.role() == Role::System) {
        assert_eq!(after[0], before[0], "{what}: system prompt");
    }
}

/// Index of the newest message of a person.
pub(crate) fn newest_user(messages: &[Message]) -> Option<usize> {
    messages.iter().rposition(|m| {
        m.role() == Role::User
            && !m.has(hermes_message::flags::SUMMARY)
            && !m.has(hermes_message::flags::SYNTHETIC)
    })
}

/// Roles and beginnings, for failure messages.
pub(crate) fn outline(messages: &[Message]) -> String {
    messages
        .iter()
        .enumerate()
        .map(|(at, m)| {
            let text: String = m.text().chars().take(60).collect();
            format!(
                "{at} {:?} {} calls {text:?}\n",
                m.role(),
                m.tool_calls().len()
            )
        })
        .collect()
}

/// `words` words of prose that never repeats.
pub(crate) fn prose(seed: usize, words: usize) -> String {
    const WORDS: [&str; 24] = [
        "the", "parser", "reads", "a", "token", "and", "then", "it", "goes", "on", "with", "next",
        "line", "of", "file", "while", "we", "look", "at", "how", "state", "moves", "through",
        "code",
    ];
    let mut state = seed as u64 ^ 0x9e37_79b9;
    let mut out = String::new();
    for place in 0..words {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        if place > 0 {
            out.push(' ');
        }
        out.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        if place % 14 == 13 {
            out.push('.');
        }
    }
    out
}

/// A call of one tool and its result.
pub(crate) fn round(id: &str, tool: &str, arguments: &str, result: &str) -> [Message; 2] {
    [
        build::calling(None, &[(id, tool, arguments)]),
        build::tool(id, result),
    ]
}

/// A long session: system prompt, and turns of a question, two tool rounds and an answer.
pub(crate) fn session(turns: usize) -> Vec<Message> {
    let mut messages = vec![build::system("You are Hermes. RULE-7: never push.")];
    for turn in 0..turns {
        messages.push(build::user(&format!(
            "question {turn}: {}",
            prose(turn, 30)
        )));
        for n in 0..2 {
            let path = format!("{{\"path\":\"src/mod_{}.rs\"}}", turn * 2 + n);
            messages.extend(round(
                &format!("call_{turn}_{n}"),
                "read_file",
                &path,
                &prose(turn * 7 + n, 160),
            ));
        }
        messages.push(build::assistant(&format!(
            "answer {turn}: {}",
            prose(turn + 9_000, 60)
        )));
    }
    numbered(messages)
}
