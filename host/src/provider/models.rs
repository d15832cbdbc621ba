//! How much a model can read.

mod families;
mod list;

use crate::config::Config;

use super::Provider;

pub(super) use list::{LONGEST_LIST, List};

/// The window when nobody knows better.
pub const DEFAULT_WINDOW: u64 = 128_000;

/// A model's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// In tokens.
    pub tokens: u64,
    /// Who says so.
    pub source: WindowSource,
    /// A sentence for the user, if the figure is only a guess.
    pub warning: Option<String>,
}

/// Who says how large a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// `model.context_length`, or the model's own in `providers`.
    Config,
    /// The provider's list of its models.
    Provider,
    /// The table of known families of models.
    Family,
    /// Nobody: a usual size.
    Default,
}

/// The window of a model: what the configuration says of it, else what the provider says (which is asked at
/// most once, for three seconds at most), else what is known of models of such a name, else [`DEFAULT_WINDOW`].
#[must_use]
pub fn window(config: &Config, provider: &dyn Provider, model: &str) -> Window {
    window_of(config.window_of(model), provider, model)
}

/// [`window`] with the configured figure, if there is one, instead of the whole configuration.
pub(super) fn window_of(configured: Option<u64>, provider: &dyn Provider, model: &str) -> Window {
    let found = |tokens, source| Window {
        tokens,
        source,
        warning: None,
    };
    if let Some(tokens) = configured {
        return found(tokens, WindowSource::Config);
    }
    if let Some(tokens) = provider.context_length(model) {
        return found(tokens, WindowSource::Provider);
    }
    if let Some(tokens) = families::window(model) {
        return found(tokens, WindowSource::Family);
    }
    Window {
        warning: Some(format!(
            "the window of {model} is not known, {DEFAULT_WINDOW} tokens are assumed; \
             `hermes config set model.context_length N` sets that of the model in model.default"
        )),
        ..found(DEFAULT_WINDOW, WindowSource::Default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Cancel, Delta, Failure, Reply};
    use std::path::Path;

    #[derive(Debug)]
    struct Says(Option<u64>);

    impl Provider for Says {
        fn name(&self) -> &str {
            "says"
        }
        fn parameters(&self) -> &str {
            ""
        }
        fn send(
            &self,
            _: &str,
            _: &Cancel,
            _: &mut dyn FnMut(Delta<'_>),
        ) -> Result<Reply, Box<Failure>> {
            unreachable!("nothing is sent")
        }
        fn context_length(&self, _: &str) -> Option<u64> {
            self.0
        }
    }

    fn config(text: &str) -> Config {
        Config::from_text(text.as_bytes(), Path::new("config.yaml"))
    }

    #[test]
    fn the_first_who_knows_is_believed() {
        let set = config("model:\n  default: gpt-4o\n  context_length: 5000\n");
        let of = |config: &Config, says, model| {
            let window = window(config, &Says(says), model);
            (window.tokens, window.source, window.warning.is_some())
        };
        assert_eq!(
            of(&set, Some(7), "gpt-4o"),
            (5000, WindowSource::Config, false)
        );
        // The figure is that of the model it stands beside.
        assert_eq!(
            of(&set, Some(7), "gpt-4.1"),
            (7, WindowSource::Provider, false)
        );
        assert_eq!(
            of(&set, None, "gpt-4.1"),
            (1_047_576, WindowSource::Family, false)
        );
        assert_eq!(
            of(&set, None, "novel"),
            (128_000, WindowSource::Default, true)
        );
        let bare = config("model:\n  context_length: 9\n");
        assert_eq!(of(&bare, None, "any"), (9, WindowSource::Config, false));
    }
}
