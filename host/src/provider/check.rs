//! What is wrong with the places of models that a configuration names, without asking any of them.

use super::environment::Environment;
use super::http::AddressError;
use super::open::is_spoken;
use super::open::{Source, stand_ins};
use super::{HttpOptions, HttpProvider, names};
use crate::config::{Config, HermesHome, Problem, ProblemKind, Severity};

/// Names of places that are none of the known providers.
const OTHERS: &[&str] = &["custom", "auto", "main", "scripted"];

/// What the configuration says of one place.
struct Said<'a> {
    /// The section.
    key: &'a str,
    provider: Option<&'a str>,
    base_url: Option<&'a str>,
    api_mode: Option<&'a str>,
}

/// The addresses that are none, the providers that nobody knows, the dialects that are not spoken, and those who would
/// answer instead of the main model if their key were set.
pub fn check(config: &Config, home: &HermesHome) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut look = |said: &Said<'_>| place(config, said, &mut problems);
    let model = config.model();
    look(&Said {
        key: "model",
        provider: model.provider.as_deref(),
        base_url: model.base_url.as_deref(),
        api_mode: model.api_mode.as_deref(),
    });
    for place in config.providers() {
        look(&Said {
            key: &place.key,
            provider: None,
            base_url: place.base_url.as_deref(),
            api_mode: place.api_mode.as_deref(),
        });
    }
    let section = config.auxiliary_compression();
    look(&Said {
        key: "auxiliary.compression",
        provider: section.provider.as_deref(),
        base_url: section.base_url.as_deref(),
        api_mode: None,
    });
    let fallbacks = config.fallback_providers().iter();
    for fallback in fallbacks.chain(&section.fallback_chain) {
        look(&Said {
            key: &fallback.key,
            provider: fallback.provider.as_deref(),
            base_url: fallback.base_url.as_deref(),
            api_mode: fallback.api_mode.as_deref(),
        });
    }
    keys(config, home, &mut problems);
    problems
}

/// A chat says it only when somebody would have been asked and cannot be, which is late.
fn keys(config: &Config, home: &HermesHome, problems: &mut Vec<Problem>) {
    let environment = Environment::of_process(home);
    let main = Source::default();
    let model = config.model().default.as_deref().unwrap_or("the model");
    let cache = home.path().join("cache");
    for fallback in config.fallback_providers() {
        let found = stand_ins::find(config, fallback, &main, model, &cache, &environment);
        let Err(no) = found else {
            continue;
        };
        if stand_ins::lacks_a_key(&no) {
            let key = fallback.key.clone();
            let why = stand_ins::said_of(&key, &no);
            let message = format!("{key} cannot be asked when the main model fails: {why}");
            let problem = Problem::new(ProblemKind::Value, Severity::Note, config.path(), message);
            let hint = format!(
                "set it in the environment or in {}",
                home.path().join(".env").display()
            );
            problems.push(problem.at(config.place(&key)).key(key).hint(hint));
        }
    }
}

fn place(config: &Config, said: &Said<'_>, problems: &mut Vec<Problem>) {
    let mut tell = |name: &str, message: String, hint: String| {
        let key = format!("{}.{name}", said.key);
        let problem = Problem::new(
            ProblemKind::Value,
            Severity::Warning,
            config.path(),
            message,
        );
        problems.push(problem.at(config.place(&key)).key(key).hint(hint));
    };
    let key = said.key;
    // What a variable holds is for the time when it is asked for.
    let written = |text: &&str| !text.trim().is_empty() && !text.contains("${");
    let base_url = said.base_url.filter(|url| !url.trim().is_empty());
    let provider = said.provider.map(str::trim).filter(written);
    let scripted = provider
        .is_some_and(|name| name.eq_ignore_ascii_case("scripted") || name.starts_with("scripted:"));
    if let Some(url) = base_url.filter(written).filter(|_| !scripted)
        && let Err(AddressError::Address(_)) = HttpProvider::new(HttpOptions::new(url))
    {
        let shown = hermes_message::redact::redact(url.trim());
        let hint = with_scheme(url.trim()).map_or_else(
            || "write an address like https://api.example.com/v1".to_owned(),
            |url| format!("write {url}"),
        );
        tell(
            "base_url",
            format!(
                "{key}.base_url is {shown:?}, which is no address of a server; nobody can be asked there"
            ),
            hint,
        );
    }
    if let Some(name) = provider.filter(|_| !scripted && base_url.is_none())
        && !OTHERS.iter().any(|own| own.eq_ignore_ascii_case(name))
        && names::named(name).is_none()
        && config.named_provider(name).is_none()
    {
        let own = config.providers().iter().flat_map(|place| &place.names);
        let hint = match names::similar(name, own.map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!(
                "for a server of your own set its address: `hermes config set {key}.base_url URL`"
            ),
        };
        tell(
            "provider",
            format!(
                "{key}.provider is {name:?}, which is neither a known provider nor one in `providers`; nobody is asked"
            ),
            hint,
        );
    }
    if let Some(mode) = said
        .api_mode
        .filter(written)
        .filter(|mode| !is_spoken(mode))
    {
        tell(
            "api_mode",
            format!("{key}.api_mode is {mode:?}, which is not spoken here; nobody is asked"),
            "most servers have chat completions too: remove the key, or write chat_completions"
                .to_owned(),
        );
    }
}

/// The address with what it lacks at its beginning, if that makes one of it.
fn with_scheme(url: &str) -> Option<String> {
    let rest = url.trim_start_matches(['/', ':']);
    if rest.is_empty() || rest.contains("://") || rest.contains(char::is_whitespace) {
        return None;
    }
    let local = names::is_local(rest) || names::host_of(rest).contains(':');
    let url = format!("{}://{rest}", if local { "http" } else { "https" });
    HttpProvider::new(HttpOptions::new(&*url)).ok()?;
    Some(url)
}
