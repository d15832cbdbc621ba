//! Which address a model is at, and whose key may go there.

use super::NoModel;
use crate::provider::environment::Environment;
use crate::provider::names::{self, Known};

/// Where requests go.
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) base_url: String,
    known: Option<&'static Known>,
    /// The address is not the provider's own, so that it may want no key.
    elsewhere: bool,
}

impl Place {
    pub(super) fn find(
        provider: Option<&str>,
        base_url: Option<String>,
        model: &str,
        environment: &Environment<'_>,
    ) -> Result<Self, NoModel> {
        let named = provider.and_then(names::named);
        if let Some(base_url) = base_url {
            // A key goes only to its own provider's host, or where the configuration says so.
            let known = named
                .filter(|known| names::is_home_of(known, &base_url))
                .or_else(|| names::at_host(names::host_of(&base_url)));
            let name = named.or(known).map_or("custom", |known| known.names[0]);
            return Ok(Self {
                name,
                base_url,
                known: known.or(named),
                elsewhere: known.is_none(),
            });
        }
        if let Some(name) = provider
            && named.is_none()
        {
            let similar = names::similar(name, std::iter::empty());
            return Err(NoModel::UnknownProvider {
                name: name.to_owned(),
                similar,
            });
        }
        let known = match named {
            Some(known) => known,
            None => Self::by_environment(model, environment)?,
        };
        let other = known.address.and_then(|variable| environment.get(variable));
        Ok(Self {
            name: known.names[0],
            elsewhere: other.is_some(),
            base_url: other.unwrap_or_else(|| known.base_url.to_owned()),
            known: Some(known),
        })
    }

    /// Nothing is said about the place: the model's name and the keys that are there decide.
    fn by_environment(
        model: &str,
        environment: &Environment<'_>,
    ) -> Result<&'static Known, NoModel> {
        let usable = |known: &&'static Known| {
            known.keys.iter().any(|key| environment.get(key).is_some())
                || (known.address == Some("OPENAI_BASE_URL")
                    && environment.get("OPENAI_BASE_URL").is_some())
        };
        let maker = names::maker_of(model).filter(usable);
        // `vendor/model` is how OpenRouter, first in the list, names models.
        let found = maker.or_else(|| names::PROVIDERS.iter().find(usable));
        found.ok_or_else(|| NoModel::NoKey {
            provider: format!("a provider for {model}"),
            variables: "OPENROUTER_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY".to_owned(),
        })
    }

    /// The key, and the variable that it came from or would come from.
    pub(super) fn key(
        &self,
        variable: Option<&str>,
        environment: &Environment<'_>,
    ) -> Result<(Option<String>, Option<String>), NoModel> {
        if let Some(variable) = variable.map(str::trim).filter(|name| !name.is_empty()) {
            // Some write it as a reference.
            let variable = variable.trim_start_matches("${").trim_end_matches('}');
            return match environment.get(variable) {
                Some(key) => Ok((Some(key), Some(variable.to_owned()))),
                None => Err(NoModel::Variable {
                    key: "model.api_key_env",
                    variable: variable.to_owned(),
                }),
            };
        }
        let Some(known) = self.known else {
            return Ok((None, None));
        };
        let found = known
            .keys
            .iter()
            .find_map(|name| Some((environment.get(name)?, (*name).to_owned())));
        match found {
            Some((key, variable)) => Ok((Some(key), Some(variable))),
            None if known.keys.is_empty() || self.elsewhere => {
                Ok((None, known.keys.first().map(|name| (*name).to_owned())))
            }
            None => Err(NoModel::NoKey {
                provider: self.name.to_owned(),
                variables: known.keys.join(" or "),
            }),
        }
    }
}
