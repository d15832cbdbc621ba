//! What the next request costs after one new turn: it grows with the new messages, apart from the join of stored
//! texts.
//!
//! ```text
//! cargo bench -p hermes-tests --bench context
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use hermes::context::port::Choice;
use hermes::context::request::Frame;
use hermes::context::{Conversation, Engine, Settings};
use hermes::engine::{
    CompressRequest, Decision, Emission, EngineFault, EngineState, MessageList, PassOutcome,
    SessionInfo, TurnInfo, Usage,
};
use hermes_message::Message;
use serde_json::json;

/// No engine at all: what is measured is the host's own work.
struct Nobody;

fn unchanged() -> Result<Emission, EngineFault> {
    Ok(Emission::Unchanged {
        reason: String::new(),
    })
}

impl Engine for Nobody {
    fn name(&self) -> &str {
        "nobody"
    }
    fn fallen_back(&self) -> Option<(String, String)> {
        None
    }
    fn state(&self) -> EngineState {
        EngineState::default()
    }
    fn selects(&self) -> bool {
        false
    }
    fn observes(&self) -> bool {
        false
    }
    fn select_context(&mut self, _: &Choice) -> Result<Emission, EngineFault> {
        unchanged()
    }
    fn should_compress(&mut self, _: u64) -> Decision {
        Decision::default()
    }
    fn preflight(&mut self, _: u64, _: &MessageList) -> bool {
        false
    }
    fn compress(&mut self, _: CompressRequest) -> Result<Emission, EngineFault> {
        unchanged()
    }
    fn compress_with_builtin(&mut self, _: CompressRequest) -> Result<Emission, EngineFault> {
        unchanged()
    }
    fn pass_result(&mut self, _: &str, _: PassOutcome) {}
    fn update_from_response(&mut self, _: &Usage) {}
    fn session_start(&mut self, _: &SessionInfo) {}
    fn session_end(&mut self, _: &SessionInfo) {}
    fn turn_complete(&mut self, _: TurnInfo) {}
    fn take_notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// One turn: a question, a call, its result, an answer; 1.1 KB a message.
fn turn(number: usize) -> [Message; 4] {
    let text = format!("{number} {}", "some words of a turn ".repeat(50));
    [
        json!({"role": "user", "content": text}),
        json!({"role": "assistant", "content": text, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}),
        json!({"role": "tool", "tool_call_id": "c", "content": text}),
        json!({"role": "assistant", "content": text}),
    ]
    .map(|value| Message::parse(&value.to_string()).expect("a message"))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let frame = Frame::new("bench", &[]);
    println!("next request after one new turn of 4 messages (median of 101)");
    println!(
        "{:>10} {:>12} {:>12} {:>12} {:>14}",
        "messages", "request", "join alone", "the rest", "whole repair"
    );
    for messages in [100, 1_000, 10_000] {
        let mut conversation = Conversation::new(Settings::default(), frame.clone());
        for number in 0..messages / 4 {
            turn(number)
                .into_iter()
                .for_each(|message| conversation.push(message));
        }
        let first = conversation.request(&mut Nobody, 0);
        drop(first);
        let (mut requests, mut joins, mut rests, mut repairs) = (vec![], vec![], vec![], vec![]);
        for number in 0..101 {
            let new = turn(number);
            let begun = Instant::now();
            for message in new {
                conversation.push(message);
            }
            let request = conversation.request(&mut Nobody, 0);
            let took = begun.elapsed();
            let begun = Instant::now();
            black_box(frame.body(&request.messages));
            let join = begun.elapsed();
            let begun = Instant::now();
            black_box(hermes_message::repair::repair(
                conversation.transcript().messages(),
            ));
            repairs.push(begun.elapsed());
            requests.push(took);
            joins.push(join);
            rests.push(took.saturating_sub(join));
        }
        println!(
            "{messages:>10} {:>12.1?} {:>12.1?} {:>12.1?} {:>14.1?}",
            median(requests),
            median(joins),
            median(rests),
            median(repairs)
        );
    }
}
