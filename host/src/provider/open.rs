//! From the configuration to a provider.

mod place;
pub(super) mod stand_ins;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::chain::Chain;
use super::environment::Environment;
use super::http::{AddressError, HttpTimeouts};
use super::scripted::ScriptError;
use super::{HttpOptions, HttpProvider, ModelCompleter, Provider, Scripted, names};
use crate::config::{Config, HermesHome, Problem, Secret};
use crate::engine::Completer;
use place::Place;

/// What the caller wants other than the configuration says.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Another model.
    pub model: Option<String>,
    /// Another provider: a known name, `scripted`, `scripted:FILE`.
    pub provider: Option<String>,
    /// Another address.
    pub base_url: Option<String>,
    /// Whole answers instead of streams.
    pub no_stream: bool,
    /// Other time limits.
    pub timeouts: Option<HttpTimeouts>,
}

/// A provider, and what it was made of.
#[derive(Clone)]
pub struct Opened {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// The model to name in requests.
    pub model: String,
    /// The provider's name: one of the known ones, `custom`, or `scripted`.
    pub provider_name: String,
    /// Its address; empty for `scripted`.
    pub base_url: String,
    /// The dialect; there is one.
    pub api_mode: String,
    /// `model.max_tokens`.
    pub max_tokens: Option<u64>,
    /// The model behind an engine's `complete`.
    pub completer: Option<Arc<dyn Completer>>,
    /// What the user is to be told of the sections that lead to models.
    pub warnings: Vec<String>,
    /// Who is asked when the model has failed for good.
    pub(crate) chain: Arc<Chain>,
}

impl Opened {
    /// A provider that was made elsewhere. Engines get no model of their own with it.
    #[must_use]
    pub fn of(provider: Arc<dyn Provider>, model: String) -> Self {
        Self {
            provider_name: provider.name().to_owned(),
            provider,
            model,
            base_url: String::new(),
            api_mode: CHAT_COMPLETIONS.to_owned(),
            max_tokens: None,
            completer: None,
            warnings: Vec::new(),
            chain: Arc::default(),
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("provider_name", &self.provider_name)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// The only dialect that is spoken.
pub const CHAT_COMPLETIONS: &str = "chat_completions";

/// Why there is no provider.
#[derive(Debug, thiserror::Error)]
pub enum NoModel {
    /// Nothing is configured.
    #[error(
        "no model is set: `hermes config set model.default NAME`, and `hermes config set model.base_url URL` for a server of your own, or the variable of a provider's key, such as OPENROUTER_API_KEY\n\
         for a dry run without a model: `hermes config set model.provider scripted`"
    )]
    Unset,
    /// The provider wants a key.
    #[error(
        "{provider} wants a key: set {variables}, or name its variable: `hermes config set model.api_key_env NAME`"
    )]
    NoKey {
        /// The provider.
        provider: String,
        /// The variables that are looked at.
        variables: String,
    },
    /// A variable that the configuration names is not set.
    #[error("{key} wants the variable {variable}, which is not set")]
    Variable {
        /// The key of the configuration.
        key: &'static str,
        /// The variable.
        variable: String,
    },
    /// A provider's name that nobody knows, without an address.
    #[error("the provider `{name}` is not known{}; for a server of your own set its address: `hermes config set model.base_url URL`", hint(.similar))]
    UnknownProvider {
        /// The name.
        name: String,
        /// The known name that it resembles.
        similar: Option<&'static str>,
    },
    /// A place that the user has named has no address.
    #[error("{0} has no base_url: `hermes config set {0}.base_url URL`")]
    NoAddress(String),
    /// The configuration says where the model is, and cannot be read.
    #[error(
        "{0}: so it is not known which model is asked, where, and with whose key, and no other one is asked instead\n\
         correct the file; `hermes config check` says whether it can be read"
    )]
    Hidden(String),
    /// A dialect that is not spoken.
    #[error(
        "model.api_mode `{0}` is not spoken here; most servers have chat completions too: remove the key, or `hermes config set model.api_mode chat_completions`"
    )]
    Dialect(String),
    /// The address or the key cannot be used.
    #[error("model.base_url or its key cannot be used: {0}")]
    Address(#[from] AddressError),
    /// The script of the dry run cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

impl NoModel {
    fn hidden(problem: &Problem) -> Self {
        let place = match (problem.line, problem.column) {
            (Some(line), Some(column)) => format!(":{line}:{column}"),
            _ => String::new(),
        };
        let what = problem.message.split(';').next().unwrap_or_default();
        Self::Hidden(format!("{}{place}: {what}", problem.path.display()))
    }
}

fn hint(similar: &Option<&'static str>) -> String {
    similar.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Opens the provider of the configuration.
///
/// No connection is made. For https the certificates are read on a thread of its own meanwhile.
///
/// # Errors
/// There is no model, or no way to it; the sentence says what to set.
pub fn open(config: &Config, home: &HermesHome, wishes: &Wishes) -> Result<Opened, NoModel> {
    open_with(config, home, wishes, &Environment::of_process(home))
}

/// The keys of a section that leads to a model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source<'a> {
    /// The section, for sentences; empty: `model`.
    pub(super) section: &'a str,
    pub(super) provider: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) base_url: Option<&'a str>,
    pub(super) api_mode: Option<&'a str>,
    pub(super) api_key: Option<&'a Secret>,
    pub(super) api_key_env: Option<&'a str>,
    pub(super) max_tokens: Option<u64>,
    pub(super) no_stream: bool,
    pub(super) timeouts: Option<&'a HttpTimeouts>,
    /// It will be used at once.
    pub(super) warm_up: bool,
}

