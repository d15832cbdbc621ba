//! From `config.yaml` to the registered instance of the engine it names, and to what every agent's instance is told.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_plugin_api::resolve_model_threshold;

use crate::config::{BUILT_IN_ENGINE, Config, HermesHome, Problem, ProblemKind};
use crate::context::AgentEngine;
use crate::engine::{
    Completer, EngineFault, EngineHandle, EngineSettings, EngineSource, ModelInfo, OwnTimeouts,
    Selected, Services, Slot, Timeouts, select,
};
use crate::plugin::{Catalog, EngineModule, Origin, ScanOptions, Source};

/// The capability under which a third-party engine may use the helper model.
const LLM: &str = "llm";

/// Where the data folders of engines lie.
#[derive(Debug)]
pub enum DataFolders {
    /// Below the user's folder: what an engine keeps is there at the next start.
    Home(HermesHome),
    /// A folder that goes when the program ends, so that nothing of a trial is left behind, or found.
    Scratch(tempfile::TempDir),
}

impl DataFolders {
    fn of(&self, engine: &str) -> PathBuf {
        match self {
            Self::Home(home) => home.engine_data_dir(engine),
            Self::Scratch(folder) => folder.path().join(engine),
        }
    }
}

/// What every engine of a program gets, whichever it is.
pub struct Registry {
    config: Config,
    home: HermesHome,
    /// Scanned when an engine other than the built-in is asked for.
    catalog: std::sync::OnceLock<Catalog>,
    built_in: EngineModule,
    folders: DataFolders,
    completer: Option<Arc<dyn Completer>>,
    /// Where models are asked for; their name and window come with each.
    model: ModelInfo,
    context_length: u64,
    /// Changes to the built-in's settings: `protect_first_n`, `protect_last_n`.
    overrides: Vec<(&'static str, u64)>,
    warnings: Mutex<Vec<String>>,
}

/// The problems of a configuration that whoever starts a conversation has to show. Keys of the original that nothing
/// here reads are `config check`'s business.
pub fn problems(config: &Config) -> impl Iterator<Item = &Problem> {
    config
        .problems()
        .iter()
        .filter(|problem| problem.kind != ProblemKind::Unknown)
}

impl Registry {
    /// A registry over a configuration. Nothing of a plugin is looked at, let alone run, before
    /// [`Registry::select`].
    ///
    /// # Errors
    /// Only if the built-in cannot be used.
    pub fn new(
        home: HermesHome,
        config: Config,
        folders: DataFolders,
        context_length: u64,
    ) -> Result<Self, String> {
        let main = config.model();
        let model = ModelInfo {
            provider: main.provider.clone().unwrap_or_default(),
            base_url: main.base_url.clone().unwrap_or_default(),
            api_mode: main.api_mode.clone().unwrap_or_default(),
            max_output_tokens: main.max_tokens.unwrap_or(0),
            ..ModelInfo::default()
        };
        Ok(Registry {
            built_in: EngineModule::from_static(hermes_compressor::module())
                .map_err(|error| format!("the built-in engine cannot be used: {error}"))?,
            catalog: std::sync::OnceLock::new(),
            home,
            config,
            folders,
            completer: None,
            model,
            context_length,
            overrides: Vec::new(),
            warnings: Mutex::default(),
        })
    }

    /// Gives the built-in, bundled engines and those that were granted it a model for their own use.
    #[must_use]
    pub fn with_completer(mut self, completer: Option<Arc<dyn Completer>>) -> Self {
        self.completer = completer;
        self
    }

    /// Says where models are really asked for, where that is more than the configuration says.
    #[must_use]
    pub fn with_model(mut self, model: ModelInfo) -> Self {
        self.model = model;
        self
    }

    /// Replaces settings of the built-in.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Vec<(&'static str, u64)>) -> Self {
        self.overrides = overrides;
        self
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What was noticed while an engine was looked for, each once.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The registered instance of the engine with exactly this name, or of the built-in with the reason (SEL-5).
    ///
    /// # Errors
    /// Only if the built-in itself cannot be made.
    pub fn select(&self, name: &str) -> Result<Selected, EngineFault> {
        let setup = |name: &str, module: &EngineModule| self.setup(name, module);
        select(Some(name), &self.built_in, &Plugins(self), &setup)
    }

    /// An agent's instance as a conversation's engine. It learns its model before anything else (LIFE-1, CFG-1).
    #[must_use]
    pub fn agent_engine(&self, handle: EngineHandle, model: &ModelInfo) -> AgentEngine {
        let compression = self.config.compression();
        AgentEngine::new(
            handle,
            model,
            compression.context_timeout(),
            Some(compression.context_total_ceiling()),
        )
    }

