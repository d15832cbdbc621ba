//! `fallback_providers`: who is asked when the main model has failed for good.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{NoModel, Opened, Source, resolve};
use crate::config::{Config, Fallback};
use crate::engine::ModelInfo;
use crate::provider::chain::{Chain, REST, Seat, StandIn};
use crate::provider::environment::Environment;

/// Puts those who can be asked behind the main model. What is wrong with the others is told; that a key is missing,
/// only when it would be needed.
pub(super) fn seat(
    config: &Config,
    main: &Source<'_>,
    cache: &Path,
    environment: &Environment<'_>,
    opened: &mut Opened,
) {
    let mut seats = Vec::new();
    for fallback in config.fallback_providers() {
        let key = &fallback.key;
        let why = match find(config, fallback, main, &opened.model, cache, environment) {
            Ok(other) if other.provider_name == "scripted" => "it is a dry run".to_owned(),
            Ok(other) if other.base_url == opened.base_url && other.model == opened.model => {
                "it is the main model".to_owned()
            }
            Ok(other) => {
                let number = seats.len() + 1;
                let stand_in = stand_in(config, fallback, other, number);
                seats.push(Seat::Ready(Arc::new(stand_in)));
                continue;
            }
            Err(no) if lacks_a_key(&no) => {
                let why = said_of(key, &no);
                seats.push(Seat::Unset(format!("{key} is not used: {why}")));
                continue;
            }
            Err(no) => said_of(key, &no),
        };
        opened.warnings.push(format!("{key} is not used: {why}"));
    }
    opened.chain = Arc::new(Chain::new(seats, rest(environment)));
}

/// Opens what an entry of the list leads to. `model` is the main model.
pub(in crate::provider) fn find(
    config: &Config,
    fallback: &Fallback,
    main: &Source<'_>,
    model: &str,
    cache: &Path,
    environment: &Environment<'_>,
) -> Result<Opened, NoModel> {
    let source = Source {
        max_tokens: main.max_tokens,
        no_stream: main.no_stream,
        timeouts: main.timeouts,
        ..source_of(fallback)
    };
    let mut source = source.placed(config)?;
    source.model = source.model.or(Some(model));
    resolve(&source, cache, environment)
}

fn stand_in(config: &Config, fallback: &Fallback, other: Opened, number: usize) -> StandIn {
    let of_place = || config.provider_at(&other.base_url)?.window_of(&other.model);
    StandIn {
        number,
        key: fallback.key.clone(),
        configured: fallback.context_length.or_else(of_place),
        window: Mutex::new(None),
        info: ModelInfo {
            model: other.model,
            provider: other.provider_name,
            base_url: other.base_url,
            api_mode: other.api_mode,
            max_output_tokens: other.max_tokens.unwrap_or(0),
            ..ModelInfo::default()
        },
        provider: other.provider,
    }
}

/// Whether a place could be asked if only a variable were set.
pub(in crate::provider) fn lacks_a_key(no: &NoModel) -> bool {
    matches!(no, NoModel::NoKey { .. } | NoModel::Variable { .. })
}

/// Why a section leads nowhere, in the words of that section.
pub(in crate::provider) fn said_of(key: &str, no: &NoModel) -> String {
    match no {
        NoModel::NoKey {
            provider,
            variables,
        } => format!(
            "{provider} wants a key: set {variables}, or name its variable in {key}.api_key_env"
        ),
        NoModel::Variable { variable, .. } => format!("the variable {variable} is not set"),
        NoModel::Dialect(mode) => format!("{key}.api_mode `{mode}` is not spoken here"),
        NoModel::Address(error) => format!("its address or key cannot be used: {error}"),
        other => other
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

/// How long a model that has failed for good is left alone.
fn rest(environment: &Environment<'_>) -> Duration {
    environment
        .get("HERMES_FALLBACK_SECONDS")
        .and_then(|seconds| Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok())
        // A moment can be added to any instant, an age cannot.
        .map_or(REST, |rest| rest.min(Duration::from_secs(86_400)))
}

/// Where an entry of the list leads to.
pub(in crate::provider) fn source_of(fallback: &Fallback) -> Source<'_> {
    let model = fallback.model.as_deref().map(str::trim);
    Source {
        section: &fallback.key,
        provider: fallback.provider.as_deref(),
        model: model.filter(|name| !name.is_empty()),
        base_url: fallback.base_url.as_deref(),
        api_mode: fallback.api_mode.as_deref(),
        api_key: fallback.api_key.as_ref(),
        api_key_env: fallback.api_key_env.as_deref(),
        ..Source::default()
    }
}
