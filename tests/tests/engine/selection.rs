//! Which engine serves.

use std::cell::RefCell;

use hermes::engine::{EngineSource, Selected, Slot, TurnInfo, select};
use hermes::plugin::EngineModule;
use hermes_message::Message;

use crate::support::{Host, Variant, builtin, conversation, logged, module};

/// Gives the misfit under the names that it is asked for.
struct Source {
    has: Vec<(&'static str, Variant)>,
    asked: RefCell<Vec<String>>,
}

impl EngineSource for Source {
    fn load(&self, name: &str) -> Result<EngineModule, String> {
        self.asked.borrow_mut().push(name.to_owned());
        let found = self.has.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, variant)| module(*variant))
            .ok_or_else(|| format!("no engine is named '{name}'; write 'misfit'"))
    }
}

fn source() -> Source {
    Source {
        has: vec![
            ("misfit", Variant::Plain),
            ("other", Variant::Plain),
            ("compressor", Variant::Plain),
        ],
        asked: RefCell::default(),
    }
}

fn choose(wanted: Option<&str>, source: &Source, does: (&str, &str)) -> (Selected, String) {
    let host = Host::new();
    logged(|| {
        select(wanted, &builtin(), source, &|name, _| {
            let settings = if name == "compressor" {
                hermes::engine::EngineSettings::default()
            } else {
                Host::settings(does.0, does.1)
            };
            (settings, host.services())
        })
        .unwrap()
    })
}

#[test]
fn nothing_named_means_the_built_in_and_asks_no_one() {
    // contract: SEL-1, SEL-2, SEL-6
    for wanted in [None, Some(""), Some("compressor")] {
        let source = source();
        let (selected, log) = choose(wanted, &source, ("", ""));
        assert_eq!(selected.template.name(), "compressor", "{wanted:?}");
        assert_eq!(selected.template.module().loaded_from(), "built-in");
        assert_eq!(selected.fallback, None);
        assert!(
            source.asked.borrow().is_empty(),
            "no plugin can take that name"
        );
        assert!(!log.contains("WARN"), "{log}");
    }
}

#[test]
fn the_named_engine_serves_and_no_other() {
    // contract: SEL-2, SEL-3, ENG-1
    let source = source();
    let (selected, log) = choose(Some("misfit"), &source, ("", ""));
    assert_eq!(selected.template.name(), "misfit");
    assert_eq!(*source.asked.borrow(), ["misfit"]);
    assert!(!log.contains("WARN"), "{log}");
    assert_eq!(selected.for_agent().unwrap().name(), "misfit");
}

#[test]
fn what_does_not_serve_is_named_and_the_built_in_starts() {
    // contract: SEL-4, SEL-5
    let cases = [
        (
            "Misfit",
            ("", ""),
            "no engine is named 'Misfit'; write 'misfit'",
        ),
        ("misfit ", ("", ""), "no engine is named 'misfit '"),
        ("other", ("", ""), "calls itself 'misfit'"),
        ("misfit", ("create", "fail"), "create failed: boom"),
        ("misfit", ("create", "unavailable"), "no key"),
        ("misfit", ("create", "null"), "gave no instance"),
        ("misfit", ("create", "panic"), "panicked"),
    ];
    for (wanted, does, word) in cases {
        let (selected, log) = choose(Some(wanted), &source(), does);
        assert_eq!(selected.template.name(), "compressor");
        assert_eq!(log.matches("WARN").count(), 1, "{wanted}: {log}");
        assert!(
            log.contains(word) && log.contains(wanted),
            "{wanted}: {log}"
        );
        assert!(!log.contains("could not be safely copied"), "{log}");
        let fallback = selected.fallback.clone().unwrap();
        assert_eq!(fallback.wanted, wanted);
        assert!(fallback.reason.contains(word), "{}", fallback.reason);
        // The conversation starts, and knows what was wanted.
        let engine = selected.for_agent().unwrap();
        assert!(format!("{:?}", engine.serving()).contains(wanted));
    }
}

#[test]
fn the_interface_is_there_before_any_session_or_model_call() {
    // contract: TEST-1, TEST-2, ENG-18
    let host = Host::new();
    for template in [
        host.builtin_template(),
        host.template(Variant::Plain, "", ""),
    ] {
        let name = template.name().to_owned();
        for slot in Slot::ALL {
            assert!(
                !slot.required() || slot.is_in(template.module().vtable()),
                "{name}: {slot}"
            );
        }
        let mut engine = template.clone_for_agent().unwrap();
        assert_eq!(engine.state().context_length, 200_000);
        assert!(!engine.should_compress(None).yes);
        let hello = r#"{"role":"user","content":"hello"}"#;
        let messages = hermes::engine::MessageList::stored(&[Message::parse(hello).unwrap()]);
        let request = hermes::engine::CompressRequest {
            messages: messages.clone(),
            ..Default::default()
        };
        let control = hermes::engine::PassControl::new(None, None);
        match engine.compress(request, &control).unwrap() {
            hermes::engine::Emission::Unchanged { .. } => {}
            hermes::engine::Emission::Messages(items) => {
                for item in &items {
                    let message = item.message(&[&messages]).unwrap();
                    assert!(message.value("role").is_some(), "{name}");
                }
            }
        }
    }
}

#[test]
fn an_absent_hook_leaves_the_request_alone() {
    // contract: HOOK-1
    let mut engine = Host::new().builtin_template().clone_for_agent().unwrap();
    assert!(!engine.has(Slot::SelectContext) && !engine.has(Slot::TurnComplete));
    let list = conversation();
    let emission = engine.select_context(&list, &list, None, 0, 0, 0).unwrap();
    assert_eq!(
        emission,
        hermes::engine::Emission::Unchanged {
            reason: String::new()
        }
    );
    engine.turn_complete(TurnInfo::default());
    assert!(engine.take_notices().is_empty());
}