    /// What an engine is told of a model of the main provider with this window.
    #[must_use]
    pub fn model_info(&self, model: &str, context_length: u64) -> ModelInfo {
        self.model_info_of(ModelInfo {
            model: model.to_owned(),
            context_length,
            ..self.model.clone()
        })
    }

    /// What an engine is told of a model, wherever it is: `model` with what the configuration says of it.
    #[must_use]
    pub fn model_info_of(&self, model: ModelInfo) -> ModelInfo {
        let thresholds = &self.config.compression().model_thresholds;
        ModelInfo {
            threshold_percent: resolve_model_threshold(thresholds, &model.model, &model.provider),
            model_thresholds: if thresholds.is_empty() {
                String::new()
            } else {
                serde_json::Value::Object(thresholds.clone()).to_string()
            },
            helper_context_length: self
                .completer
                .as_ref()
                .map_or(0, |completer| completer.context_length()),
            ..model
        }
    }

    fn catalog(&self) -> &Catalog {
        self.catalog
            .get_or_init(|| Catalog::scan(ScanOptions::new(self.home.clone(), self.config.clone())))
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
        let granted = built_in || is_bundled(module) || self.is_granted(name);
        let services = Services {
            completer: self.completer.clone().filter(|_| granted),
            data_dir: self.data_folder(name),
            plugin_dir: match module.origin() {
                Origin::BuiltIn => PathBuf::new(),
                Origin::Library(library) => library.directory.clone(),
            },
            hermes_home: self.home.path().to_owned(),
            timeouts: self.timeouts(),
            marker: (!built_in).then(|| self.catalog().markers()),
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

    fn is_granted(&self, engine: &str) -> bool {
        let entry = self.config.plugins().entries.get(engine);
        entry.is_some_and(|entry| entry.granted_capabilities.iter().any(|name| name == LLM))
    }

    /// The engine's folder, private to the user. The built-in keeps no files, so it leaves none.
    fn data_folder(&self, engine: &str) -> PathBuf {
        let folder = self.folders.of(engine);
        if engine != BUILT_IN_ENGINE {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            // If it cannot be made, the engine's own error says so better.
            let _ = builder.create(&folder);
        }
        folder
    }

    fn timeouts(&self) -> Timeouts {
        let budgets = self.config.context_timeouts();
        let own = [
            (Slot::SelectContext, budgets.select_context),
            (Slot::TurnComplete, budgets.turn_complete),
            (Slot::Preflight, budgets.preflight),
            (Slot::State, budgets.state),
            (Slot::Status, budgets.state),
            (Slot::UpdateFromResponse, budgets.usage),
            (Slot::UpdateModel, budgets.model),
            (Slot::SessionReset, budgets.reset),
            (Slot::ShouldCompress, budgets.should_compress),
            (Slot::Create, budgets.create),
            (Slot::Clone, budgets.clone),
            (Slot::SessionStart, budgets.session),
            (Slot::SessionEnd, budgets.session),
            (Slot::PassResult, budgets.pass_result),
            (Slot::ToolSchemas, budgets.tool_call),
            (Slot::ToolCall, budgets.tool_call),
            (Slot::Command, budgets.command),
        ];
        Timeouts {
            own: own
                .into_iter()
                .fold(OwnTimeouts::default(), |all, (slot, budget)| {
                    all.with(slot, budget)
                }),
            ..Timeouts::default()
        }
    }
}

fn is_bundled(module: &EngineModule) -> bool {
    matches!(module.origin(), Origin::Library(library) if library.source == Source::Bundled)
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("home", &self.home)
            .field("context_length", &self.context_length)
            .finish_non_exhaustive()
    }
}

/// The plugins' folders as a source of engines.
struct Plugins<'a>(&'a Registry);

impl EngineSource for Plugins<'_> {
    fn load(&self, name: &str) -> Result<EngineModule, String> {
        let catalog = self.0.catalog();
        let candidate = catalog.select(name).map_err(|error| error.to_string())?;
        self.0
            .warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(candidate.warnings().iter().map(ToString::to_string));
        let module = catalog
            .load(&candidate)
            .map_err(|error| format!("{error}; {}", error.fix()))?;
        let mut warnings = self
            .0
            .warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for oddity in module.oddities() {
            tracing::warn!("{oddity}");
            warnings.push(oddity);
        }
        drop(warnings);
        Ok(module)
    }
}
