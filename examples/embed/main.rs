//! A program that embeds the host: asks one question, and lets a child agent check the answer.
//!
//! ```text
//! cargo run --example embed -- "What does this project do?"
//! ```

use std::process::ExitCode;

use hermes::agent::{AgentOptions, Event, Host, HostOptions};

fn main() -> ExitCode {
    // A plugin's library is tried in a child process first; this may be that child.
    if let Some(exit) = hermes::helper_main() {
        return exit;
    }
    let question = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "Hello!".to_owned());
    let talked = talk(&question).map_err(|error| eprintln!("error: {error}"));
    // An engine that hangs does not keep the process.
    hermes::engine::leave(u8::from(talked.is_err()));
    ExitCode::from(u8::from(talked.is_err()))
}

fn talk(question: &str) -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::open(HostOptions::default())?;
    let mut agent = host.agent(AgentOptions::default())?;
    let report = agent.turn(question, &mut |event| match event {
        Event::Text(text) => print!("{text}"),
        Event::Warning(text) => eprintln!("warning: {text}"),
        _ => {}
    });
    println!("\n({:?}, {} requests)", report.outcome, report.api_calls);

    let mut child = agent.child(AgentOptions::default())?;
    let check = child.turn(&format!("Is this right? {}", report.answer), &mut |_| {});
    println!("{}", check.answer);
    Ok(())
}
