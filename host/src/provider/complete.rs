//! The model behind an engine's `complete`.
//!
//! The questions go to the model of `auxiliary.compression`, else to those of its `fallback_chain`, else to the main
//! one. A failure that may pass is tried again within the time of the call; one that will not pass moves on to the next
//! model. A question that is too long is told at once: the engine can ask a shorter one.

mod ask;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::environment::Environment;
use super::models::window_of;
use super::open::{Opened, Source, resolve, stand_ins};
use super::{Failure, FailureKind, Finish, Provider, Reply, RetryPolicy};
use crate::config::{AuxiliaryCompression, Config, HermesHome};
use crate::engine::Completer;
use ask::{Ask, Clock};

/// Asks models for engines.
#[derive(Debug)]
pub struct ModelCompleter {
    chain: Vec<Candidate>,
    timeout: Duration,
    policy: RetryPolicy,
}

/// One model that may be asked.
#[derive(Debug)]
struct Candidate {
    provider: Arc<dyn Provider>,
    model: String,
    /// Members for the body that the user wants.
    extra: serde_json::Map<String, Value>,
    configured: Option<u64>,
    window: OnceLock<u64>,
}

impl Candidate {
    fn new(provider: Arc<dyn Provider>, model: &str, configured: Option<u64>) -> Self {
        Self {
            provider,
            model: model.to_owned(),
            extra: serde_json::Map::new(),
            configured,
            window: OnceLock::new(),
        }
    }

    fn window(&self) -> u64 {
        *self
            .window
            .get_or_init(|| window_of(self.configured, &*self.provider, &self.model).tokens)
    }
}

impl ModelCompleter {
    /// Asks one model, with the default time limit.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>, model: &str, context_length: Option<u64>) -> Self {
        Self {
            chain: vec![Candidate::new(provider, model, context_length)],
            timeout: Duration::from_secs(120),
            policy: RetryPolicy::from_env(),
        }
    }

    /// With other rules for trying again.
    #[must_use]
    pub fn with_policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// With another time limit for one call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What the configuration says, with what was wrong with it. `None` if there is no model to ask: the dry run has
    /// none, and what it says is no summary.
    pub(super) fn of_config(
        config: &Config,
        home: &HermesHome,
        main: &Opened,
        environment: &Environment<'_>,
    ) -> (Option<Self>, Vec<String>) {
        let section = config.auxiliary_compression();
        let mut warnings = Vec::new();
        let mut chain = Vec::new();
        let cache = home.path().join("cache");
        let main_window = config.window_of(&main.model);
        let open_it = |source: Source<'_>| {
            let mut source = source.placed(config)?;
            source.model = source.model.or(Some(&main.model));
            resolve(&source, &cache, environment)
        };
        let mut open =
            |source: Source<'_>, window: Option<u64>, extra: &Value, key: &str| match open_it(
                source,
            ) {
                Ok(opened) => {
                    let window = window.or_else(|| {
                        let place = config.provider_at(&opened.base_url)?;
                        place.window_of(&opened.model)
                    });
                    let mut candidate = Candidate::new(opened.provider, &opened.model, window);
                    if let Value::Object(extra) = extra {
                        candidate.extra.clone_from(extra);
                    }
                    chain.push(candidate);
                }
                Err(no) => {
                    let why = stand_ins::said_of(key, &no);
                    warnings.push(format!("{key} is not used: {why}"));
                }
            };
        let mut asks_main = false;
        match place_of(section) {
            Place::Main => asks_main = true,
            Place::Own => {
                let source = source_of(section);
                let key = "auxiliary.compression";
                open(source, section.context_length, &section.extra_body, key);
            }
        }
        for (number, fallback) in section.fallback_chain.iter().enumerate() {
            let source = stand_ins::source_of(fallback);
            let key = format!("auxiliary.compression.fallback_chain.{number}");
            open(source, fallback.context_length, &Value::Null, &key);
        }
        if main.provider_name != "scripted" {
            let mut own = Candidate::new(Arc::clone(&main.provider), &main.model, main_window);
            if asks_main {
                if let Some(model) = named(section.model.as_deref())
                    && model != main.model
                {
                    own = Candidate::new(Arc::clone(&main.provider), model, section.context_length);
                    let main_too =
                        Candidate::new(Arc::clone(&main.provider), &main.model, main_window);
                    chain.push(main_too);
                } else if section.context_length.is_some() {
                    own.configured = section.context_length;
                }
                if let Value::Object(extra) = &section.extra_body {
                    own.extra.clone_from(extra);
                }
                chain.insert(0, own);
            } else {
                chain.push(own);
            }
        }
        let completer = (!chain.is_empty()).then(|| Self {
            chain,
            timeout: section.timeout,
            policy: RetryPolicy::from_env(),
        });
        (completer, warnings)
    }

    fn ask_all(&self, ask: &mut Ask<'_>) -> Result<(Reply, &Candidate), Box<Failure>> {
        let mut last = None;
        for candidate in &self.chain {
            match self.ask_one(candidate, ask) {
                Ok(reply) => return Ok((reply, candidate)),
                Err(failure) => {
                    let over = matches!(
                        failure.kind,
                        FailureKind::Cancelled | FailureKind::Overflow { .. }
                    );
                    last = Some(failure);
                    if over || ask.clock.is_over() {
                        break;
                    }
                }
            }
        }
        Err(last.unwrap_or_else(|| Failure::new(FailureKind::Refused, "there is no model to ask")))
    }

    fn ask_one(&self, candidate: &Candidate, ask: &mut Ask<'_>) -> Result<Reply, Box<Failure>> {
        let body = ask.body(
            &candidate.model,
            &candidate.extra,
            candidate.provider.parameters(),
        );
        let mut attempt = 0;
        loop {
            let failure = match ask.send(&*candidate.provider, &body) {
                Ok(reply) if reply.message.text().trim().is_empty() => {
                    let message = format!("{} sent no text", candidate.provider.name());
                    Failure::new(FailureKind::BadAnswer, message)
                }
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let Some(wait) = self.policy.wait(attempt, &failure) else {
                return Err(failure);
            };
            attempt += 1;
            if !ask.clock.leaves(wait) {
                return Err(failure);
            }
            if !ask.sleep(wait) {
                return Err(ask.cancelled());
            }
        }
    }
}

