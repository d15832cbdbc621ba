//! `fallback_providers`: who is asked when the main model has failed for good.

use std::path::Path;
use std::sync::Arc;

use super::{Opened, Source, resolve};
use crate::config::{Config, Fallback};
use crate::provider::chain::{Chain, Seat};
use crate::provider::environment::Environment;

/// Puts those who can be asked behind the main model; what is wrong with the others is told.
pub(super) fn seat(
    config: &Config,
    main: &Source<'_>,
    cache: &Path,
    environment: &Environment<'_>,
    opened: &mut Opened,
) {
    let mut seats = Vec::new();
    for fallback in config.fallback_providers() {
        let source = Source {
            max_tokens: main.max_tokens,
            no_stream: main.no_stream,
            timeouts: main.timeouts,
            ..source_of(fallback)
        };
        let found = source.placed(config).and_then(|mut source| {
            source.model = source.model.or(Some(&opened.model));
            resolve(&source, cache, environment)
        });
        let why = match found {
            Ok(other) if other.provider_name == "scripted" => "it is a dry run".to_owned(),
            Ok(other) if other.base_url == opened.base_url && other.model == opened.model => {
                "it is the main model".to_owned()
            }
            Ok(other) => {
                seats.push(Seat {
                    provider: other.provider,
                    model: other.model,
                });
                continue;
            }
            Err(no) => no.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        let key = &fallback.key;
        opened.warnings.push(format!("{key} is not used: {why}"));
    }
    if !seats.is_empty() {
        opened.provider = Arc::new(Chain::new(Arc::clone(&opened.provider), seats));
    }
}

/// Where an entry of the list leads to.
pub(in crate::provider) fn source_of(fallback: &Fallback) -> Source<'_> {
    let model = fallback.model.as_deref().map(str::trim);
    Source {
        provider: fallback.provider.as_deref(),
        model: model.filter(|name| !name.is_empty()),
        base_url: fallback.base_url.as_deref(),
        api_mode: fallback.api_mode.as_deref(),
        api_key: fallback.api_key.as_ref(),
        api_key_env: fallback.api_key_env.as_deref(),
        ..Source::default()
    }
}
