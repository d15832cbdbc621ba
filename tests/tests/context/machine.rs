//! The pass as a machine, without any engine: late results, a second pass, a transcript that grows meanwhile.

use hermes::context::Transcript;
use hermes::context::pass::{Action, Answer, Event, Order, Outcome, PassMachine};
use hermes::engine::Trigger;

use super::{assistant, turns, user};

fn begin(machine: &mut PassMachine, id: &str, transcript: &Transcript) -> Vec<Action> {
    machine.step(Event::Begin {
        order: Order::new(id, Trigger::Tools),
        transcript,
    })
}

fn generation(actions: &[Action]) -> u64 {
    match actions {
        [Action::Compress { generation, .. } | Action::Store { generation, .. }] => *generation,
        other => panic!("not one action with a generation: {other:?}"),
    }
}

fn talk() -> Transcript {
    let mut messages = turns(5);
    messages.push(user("the question"));
    Transcript::new(&messages)
}

fn shorter(transcript: &Transcript) -> Answer {
    let messages = transcript.messages();
    Answer::Messages(vec![
        messages[0].clone(),
        messages[messages.len() - 1].clone(),
    ])
}

// contract: PASS-3
#[test]
fn what_is_appended_while_a_pass_runs_follows_its_result() {
    let mut transcript = talk();
    let mut machine = PassMachine::default();
    let actions = begin(&mut machine, "p1", &transcript);
    let generation = generation(&actions);
    let Action::Compress { snapshot, .. } = &actions[0] else {
        panic!("{actions:?}")
    };
    let length = snapshot.len();
    let answer = shorter(snapshot);
    transcript.push(assistant("meanwhile"));
    assert_eq!(
        snapshot.len(),
        length,
        "a snapshot sees nothing of what comes later"
    );

    let actions = machine.step(Event::Returned {
        generation,
        answer: Ok(answer),
    });
    let [
        Action::Store {
            messages, pass_id, ..
        },
    ] = &actions[..]
    else {
        panic!("{actions:?}")
    };
    assert_eq!(pass_id, "p1");
    let messages = messages.clone();
    let actions = machine.step(Event::Stored {
        generation,
        messages,
    });
    let [
        Action::Adopt { taken, messages },
        Action::Tell {
            committed: true, ..
        },
        Action::Boundary { .. },
        Action::End(_),
    ] = &actions[..]
    else {
        panic!("{actions:?}");
    };
    transcript.commit(*taken, messages);
    let texts: Vec<String> = transcript
        .messages()
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(texts[1..], ["the question", "meanwhile"]);
    assert!(machine.is_idle());
}

// contract: PASS-4
#[test]
fn a_result_that_comes_too_late_is_discarded_and_its_engine_is_told() {
    let transcript = talk();
    let mut machine = PassMachine::default();
    let first = generation(&begin(&mut machine, "p1", &transcript));
    let actions = machine.step(Event::GaveUp {
        generation: first,
        reason: "no progress in 120 s".to_owned(),
    });
    assert!(matches!(
        &actions[..],
        [Action::End(Outcome::Failed { .. })]
    ));

    let second = generation(&begin(&mut machine, "p2", &transcript));
    let late = machine.step(Event::Returned {
        generation: first,
        answer: Ok(shorter(&transcript)),
    });
    assert!(
        matches!(&late[..], [Action::Tell { pass_id, committed: false, .. }] if pass_id == "p1"),
        "{late:?}"
    );
    let on_time = machine.step(Event::Returned {
        generation: second,
        answer: Ok(shorter(&transcript)),
    });
    assert_eq!(
        generation(&on_time),
        second,
        "the second pass is not disturbed"
    );
}

// contract: PASS-5
#[test]
fn one_conversation_runs_one_pass_at_a_time() {
    let transcript = talk();
    let mut machine = PassMachine::default();
    let generation = generation(&begin(&mut machine, "p1", &transcript));
    let refused = begin(&mut machine, "p2", &transcript);
    assert!(matches!(&refused[..], [Action::End(Outcome::Busy)]));
    let actions = machine.step(Event::Returned {
        generation,
        answer: Ok(shorter(&transcript)),
    });
    assert!(matches!(&actions[..], [Action::Store { .. }]));
    assert!(
        machine
            .step(Event::GaveUp {
                generation,
                reason: String::new()
            })
            .is_empty(),
        "a commit is never abandoned"
    );
    let actions = machine.step(Event::NotStored {
        generation,
        reason: "disk full".to_owned(),
    });
    assert!(matches!(
        &actions[..],
        [
            Action::Tell {
                committed: false,
                ..
            },
            Action::End(Outcome::Failed { .. })
        ]
    ));
    assert!(machine.is_idle());
    assert!(
        machine
            .step(Event::Stored {
                generation,
                messages: Vec::new()
            })
            .is_empty(),
        "once"
    );
}