impl Completer for ModelCompleter {
    fn complete(
        &self,
        request: &str,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
        on_text: &mut dyn FnMut(&str),
    ) -> String {
        // An engine's own limit is kept to the letter; ours is about silence.
        let clock = match timeout.filter(|limit| !limit.is_zero()) {
            Some(limit) => Clock::new(Instant::now(), limit, limit),
            None => Clock::new(Instant::now(), self.timeout, self.timeout.saturating_mul(5)),
        };
        let mut ask = match Ask::read(request, clock, cancelled, on_text) {
            Ok(ask) => ask,
            Err(why) => return error("other", &why, None),
        };
        match self.ask_all(&mut ask) {
            Ok((reply, candidate)) => answer(&reply, candidate),
            Err(failure) => error(class(&failure), &failure.message, failure.retry_after),
        }
    }

    fn context_length(&self) -> u64 {
        self.chain.first().map_or(0, Candidate::window)
    }
}

fn answer(reply: &Reply, candidate: &Candidate) -> String {
    let finish = match reply.finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filter => "content_filter",
    };
    let usage = reply.usage.as_ref().map(|usage| &*usage.json);
    let usage: Value = usage
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or(json!({}));
    json!({
        "text": reply.message.text(),
        "finish_reason": finish,
        "model": candidate.model,
        "usage": usage,
    })
    .to_string()
}

fn error(class: &str, message: &str, retry_after: Option<Duration>) -> String {
    let mut error = json!({"class": class, "message": message});
    if let Some(wait) = retry_after {
        error["retry_after_ms"] = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).into();
    }
    json!({ "error": error }).to_string()
}

/// The classes that an engine is told.
fn class(failure: &Failure) -> &'static str {
    match failure.kind {
        FailureKind::Overflow { .. } => "context",
        FailureKind::RateLimited | FailureKind::Server => "overload",
        FailureKind::Connection | FailureKind::Stalled => "network",
        FailureKind::BadAnswer => "empty",
        FailureKind::Auth => "auth",
        FailureKind::Quota => "quota",
        FailureKind::Cancelled => "cancelled",
        FailureKind::Blocked | FailureKind::Refused => "other",
    }
}

enum Place {
    /// Where the main model is.
    Main,
    /// A place of its own.
    Own,
}

fn place_of(section: &AuxiliaryCompression) -> Place {
    let provider = named(section.provider.as_deref());
    let at_main = provider.is_none_or(|name| matches!(name, "auto" | "main"));
    if at_main && named(section.base_url.as_deref()).is_none() {
        Place::Main
    } else {
        Place::Own
    }
}

fn named(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn source_of(section: &AuxiliaryCompression) -> Source<'_> {
    Source {
        section: "auxiliary.compression",
        provider: section.provider.as_deref().filter(|name| *name != "main"),
        model: named(section.model.as_deref()),
        base_url: section.base_url.as_deref(),
        api_key: section.api_key.as_ref(),
        api_key_env: section.api_key_env.as_deref(),
        ..Source::default()
    }
}
