//! A provider that speaks to a fake server.

use std::time::Duration;

use hermes::config::Secret;
use hermes::provider::{Cancel, Delta, Failure, HttpOptions, HttpProvider, Provider, Reply};
use hermes_tests::{Behaviour, FakeProvider};

/// The key that every request carries, and that no sentence may show.
pub(crate) const KEY: &str = "sk-fake-0123456789abcdef";

/// Both sides of the wire.
pub(crate) struct Pair {
    pub(crate) server: FakeProvider,
    pub(crate) provider: HttpProvider,
}

/// What came of one request.
pub(crate) struct Came {
    pub(crate) result: Result<Reply, Box<Failure>>,
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) tools: Vec<String>,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut HttpOptions)) -> Self {
        let server = FakeProvider::start();
        let mut options = HttpOptions::new(server.url());
        options.key = Some(Secret::new(KEY));
        options.timeouts.first_byte = Duration::from_secs(20);
        options.timeouts.idle = Duration::from_secs(20);
        change(&mut options);
        let provider = HttpProvider::new(options).expect("a provider");
        Self { server, provider }
    }

    /// A body as a conversation builds it.
    pub(crate) fn body(&self) -> String {
        let parameters = self.provider.parameters();
        let comma = if parameters.is_empty() { "" } else { "," };
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"hello"}}]{comma}{parameters}}}"#
        )
    }

    pub(crate) fn ask(&self, behaviour: Behaviour) -> Came {
        self.server.push(behaviour);
        self.send(&Cancel::new())
    }

    pub(crate) fn send(&self, cancel: &Cancel) -> Came {
        let (mut text, mut reasoning, mut tools) = (String::new(), String::new(), Vec::new());
        let result = self
            .provider
            .send(&self.body(), cancel, &mut |delta| match delta {
                Delta::Text(part) => text.push_str(part),
                Delta::Reasoning(part) => reasoning.push_str(part),
                Delta::ToolCall(name) => tools.push(name.to_owned()),
            });
        if let Err(failure) = &result {
            assert!(!failure.message.contains(KEY), "{failure}");
            assert!(
                !failure.message.is_empty() && !failure.message.contains('\n'),
                "{failure}"
            );
        }
        Came {
            result,
            text,
            reasoning,
            tools,
        }
    }
}

impl Came {
    #[track_caller]
    pub(crate) fn reply(self) -> Reply {
        self.result
            .unwrap_or_else(|failure| panic!("{:?}: {failure}", failure.kind))
    }

    #[track_caller]
    pub(crate) fn failure(self) -> Failure {
        match self.result {
            Ok(reply) => panic!("an answer: {:?}", reply.message),
            Err(failure) => *failure,
        }
    }
}
