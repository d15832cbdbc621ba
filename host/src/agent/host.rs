//! The program's side of all its agents: one configuration, one registered engine, one model, one store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};

use super::indexer::Indexer;
use super::open_sessions::OpenSessions;
use super::registry::{self, DataFolders, Registry};
use super::{Agent, AgentError, AgentOptions, Begin};
use crate::config::{BUILT_IN_ENGINE, Config, HermesHome};
use crate::engine::{EngineHandle, ModelInfo, Selected};
use crate::provider::chain::Chain;
use crate::provider::{self, Provider};
use crate::store::{FILE_NAME, Store, StoreOptions};

/// What a host is made of; [`HostOptions::default`] is what `hermes chat` uses.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The user's folder. Default: `$HERMES_HOME`, else `~/.hermes`.
    pub home: HermesHome,
    /// Another engine than the configured one.
    pub engine: Option<String>,
    /// Another model than the configured one.
    pub model: Option<String>,
    /// The model's other side, where a program brings its own. Default: the one that the configuration describes.
    pub provider: Option<Arc<dyn Provider>>,
    /// The built-in engine, and no plugin is even looked at.
    pub safe_mode: bool,
    /// The name of the surface, told to engines and written to sessions.
    pub platform: String,
    /// What the host's own tools are confined to.
    pub directory: PathBuf,
    /// How the store is used; `None` keeps nothing.
    pub store: Option<StoreOptions>,
}

impl Default for HostOptions {
    fn default() -> Self {
        HostOptions {
            home: HermesHome::from_env(),
            engine: None,
            model: None,
            provider: None,
            safe_mode: false,
            platform: "cli".to_owned(),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            store: Some(StoreOptions::default()),
        }
    }
}

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No model is configured, or the configured one cannot be asked.
    #[error("{0}")]
    NoModel(#[from] provider::NoModel),
    /// Not even the built-in engine can be used.
    #[error("no context engine can be used: {0}")]
    Engine(String),
}

/// Makes agents. A clone is the same host; it may be used from any thread.
#[derive(Clone)]
pub struct Host {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) registry: Registry,
    selected: Selected,
    pub(super) provider: Arc<dyn Provider>,
    /// Who answers when the provider does not.
    pub(super) chain: Arc<Chain>,
    pub(super) model: String,
    pub(super) store: Option<Arc<Store>>,
    pub(super) open: OpenSessions,
    pub(super) indexer: Indexer,
    pub(super) home: HermesHome,
    pub(super) platform: String,
    pub(super) directory: PathBuf,
    warnings: Mutex<Vec<String>>,
    orphans: Once,
}

impl Host {
    /// Reads the configuration, chooses the engine (SEL-1 … SEL-6), and opens the store. Whatever is wrong with an
    /// engine or the store is a warning: the conversation always starts.
    ///
    /// # Errors
    /// Without a model there is nobody to talk to.
    pub fn open(options: HostOptions) -> Result<Host, HostError> {
        let config = Config::load(&options.home);
        let mut warnings: Vec<String> = registry::problems(&config)
            .map(ToString::to_string)
            .collect();
        let opened = match options.provider {
            Some(provider) => {
                let model = options
                    .model
                    .or_else(|| config.model().default.clone())
                    .unwrap_or_else(|| provider.name().to_owned());
                provider::Opened::of(provider, model)
            }
            None => provider::open(
                &config,
                &options.home,
                &provider::Wishes {
                    model: options.model,
                    ..provider::Wishes::default()
                },
            )?,
        };
        let provider::Opened {
            provider,
            model,
            completer,
            provider_name,
            base_url,
            api_mode,
            max_tokens,
            warnings: of_models,
            chain,
        } = opened;
        warnings.extend(of_models);
        let window = provider::window(&config, &*provider, &model);
        warnings.extend(window.warning);
        let name = match (&options.engine, options.safe_mode) {
            (_, true) => BUILT_IN_ENGINE.to_owned(),
            (Some(name), false) => name.clone(),
            (None, false) => config.engine_name().to_owned(),
        };
        let folders = DataFolders::Home(options.home.clone());
        let registry = Registry::new(options.home.clone(), config, folders, window.tokens)
            .map_err(HostError::Engine)?
            .with_completer(completer)
            .with_model(ModelInfo {
                provider: provider_name,
                base_url,
                api_mode,
                max_output_tokens: max_tokens.unwrap_or(0),
                ..ModelInfo::default()
            });
        let selected = registry
            .select(&name)
            .map_err(|fault| HostError::Engine(fault.to_string()))?;
        warnings.extend(registry.take_warnings());
        warnings.extend(selected.fallback.as_ref().map(ToString::to_string));
        let path = options.home.path().join(FILE_NAME);
        let store = options
            .store
            .and_then(|options| match Store::open(&path, options) {
                Ok(store) => Some(Arc::new(store)),
                Err(error) => {
                    warnings.push(format!("{error}. Nothing of this conversation is kept"));
                    None
                }
            });
        Ok(Host {
            inner: Arc::new(Inner {
                registry,
                selected,
                provider,
                chain,
                model,
                indexer: Indexer::new(store.as_ref()),
                store,
                open: OpenSessions::below(options.home.path()),
                home: options.home,
                platform: options.platform,
                directory: options.directory,
                warnings: Mutex::new(warnings),
                orphans: Once::new(),
            }),
        })
    }

