//! From the command line and `config.yaml` to an engine that serves one conversation.

use std::sync::Arc;

use super::{CliError, Exit, output};
use crate::agent::registry::{self, DataFolders, Registry};
use crate::config::{Config, HermesHome};
use crate::context::AgentEngine;
use crate::engine::{Completer, ModelInfo, Selected, Serving};
use crate::replay::report::Fallback;
use crate::replay::summarizer::{Script, Summarizer};

/// The window when neither a flag nor the configuration names one.
pub const DEFAULT_CONTEXT_LENGTH: u64 = 128_000;

/// Makes engines for recorded conversations: the helper model is a script or none, and data folders are scratch
/// folders that go with the command.
pub struct Engines {
    registry: Registry,
    script: Option<Arc<Script>>,
    context_length: u64,
    model: String,
}

/// An engine that serves, whatever was asked for.
pub struct Served {
    selected: Selected,
    /// Its name.
    pub name: String,
    /// `built-in`, or the library's path.
    pub loaded_from: String,
    /// Set when the configuration names another one.
    pub fallback: Option<Fallback>,
}

/// What a recorded conversation is played in, instead of the model that it was held with.
#[derive(Clone, Debug, clap::Args)]
pub struct Surroundings {
    /// The model's window in tokens [default: model.context_length, else 128000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    context_length: Option<u64>,
    /// The helper model: none, or a script of its answers
    #[arg(
        long,
        value_name = "deterministic|scripted:FILE",
        default_value = "deterministic"
    )]
    summarizer: Summarizer,
}

impl Engines {
    /// Reads the configuration; nothing of a plugin runs. `model` is `--model`, `overrides` are the settings of the
    /// built-in that flags change.
    pub fn open(
        around: &Surroundings,
        model: Option<String>,
        overrides: Vec<(&'static str, u64)>,
    ) -> Result<Self, CliError> {
        output::keep_stdout();
        let home = HermesHome::from_env();
        let config = Config::load(&home);
        for problem in registry::problems(&config) {
            output::warning(problem);
        }
        let script = match &around.summarizer {
            Summarizer::Deterministic => None,
            Summarizer::Scripted(path) => {
                let script =
                    Script::read(path).map_err(|error| CliError::input(error.to_string()))?;
                Some(Arc::new(script))
            }
        };
        let failed = |error: String| CliError::new("engine", error);
        let context_length = around
            .context_length
            .or(config.model().context_length)
            .unwrap_or(DEFAULT_CONTEXT_LENGTH);
        let model = model
            .or_else(|| config.model().default.clone())
            .unwrap_or_else(|| "unknown".to_owned());
        // A trial leaves no trace in the user's folder, and finds none of an earlier one.
        let scratch = tempfile::tempdir()
            .map_err(|error| failed(format!("no folder for scratch data: {error}")))?;
        let registry = Registry::new(home, config, DataFolders::Scratch(scratch), context_length)
            .map_err(failed)?
            .with_completer(script.clone().map(|script| script as Arc<dyn Completer>))
            .with_overrides(overrides);
        Ok(Engines {
            registry,
            script,
            context_length,
            model,
        })
    }

    /// The window.
    #[must_use]
    pub fn context_length(&self) -> u64 {
        self.context_length
    }

    /// The model's name.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.registry.config()
    }

    /// The engine that was named on the command line: it serves, or the command is not carried out.
    pub fn named(&self, name: &str) -> Result<Served, CliError> {
        let served = self.select(name)?;
        match served.fallback {
            None => Ok(served),
            Some(Fallback { wanted, reason }) => Err(does_not_serve(&wanted, &reason)),
        }
    }

    /// The engine that the configuration names, or the built-in with a warning (SEL-5).
    pub fn configured(&self) -> Result<Served, CliError> {
        let served = self.select(self.config().engine_name())?;
        if let Some(fallback) = &served.selected.fallback {
            output::warning(fallback);
        }
        Ok(served)
    }

    /// An instance for one conversation, with its model set before anything else (LIFE-1, CFG-1). The script of the
    /// helper model begins anew.
    pub fn agent(&self, served: &Served, explicit: bool) -> Result<AgentEngine, CliError> {
        if let Some(script) = &self.script {
            script.rewind();
        }
        let handle = served
            .selected
            .for_agent()
            .map_err(|fault| CliError::new("engine", fault.to_string()))?;
        if let (Serving::FallenBack { wanted, reason }, true) = (handle.serving(), explicit) {
            return Err(does_not_serve(wanted, reason));
        }
        Ok(self.registry.agent_engine(handle, &self.model_info()))
    }

    fn model_info(&self) -> ModelInfo {
        // A script has no window; it is asked as a large model would be.
        let helper = self.config().auxiliary_compression().context_length;
        let helper = helper.unwrap_or(self.context_length.max(DEFAULT_CONTEXT_LENGTH));
        ModelInfo {
            helper_context_length: if self.script.is_some() { helper } else { 0 },
            ..self.registry.model_info(&self.model, self.context_length)
        }
    }

    fn select(&self, name: &str) -> Result<Served, CliError> {
        let selected = self
            .registry
            .select(name)
            .map_err(|fault| CliError::new("engine", fault.to_string()))?;
        for warning in self.registry.take_warnings() {
            output::warning(warning);
        }
        Ok(Served {
            name: selected.template.name().to_owned(),
            loaded_from: selected.template.module().loaded_from(),
            fallback: selected.fallback.as_ref().map(|fallback| Fallback {
                wanted: fallback.wanted.clone(),
                reason: fallback.reason.clone(),
            }),
            selected,
        })
    }
}

fn does_not_serve(name: &str, reason: &str) -> CliError {
    CliError::new(
        "engine",
        format!("context engine '{name}' does not serve: {reason}"),
    )
    .hint(format!("`hermes plugins why {name}` says more"))
    .exit(Exit::Usage)
}
