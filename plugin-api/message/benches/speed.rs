//! How fast messages are read, priced, checked and cleaned. Run with `cargo bench -p hermes-message`.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use hermes_message::build::{assistant, calling, tool, user};
use hermes_message::{Message, estimate, format, redact, repair, sequence};

fn main() {
    divan::main();
}

const WORDS: &str =
    "The engine reads what was said before, keeps what still matters: `let x = f(1024);`\n";

/// 10,000 messages, about 7 MB: turns of a question, two calls with results, and an answer.
fn transcript() -> Vec<Message> {
    let mut messages = Vec::new();
    while messages.len() < 10_000 {
        let n = messages.len();
        let id = format!("call_{n}");
        messages.push(user(&WORDS.repeat(2)));
        for _ in 0..2 {
            messages.push(calling(
                Some("Let me look."),
                &[(&id, "read", r#"{"path":"src/lib.rs","limit":200}"#)],
            ));
            messages.push(tool(&id, &WORDS.repeat(19)));
        }
        messages.push(assistant(&WORDS.repeat(6)));
    }
    messages
}

fn file() -> String {
    let uid = "0123456789abcdef0123456789abcdef";
    transcript()
        .iter()
        .map(|m| format!("{{\"message_uid\":\"{uid}\",{}\n", &m.stored()[1..]))
        .collect()
}

#[divan::bench]
fn read_file(bencher: Bencher<'_, '_>) {
    let file = file();
    bencher
        .counter(BytesCount::of_str(&file))
        .bench(|| format::read(black_box(file.as_bytes())).map(|f| f.conversations.len()));
}

#[divan::bench]
fn read_file_and_price(bencher: Bencher<'_, '_>) {
    let file = file();
    bencher.counter(BytesCount::of_str(&file)).bench(|| {
        let file = format::read(black_box(file.as_bytes())).expect("readable");
        file.conversations[0]
            .messages
            .iter()
            .map(Message::tokens)
            .sum::<u32>()
    });
}

#[divan::bench]
fn estimate_ascii(bencher: Bencher<'_, '_>) {
    let text = WORDS.repeat(100_000);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| estimate::tokens_of_text(black_box(&text)));
}

#[divan::bench]
fn estimate_chinese(bencher: Bencher<'_, '_>) {
    let text = "上下文引擎负责管理对话的内容。".repeat(50_000);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| estimate::tokens_of_text(black_box(&text)));
}

#[divan::bench]
fn check_valid(bencher: Bencher<'_, '_>) {
    let messages = transcript();
    bencher.bench(|| sequence::check(black_box(&messages), sequence::Policy::Request).len());
}

#[divan::bench]
fn repair_broken(bencher: Bencher<'_, '_>) {
    let mut messages = transcript();
    messages.retain({
        let mut n = 0;
        move |_| {
            n += 1;
            n % 7 != 0
        }
    });
    bencher.bench(|| repair::repair(black_box(&messages)).notes.len());
}

#[divan::bench]
fn redact_clean(bencher: Bencher<'_, '_>) {
    let text = WORDS.repeat(100_000);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| redact::redact(black_box(&text)).len());
}
