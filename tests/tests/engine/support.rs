//! The misfit engine, compiled and loaded, and a host around it with short budgets.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hermes::engine::{
    EngineHandle, EngineSettings, Ledger, MessageList, Selected, Services, Template, Timeouts,
};
use hermes::plugin::EngineModule;
use hermes_message::Message;
use hermes_plugin_api::{abi, engine_module};
use serde_json::json;

/// What a call may take where nothing sleeps: a machine that is busy with something else must not matter.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// What a call may take where a misfit sleeps for 1.5 s.
pub(crate) const BUDGET: Duration = Duration::from_millis(500);
/// The grace behind it.
pub(crate) const GRACE: Duration = Duration::from_millis(200);
/// A method that was bound to come back has come back within this.
pub(crate) const LIMIT: Duration = Duration::from_millis(1400);

/// The variants of `misfit/slots.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Plain,
    WithoutClone,
    Old,
    New,
}

impl Variant {
    fn define(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::WithoutClone => Some("-DSLOTS_WITHOUT_CLONE"),
            Self::Old => Some("-DSLOTS_OLD"),
            Self::New => Some("-DSLOTS_NEW"),
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Compiles one variant, without a warning, once in this process.
fn library(variant: Variant) -> PathBuf {
    static BUILT: Mutex<Vec<(Variant, PathBuf)>> = Mutex::new(Vec::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, path)) = built.iter().find(|(known, _)| *known == variant) {
        return path.clone();
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("misfit-{variant:?}-{}.so", std::process::id()));
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(["-O1", "-fPIC", "-shared", "-I"])
        .arg(root().join("plugin-api/include"))
        .args(variant.define())
        .arg(root().join("tests/misfit/slots.c"))
        .arg("-o")
        .arg(&path)
        .status()
        .expect("a C compiler named cc");
    assert!(status.success(), "slots.c does not compile");
    built.push((variant, path.clone()));
    path
}

/// The module of one variant, loaded into this process.
pub(crate) fn module(variant: Variant) -> EngineModule {
    let path = library(variant);
    // SAFETY: the library was made by this test from a source that runs nothing when it is loaded.
    let library = unsafe { libloading::Library::new(path) }.expect("the misfit loads");
    // SAFETY: the symbol has this type by the header, and the library is never closed.
    let module: &'static abi::Module = unsafe {
        let entry = library
            .get::<abi::EntryFn>(abi::ENTRY_SYMBOL.as_bytes())
            .unwrap();
        &*entry()
    };
    std::mem::forget(library);
    EngineModule::from_static(module).expect("the misfit's tables are in order")
}

/// A built-in to fall back to, written with the author's kit.
pub(crate) fn builtin() -> EngineModule {
    static MODULE: OnceLock<EngineModule> = OnceLock::new();
    MODULE
        .get_or_init(|| EngineModule::from_static(engine_module!(standin::Standin)).unwrap())
        .clone()
}

mod standin {
    use hermes_plugin_api::{
        Call, Compress, ContextEngine, Create, Decision, Emit, EngineError, EngineState, Verdict,
    };

    /// Keeps everything, and never asks for a pass.
    #[derive(Clone)]
    pub(super) struct Standin(EngineState);

    impl ContextEngine for Standin {
        const NAME: &'static str = "compressor";
        fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
            Ok(Self(EngineState::new(cx.context_length())))
        }
        fn state(&self) -> EngineState {
            self.0
        }
        fn state_mut(&mut self) -> &mut EngineState {
            &mut self.0
        }
        fn should_compress(
            &mut self,
            _: &Call<'_>,
            _: Option<u64>,
        ) -> Result<Decision, EngineError> {
            Ok(Decision::No)
        }
        fn compress(
            &mut self,
            _: &Call<'_>,
            input: &Compress<'_>,
            out: &mut Emit<'_>,
        ) -> Result<Verdict, EngineError> {
            out.keep(0..input.messages().len())?;
            Ok(Verdict::Done)
        }
    }
}

/// Everything one test has around its engine.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) ledger: Ledger,
    log: Arc<Mutex<Vec<String>>>,
    pub(crate) timeouts: Timeouts,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with(PATIENCE)
    }

    /// One that gives calls up soon.
    pub(crate) fn hasty() -> Self {
        Self::with(BUDGET)
    }

    fn with(budget: Duration) -> Self {
        Self {
            ledger: Ledger::new(),
            log: Arc::default(),
            timeouts: Timeouts {
                hooks: budget,
                quick: budget,
                lifecycle: budget,
                tools: budget,
                grace: GRACE,
                ..Timeouts::default()
            },
        }
    }

    pub(crate) fn services(&self) -> Services {
        let log = Arc::clone(&self.log);
        Services {
            log: Arc::new(move |_: &str, _, line: &str| log.lock().unwrap().push(line.to_owned())),
            data_dir: PathBuf::from("/data"),
            plugin_dir: PathBuf::from("/plugin"),
            ledger: self.ledger.clone(),
            timeouts: self.timeouts,
            // Reading the real vocabulary takes longer than the budgets here.
            count_tokens: Arc::new(|text: &str| text.split_whitespace().count() as u64),
            ..Services::default()
        }
    }

    /// What the engine has logged so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the engine has logged a line that begins so.
    pub(crate) fn wait_for_log(&self, start: &str) -> String {
        for _ in 0..400 {
            if let Some(line) = self.log().iter().find(|line| line.starts_with(start)) {
                return line.clone();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no '{start}' in the log: {:?}", self.log());
    }

    pub(crate) fn settings(slot: &str, does: &str) -> EngineSettings {
        EngineSettings {
            config: json!({ "slot": slot, "does": does }),
            context_length: 200_000,
        }
    }

    pub(crate) fn builtin_template(&self) -> Template {
        let settings = EngineSettings {
            context_length: 200_000,
            ..EngineSettings::default()
        };
        Template::create(&builtin(), settings, self.services()).unwrap()
    }

    /// The registered instance of a misfit.
    pub(crate) fn template(&self, variant: Variant, slot: &str, does: &str) -> Template {
        Template::create(
            &module(variant),
            Self::settings(slot, does),
            self.services(),
        )
        .unwrap()
        .with_builtin(self.builtin_template())
    }

    /// An agent's misfit.
    pub(crate) fn engine(&self, slot: &str, does: &str) -> EngineHandle {
        let template = self.template(Variant::Plain, slot, does);
        template.clone_for_agent().unwrap()
    }

    pub(crate) fn agent_of(&self, template: Template) -> EngineHandle {
        let selected = Selected {
            template,
            fallback: None,
        };
        selected.for_agent().unwrap()
    }
}

/// A short valid conversation.
pub(crate) fn conversation() -> MessageList {
    list(&[
        r#"{"role":"system","content":"be brief"}"#,
        r#"{"role":"user","content":"hello","message_uid":"00000000000000000000000000000001"}"#,
        r#"{"role":"assistant","content":"hello, too","x_unknown":1.50}"#,
        r#"{"role":"user","content":"go on"}"#,
    ])
}

pub(crate) fn list(messages: &[&str]) -> MessageList {
    let messages: Vec<Message> = messages
        .iter()
        .map(|m| Message::parse(m).unwrap())
        .collect();
    MessageList::stored(&messages)
}

/// Runs `body` and gives what the host has logged on this thread meanwhile.
pub(crate) fn logged<T>(body: impl FnOnce() -> T) -> (T, String) {
    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    let result = tracing::subscriber::with_default(subscriber, body);
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    (result, text)
}
