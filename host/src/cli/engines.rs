//! From the command line and `config.yaml` to an engine that serves one conversation.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_plugin_api::resolve_model_threshold;

use super::{CliError, Exit, output};
use crate::config::{BUILT_IN_ENGINE, Config, HermesHome, ProblemKind};
use crate::context::AgentEngine;
use crate::engine::{
    Completer, EngineSettings, EngineSource, ModelInfo, Selected, Services, Serving, Timeouts,
    select,
};
use crate::plugin::{Catalog, EngineModule, Origin, ScanOptions, Source};
use crate::replay::report::Fallback;
use crate::replay::summarizer::{Script, Summarizer};

/// The window when neither a flag nor the configuration names one.
pub const DEFAULT_CONTEXT_LENGTH: u64 = 128_000;

/// The capability under which a third-party engine may use the helper model.
const LLM: &str = "llm";

/// Makes engines for recorded conversations: the helper model is a script or none, and data folders are scratch
/// folders that go with the command.
pub struct Engines {
    config: Config,
    catalog: Catalog,
    built_in: EngineModule,
    script: Option<Arc<Script>>,
    scratch: tempfile::TempDir,
    context_length: u64,
    model: String,
    /// Changes to the built-in's settings: `protect_first_n`, `protect_last_n`.
    overrides: Vec<(&'static str, u64)>,
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

/// What the flags say.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// `--context-length`.
    pub context_length: Option<u64>,
    /// `--model`.
    pub model: Option<String>,
    /// `--summarizer`.
    pub summarizer: Summarizer,
    /// Settings of the built-in that flags change.
    pub overrides: Vec<(&'static str, u64)>,
}

impl Engines {
    /// Reads the configuration and looks at the plugins; nothing of them runs.
    pub fn open(wishes: Wishes) -> Result<Self, CliError> {
        output::keep_stdout();
        let home = HermesHome::from_env();
        let config = Config::load(&home);
        for problem in config.problems() {
            // Keys of the original that nothing here reads are `config check`'s business.
            if problem.kind != ProblemKind::Unknown {
                output::warning(problem);
            }
        }
        let script = match &wishes.summarizer {
            Summarizer::Deterministic => None,
            Summarizer::Scripted(path) => {
                let script =
                    Script::read(path).map_err(|error| CliError::input(error.to_string()))?;
                Some(Arc::new(script))
            }
        };
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            CliError::new("engine", format!("{what}: {error}"))
        };
        Ok(Engines {
            context_length: wishes
                .context_length
                .or(config.model().context_length)
                .unwrap_or(DEFAULT_CONTEXT_LENGTH),
            model: wishes
                .model
                .or_else(|| config.model().default.clone())
                .unwrap_or_else(|| "unknown".to_owned()),
            catalog: Catalog::scan(ScanOptions::new(home, config.clone())),
            built_in: EngineModule::from_static(hermes_compressor::module())
                .map_err(|error| failed("the built-in engine cannot be used", &error))?,
            scratch: tempfile::tempdir()
                .map_err(|error| failed("no folder for scratch data", &error))?,
            script,
            config,
            overrides: wishes.overrides,
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
        &self.config
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
        let served = self.select(self.config.engine_name())?;
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
        let compression = self.config.compression();
        Ok(AgentEngine::new(
            handle,
            &self.model_info(),
            compression.context_timeout(),
            Some(compression.context_total_ceiling()),
        ))
    }

    fn model_info(&self) -> ModelInfo {
        let model = self.config.model();
        let thresholds = &self.config.compression().model_thresholds;
        let provider = model.provider.clone().unwrap_or_default();
        // A script has no window; it is asked as a large model would be.
        let helper = self.config.auxiliary_compression().context_length;
        let helper = helper.unwrap_or(self.context_length.max(DEFAULT_CONTEXT_LENGTH));
        ModelInfo {
            threshold_percent: resolve_model_threshold(thresholds, &self.model, &provider),
            model_thresholds: if thresholds.is_empty() {
                String::new()
            } else {
                serde_json::Value::Object(thresholds.clone()).to_string()
            },
            model: self.model.clone(),
            provider,
            base_url: model.base_url.clone().unwrap_or_default(),
            api_mode: model.api_mode.clone().unwrap_or_default(),
            context_length: self.context_length,
            max_output_tokens: model.max_tokens.unwrap_or(0),
            helper_context_length: if self.script.is_some() { helper } else { 0 },
        }
    }

    fn select(&self, name: &str) -> Result<Served, CliError> {
        let setup = |name: &str, module: &EngineModule| self.setup(name, module);
        let selected = select(Some(name), &self.built_in, &Plugins(&self.catalog), &setup)
            .map_err(|fault| CliError::new("engine", fault.to_string()))?;
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

    fn setup(&self, name: &str, module: &EngineModule) -> (EngineSettings, Services) {
        let built_in = name == BUILT_IN_ENGINE;
        let mut section = if built_in {
            self.config.compression_json()
        } else {
            self.config.engine_section(name)
        };
        if let (true, Some(section)) = (built_in, section.as_object_mut()) {
            section.extend(
                self.overrides
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), (*value).into())),
            );
        }
        let bundled = matches!(module.origin(), Origin::Library(library) if library.source == Source::Bundled);
        let granted = built_in
            || bundled
            || self
                .config
                .plugins()
                .entries
                .get(name)
                .is_some_and(|entry| {
                    entry
                        .granted_capabilities
                        .iter()
                        .any(|capability| capability == LLM)
                });
        let services = Services {
            completer: self
                .script
                .clone()
                .filter(|_| granted)
                .map(|script| script as Arc<dyn Completer>),
            data_dir: self.scratch_folder(name),
            plugin_dir: match module.origin() {
                Origin::BuiltIn => PathBuf::new(),
                Origin::Library(library) => library.directory.clone(),
            },
            hermes_home: HermesHome::from_env().path().to_owned(),
            timeouts: self.timeouts(),
            marker: Some(self.catalog.markers()),
            ..Services::default()
        };
        (
            EngineSettings {
                config: section,
                context_length: self.context_length,
            },
            services,
        )
    }

    /// A replay leaves no trace in the user's folder, and finds none of an earlier one.
    fn scratch_folder(&self, name: &str) -> PathBuf {
        let folder = self.scratch.path().join(name);
        // If it cannot be made, the engine's own error says so better.
        let _ = std::fs::create_dir_all(&folder);
        folder
    }

    fn timeouts(&self) -> Timeouts {
        let budgets = self.config.context_timeouts();
        let most = |all: &[Duration]| all.iter().copied().max().unwrap_or_default();
        Timeouts {
            hooks: most(&[
                budgets.select_context,
                budgets.turn_complete,
                budgets.preflight,
            ]),
            quick: most(&[
                budgets.state,
                budgets.usage,
                budgets.model,
                budgets.reset,
                budgets.should_compress,
            ]),
            lifecycle: most(&[
                budgets.create,
                budgets.clone,
                budgets.session,
                budgets.pass_result,
            ]),
            tools: most(&[budgets.tool_call, budgets.command]),
            ..Timeouts::default()
        }
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

/// The catalog as a source of engines.
struct Plugins<'a>(&'a Catalog);

impl EngineSource for Plugins<'_> {
    fn load(&self, name: &str) -> Result<EngineModule, String> {
        let candidate = self.0.select(name).map_err(|error| error.to_string())?;
        for warning in candidate.warnings() {
            output::warning(warning);
        }
        self.0
            .load(&candidate)
            .map_err(|error| format!("{error}; {}", error.fix()))
    }
}
