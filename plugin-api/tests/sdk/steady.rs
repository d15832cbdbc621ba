//! Whether an engine's selection keeps the provider's cache.

use hermes_plugin_api::message::{Message, build};
use hermes_plugin_api::testing::Kit;
use hermes_plugin_api::{
    Call, ContextEngine, Create, Emit, EngineError, EngineState, Select, SelectContext, Verdict,
    engine_module,
};

/// Selects as its settings say, and counts.
struct Chooser {
    state: EngineState,
    how: String,
    calls: u64,
}

impl ContextEngine for Chooser {
    const NAME: &'static str = "chooser";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self {
            state: EngineState::new(cx.context_length()),
            how: cx.config()["how"].as_str().unwrap_or_default().to_owned(),
            calls: 0,
        })
    }

    passive!(state);
}

impl SelectContext for Chooser {
    fn select_context(
        &mut self,
        _: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        self.calls += 1;
        let count = input.request().len();
        match self.how.as_str() {
            "keep" => out.keep(1..count)?,
            // Other bytes each time, and the same value.
            "blanks" => {
                let blanks = " ".repeat(usize::try_from(self.calls).unwrap_or(1));
                out.keep(0..count - 1)?;
                out.push(&format!(r#"{{"role":"user",{blanks}"content":"go on"}}"#))?;
            }
            "count" => {
                out.keep(0..count)?;
                out.push(&format!(
                    r#"{{"role":"user","content":"call {}"}}"#,
                    self.calls
                ))?;
            }
            "now and then" if self.calls.is_multiple_of(3) => out.keep(1..count)?,
            _ => return Ok(Verdict::Unchanged(String::new())),
        }
        Ok(Verdict::Done)
    }
}

// contract: HOOK-14, HOOK-9
#[test]
fn a_selection_that_differs_for_equal_input_is_warned_of() {
    let talk: Vec<Message> = vec![
        build::user("hello"),
        build::assistant("hello, too"),
        build::user("go on"),
    ];
    let ask = |how: &str| {
        let kit = Kit::new(engine_module!(Chooser)).config(serde_json::json!({ "how": how }));
        let mut engine = kit.create().expect("made");
        engine
            .unsteady_selection(&talk, &talk, 1000)
            .expect("it selects")
    };
    for how in ["none", "keep", "blanks"] {
        assert_eq!(ask(how), None, "{how}");
    }
    let warning = ask("count").expect("a warning");
    assert!(
        warning.contains("message 3") && warning.contains("cache"),
        "{warning}"
    );
    let warning = ask("now and then").expect("a warning");
    assert!(
        warning.contains("call 3") && warning.contains("message 0"),
        "{warning}"
    );
}