    /// An agent with its own clone of the engine (CLONE-1) and its own session.
    ///
    /// # Errors
    /// When the session that is to go on is not there or cannot be read.
    pub fn agent(&self, options: AgentOptions) -> Result<Agent, AgentError> {
        self.inner.orphans.call_once(|| {
            // A session that goes on is not ended first.
            let resumed = options.begin.session(self).ok().flatten();
            self.end_orphans(resumed.as_deref());
        });
        Agent::open(self.clone(), options)
    }

    /// What the user is to be told of the configuration, the engine and the store. Each once.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(
            &mut *self
                .inner
                .warnings
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// The name of the engine that agents get.
    #[must_use]
    pub fn engine(&self) -> &str {
        self.inner.selected.template.name()
    }

    /// The engine that was wanted and does not serve, and why.
    #[must_use]
    pub fn fallback(&self) -> Option<(&str, &str)> {
        let fallback = self.inner.selected.fallback.as_ref()?;
        Some((&fallback.wanted, &fallback.reason))
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.inner.registry.config()
    }

    /// The store, if there is one.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.inner.store.as_ref()
    }

    /// The model that agents talk to unless they are told otherwise.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.inner.model
    }

    /// The user's folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.inner.home.path()
    }

    pub(super) fn engine_for_agent(&self) -> Result<EngineHandle, AgentError> {
        self.inner
            .selected
            .for_agent()
            .map_err(|fault| AgentError::Engine(fault.to_string()))
    }

    /// The window of a model and what there is to say about it.
    pub(super) fn window(&self, model: &str) -> provider::Window {
        let inner = &self.inner;
        provider::window(inner.registry.config(), &*inner.provider, model)
    }

    /// Sessions of processes that were killed get their end now: the engine is told of each with its final messages.
    fn end_orphans(&self, resumed: Option<&str>) {
        let Some(store) = &self.inner.store else {
            return;
        };
        // It may have gone on in another one, which is the one that was open.
        let resumed = resumed
            .and_then(|session| store.lineage(session).ok())
            .unwrap_or_default();
        for (session, held) in self.inner.open.orphans() {
            if resumed.contains(&session) {
                continue;
            }
            if store
                .session(&session)
                .is_ok_and(|row| row.ended_at.is_none())
            {
                let options = AgentOptions {
                    begin: Begin::Resume(session.clone()),
                    quiet: true,
                    ..AgentOptions::default()
                };
                match Agent::open_held(self.clone(), options, Some(held)) {
                    Ok(agent) => {
                        // Told with the host's warnings, for nobody talks in it.
                        let closed = agent.close("killed");
                        self.inner
                            .warnings
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .extend(closed.warnings);
                    }
                    Err(error) => {
                        tracing::warn!(session, %error, "a session that was never ended could not be");
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("engine", &self.engine())
            .field("model", &self.inner.model)
            .field("provider", &self.inner.provider)
            .finish_non_exhaustive()
    }
}