fn open_with(
    config: &Config,
    home: &HermesHome,
    wishes: &Wishes,
    environment: &Environment<'_>,
) -> Result<Opened, NoModel> {
    let own = config.model();
    let mut source = Source {
        section: "model",
        provider: own.provider.as_deref(),
        model: own.default.as_deref(),
        base_url: own.base_url.as_deref(),
        api_mode: own.api_mode.as_deref(),
        api_key: own.api_key.as_ref(),
        api_key_env: own.api_key_env.as_deref(),
        max_tokens: own.max_tokens,
        no_stream: wishes.no_stream,
        timeouts: wishes.timeouts.as_ref(),
        warm_up: true,
    };
    if let Some(model) = &wishes.model {
        source.model = Some(model);
    }
    if wishes.provider.is_some() || wishes.base_url.is_some() {
        // Another place has another key.
        source.provider = wishes.provider.as_deref();
        source.base_url = wishes.base_url.as_deref();
        (source.api_key, source.api_key_env, source.api_mode) = (None, None, None);
    }
    let elsewhere = wishes.provider.is_some() || wishes.base_url.is_some();
    if let Some(problem) = config.hides_model().filter(|_| !elsewhere) {
        return Err(NoModel::hidden(problem));
    }
    let source = source.placed(config)?;
    let cache = home.path().join("cache");
    let mut opened = resolve(&source, &cache, environment)?;
    let (completer, warnings) = ModelCompleter::of_config(config, home, &opened, environment);
    opened.completer = completer.map(|completer| Arc::new(completer) as Arc<dyn Completer>);
    opened.warnings = warnings;
    if opened.provider_name != "scripted" && !elsewhere {
        stand_ins::seat(config, &source, &cache, environment, &mut opened);
    }
    if let ("scripted", Some(address)) = (opened.provider_name.as_str(), source.base_url)
        && address.contains("://")
    {
        opened.warnings.push(format!(
            "model.provider is scripted, so {address} is not asked: this is a dry run. `hermes config set model.provider custom` ends it"
        ));
    }
    Ok(opened)
}

impl<'s> Source<'s> {
    /// With what the user has said once for the place that this leads to, in `providers` or `custom_providers`.
    pub(super) fn placed(mut self, config: &'s Config) -> Result<Self, NoModel> {
        let by_name = self.provider.and_then(|name| config.named_provider(name));
        let by_name = by_name.filter(|place| match (self.base_url, &place.base_url) {
            (Some(url), Some(own)) => own.trim_end_matches('/') == url.trim_end_matches('/'),
            _ => true,
        });
        let Some(place) = by_name.or_else(|| self.base_url.and_then(|url| config.provider_at(url)))
        else {
            return Ok(self);
        };
        match (self.base_url, place.base_url.as_deref()) {
            (None, Some(url)) => {
                (self.provider, self.base_url) = (Some("custom"), Some(url));
                self.section = &place.key;
            }
            // Only the key of a provider whose address everybody knows.
            (None, None) if self.provider.and_then(names::named).is_none() => {
                return Err(NoModel::NoAddress(place.key.clone()));
            }
            _ => {}
        }
        self.model = self.model.or(place.model.as_deref());
        self.api_mode = self.api_mode.or(place.api_mode.as_deref());
        if self.api_key.is_none() && self.api_key_env.is_none() {
            self.api_key = place.api_key.as_ref();
            self.api_key_env = place.api_key_env.as_deref();
        }
        Ok(self)
    }
}

