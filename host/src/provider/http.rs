//! Chat completions over HTTP, as OpenAI made them and everybody copies them.
//!
//! 1. [`send`](super::Provider::send) puts the body on the wire as it is, apart from its last members (`stream`,
//!    `max_tokens`), which are put differently for a server that has refused them.
//! 2. The answer is taken as it comes: a stream, one JSON body, or an error in either, whatever the headers say.
//! 3. What arrives is put together by `assemble`; what fails becomes one failure by `classify`.
//!
//! Calls block the calling thread, which must not be a worker of an async runtime.

mod client;
mod ending;
mod manners;
mod reading;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};

use super::classify::Peer;
use super::runtime::runtime;
use super::{Cancel, Delta, Failure, FailureKind, Provider, Reply, models, names};
use crate::config::Secret;
use manners::Manners;

/// How long to wait for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTimeouts {
    /// For a connection. Default 10 s.
    pub connect: Duration,
    /// For the first byte of an answer. Default: 120 s; on this machine, where a model may have to read a long prompt
    /// without a graphics card, 600 s.
    pub first_byte: Duration,
    /// Between two bytes of an answer. Default 120 s.
    pub idle: Duration,
    /// For an answer that shows no progress: one that is not streamed, or a stream with nothing but signs of life.
    /// Default 600 s.
    pub whole: Duration,
}

impl HttpTimeouts {
    /// The defaults for an address.
    #[must_use]
    pub fn of(base_url: &str) -> Self {
        let local = names::is_local(base_url);
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(if local { 600 } else { 120 }),
            idle: Duration::from_secs(120),
            whole: Duration::from_secs(600),
        }
    }
}

/// Everything that a provider over HTTP is made of.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The address, without `/chat/completions`.
    pub base_url: String,
    /// The key, sent as a bearer token.
    pub key: Option<Secret>,
    /// The variable that has the key, for the sentence that says it is wrong.
    pub key_variable: Option<String>,
    /// The section of the configuration that leads there, for the sentences that name its keys.
    pub section: String,
    /// Ask for a stream.
    pub stream: bool,
    /// The longest answer in tokens.
    pub max_tokens: Option<u64>,
    /// How long to wait for what.
    pub timeouts: HttpTimeouts,
    /// The folder where the provider's model list is kept for a day; `None` asks anew in each process.
    pub cache: Option<PathBuf>,
}

impl HttpOptions {
    /// The defaults for an address: no key, streamed, no limit.
    #[must_use]
    pub fn new(base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        Self {
            timeouts: HttpTimeouts::of(&base_url),
            base_url,
            key: None,
            key_variable: None,
            section: "model".to_owned(),
            stream: true,
            max_tokens: None,
            cache: None,
        }
    }
}

/// An address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no web address.
    #[error("`{0}` is no address of a server; write one like https://api.example.com/v1")]
    Address(String),
    /// The key cannot be sent.
    #[error("the key has characters that cannot be sent; copy it again{}", from(.0))]
    Key(Option<String>),
}

fn from(variable: &Option<String>) -> String {
    variable
        .as_ref()
        .map_or_else(String::new, |name| format!(" into {name}"))
}

/// A provider that speaks HTTP.
#[derive(Debug)]
pub struct HttpProvider {
    base: String,
    peer: Peer,
    headers: HeaderMap,
    timeouts: HttpTimeouts,
    manners: Manners,
    client: OnceLock<Result<reqwest::Client, String>>,
    models: models::List,
}

impl HttpProvider {
    /// A provider at an address. Opens no connection.
    ///
    /// # Errors
    /// The address or the key can never work.
    pub fn new(options: HttpOptions) -> Result<Self, AddressError> {
        let base = options.base_url.trim().trim_end_matches('/');
        let base = base.strip_suffix("/chat/completions").unwrap_or(base);
        let url = reqwest::Url::parse(base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| AddressError::Address(base.to_owned()))?;
        let key = options.key.as_ref().map(|key| key.expose().trim());
        let key = key.filter(|key| !key.is_empty());
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if options.stream {
            "text/event-stream, application/json"
        } else {
            "application/json"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(key) = key {
            let azure = url
                .host_str()
                .is_some_and(|host| host.ends_with(".azure.com"));
            let (name, text) = if azure {
                (
                    reqwest::header::HeaderName::from_static("api-key"),
                    key.to_owned(),
                )
            } else {
                (AUTHORIZATION, format!("Bearer {key}"))
            };
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| AddressError::Key(options.key_variable.clone()))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let host = names::host_of(base).to_owned();
        Ok(Self {
            peer: Peer {
                url: format!("{base}/chat/completions"),
                key_variable: options.key_variable,
                has_key: key.is_some(),
                section: options.section,
                key: key.map(str::to_owned),
                host,
            },
            manners: Manners::new(options.stream, options.max_tokens, names::host_of(base)),
            models: models::List::new(base, options.cache),
            base: base.to_owned(),
            headers,
            timeouts: options.timeouts,
            client: OnceLock::new(),
        })
    }

    /// Makes the client ready, which for https reads the system's certificates. Without it the first request does.
    pub fn warm_up(&self) {
        let _ = self.client();
    }

    /// Whether [`warm_up`](Self::warm_up) takes long enough to be worth a thread.
    #[must_use]
    pub fn is_worth_warming(&self) -> bool {
        self.base.starts_with("https:")
    }

    fn client(&self) -> Result<&reqwest::Client, Box<Failure>> {
        self.client
            .get_or_init(|| client::client(&self.base, self.timeouts.connect))
            .as_ref()
            .map_err(|why| {
                let message = format!("no connection to {} is possible: {why}", self.peer.host);
                Failure::new(FailureKind::Refused, message)
            })
    }

    /// A small JSON document of the provider's, or `None` whatever went wrong.
    fn look_up(&self, url: &str, limit: Duration) -> Option<serde_json::Value> {
        let client = self.client().ok()?;
        let headers = self.headers.clone();
        let ask = async {
            let mut response = client.get(url).headers(headers).send().await.ok()?;
            if !response.status().is_success() {
                return None;
            }
            let mut body = Vec::new();
            while let Some(part) = response.chunk().await.ok()? {
                body.extend_from_slice(&part);
                if body.len() > models::LONGEST_LIST {
                    return None;
                }
            }
            serde_json::from_slice(&body).ok()
        };
        let bounded = async { tokio::time::timeout(limit, ask).await.ok()? };
        runtime().ok()?.block_on(bounded)
    }
}

impl Provider for HttpProvider {
    fn name(&self) -> &str {
        &self.peer.host
    }

    fn parameters(&self) -> &str {
        self.manners.parameters()
    }

    fn send(
        &self,
        body: &str,
        cancel: &Cancel,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let client = self.client()?;
        let runtime = runtime().map_err(|error| {
            let message = format!("the system gives no thread for connections: {error}");
            Failure::new(FailureKind::Connection, message)
        })?;
        loop {
            let known = self.manners.known();
            let text = self.manners.put(body, known);
            let request = client
                .post(&self.peer.url)
                .headers(self.headers.clone())
                .body(text.into_owned());
            let exchange = reading::Exchange {
                peer: &self.peer,
                timeouts: &self.timeouts,
                cancel,
                streamed: self.manners.streams(known),
            };
            match runtime.block_on(exchange.run(request, on)) {
                // What a server refuses about the form, it is asked without, at once and from then on.
                Err(failure) if self.manners.learn(known, &failure) => {}
                other => return other,
            }
        }
    }

    fn context_length(&self, model: &str) -> Option<u64> {
        self.models
            .context_length(model, &mut |url, limit| self.look_up(url, limit))
    }
}