/// Opens what a section leads to.
pub(super) fn resolve(
    source: &Source<'_>,
    cache: &Path,
    environment: &Environment<'_>,
) -> Result<Opened, NoModel> {
    let expand = |key, text: Option<&str>| match text.map(str::trim).filter(|text| !text.is_empty())
    {
        None => Ok(None),
        Some(text) => match environment.expand(text) {
            Ok(text) => Ok(Some(text.into_owned()).filter(|text| !text.is_empty())),
            Err(variable) => Err(NoModel::Variable { key, variable }),
        },
    };
    let model = expand("model.default", source.model)?;
    let provider = expand("model.provider", source.provider)?;
    let base_url = expand("model.base_url", source.base_url)?;
    let provider = provider.filter(|name| !name.eq_ignore_ascii_case("auto"));

    if let Some(name) = provider.as_deref()
        && let Some(script) = script_of(name, base_url.as_deref())
    {
        return scripted(script, model, source.max_tokens);
    }
    if let Some(mode) = expand("model.api_mode", source.api_mode)?
        && !is_spoken(&mode)
    {
        return Err(NoModel::Dialect(mode));
    }
    let model = model.ok_or(NoModel::Unset)?;
    let place = Place::find(provider.as_deref(), base_url, &model, environment)?;
    let own_key = source.api_key.map(Secret::expose);
    let (key, key_variable) = match expand("model.api_key", own_key)? {
        Some(key) => (Some(key), None),
        None => place.key(source.api_key_env, environment)?,
    };
    let mut options = HttpOptions::new(place.base_url.clone());
    if let Some(timeouts) = source.timeouts {
        options.timeouts.clone_from(timeouts);
    } else {
        limits_of(environment, &mut options.timeouts);
    }
    if !source.section.is_empty() {
        source.section.clone_into(&mut options.section);
    }
    options.key = key.map(Secret::new);
    options.key_variable = key_variable;
    options.stream = !source.no_stream;
    options.max_tokens = source.max_tokens;
    options.cache = Some(cache.to_owned());
    let http = Arc::new(HttpProvider::new(options)?);
    if source.warm_up && http.is_worth_warming() {
        let http = Arc::clone(&http);
        // Without a thread the first request does it.
        let _ = std::thread::Builder::new()
            .name("hermes-certificates".into())
            .spawn(move || http.warm_up());
    }
    Ok(Opened {
        provider: http,
        model,
        provider_name: place.name.to_owned(),
        base_url: place.base_url,
        api_mode: CHAT_COMPLETIONS.to_owned(),
        max_tokens: source.max_tokens,
        completer: None,
        warnings: Vec::new(),
        chain: Arc::default(),
    })
}

/// Whether a dialect is the one that is spoken.
pub(super) fn is_spoken(mode: &str) -> bool {
    let mode = mode.trim().to_ascii_lowercase();
    [
        "",
        "auto",
        "openai",
        "chat",
        "openai_chat",
        CHAT_COMPLETIONS,
    ]
    .contains(&&*mode)
}

/// The script of a scripted provider; `None` if it is none, `Some("")` if it has none.
fn script_of<'s>(name: &'s str, base_url: Option<&'s str>) -> Option<&'s str> {
    if let Some(file) = name.strip_prefix("scripted:") {
        return Some(file.trim());
    }
    name.eq_ignore_ascii_case("scripted").then(|| {
        let file = base_url.unwrap_or_default();
        // Left over from the provider before: no file has such a name.
        if file.contains("://") { "" } else { file }
    })
}

fn scripted(file: &str, model: Option<String>, max_tokens: Option<u64>) -> Result<Opened, NoModel> {
    let provider = if file.is_empty() {
        Scripted::new()
    } else {
        Scripted::read(Path::new(file))?
    };
    Ok(Opened {
        provider: Arc::new(provider),
        model: model.unwrap_or_else(|| "scripted".to_owned()),
        provider_name: "scripted".to_owned(),
        base_url: String::new(),
        api_mode: CHAT_COMPLETIONS.to_owned(),
        max_tokens,
        completer: None,
        warnings: Vec::new(),
        chain: Arc::default(),
    })
}

/// `HERMES_STREAM_READ_TIMEOUT` and `HERMES_API_TIMEOUT`, in seconds.
fn limits_of(environment: &Environment<'_>, timeouts: &mut HttpTimeouts) {
    let seconds = |name| {
        let seconds: f64 = environment.get(name)?.parse().ok()?;
        let limit = std::time::Duration::try_from_secs_f64(seconds).ok()?;
        (!limit.is_zero()).then_some(limit)
    };
    if let Some(limit) = seconds("HERMES_STREAM_READ_TIMEOUT") {
        timeouts.first_byte = limit;
        timeouts.idle = limit;
    }
    if let Some(limit) = seconds("HERMES_API_TIMEOUT") {
        timeouts.whole = limit;
    }
}

#[cfg(test)]
mod tests;
