//! From the value of `context.engine` to one plugin, or to a sentence that says which one was meant.

use super::Catalog;
use crate::plugin::entry::{Entry, Kind};
use crate::plugin::load::{LoadError, OpenError};
use crate::plugin::name::BUILT_IN;

/// The engine that a name stands for. It is not loaded yet and may still be refused.
#[derive(Clone, Debug)]
pub struct Candidate {
    name: String,
    entry: Option<Entry>,
    warnings: Vec<String>,
}

impl Candidate {
    /// The engine's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the user should know, though it keeps nothing from serving.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether it is the engine that is part of the program.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.entry.is_none()
    }

    pub(super) fn entry(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }
}

/// Why a name stands for no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// Something has that name or nearly that name, but the engine in it is called otherwise.
    #[error("no engine is called {name:?}; {there}: write `context.engine: {write}`")]
    NearMiss {
        /// The name that was asked for.
        name: String,
        /// Which engine is there, in words.
        there: String,
        /// What to write.
        write: String,
    },
    /// The plugin of that name cannot be used.
    #[error("no engine is called {name:?}; the plugin of that name cannot be used: {error}")]
    Unusable {
        /// The name that was asked for.
        name: String,
        /// Why.
        error: Box<LoadError>,
    },
    /// Only one engine can be registered through plugins.
    #[error(
        "the engine {name:?} of plugin {plugin} is refused: plugin {by} registers {first:?} already, and only one engine can be registered through plugins"
    )]
    SecondRegistration {
        /// The name that was asked for.
        name: String,
        /// Its plugin.
        plugin: String,
        /// The engine that stays.
        first: String,
        /// Its plugin.
        by: String,
    },
    /// Nothing has that name.
    #[error("no engine is called {name:?}; there are: {}", .available.join(", "))]
    NotFound {
        /// The name that was asked for.
        name: String,
        /// The engines that there are.
        available: Vec<String>,
    },
}

impl SelectError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NearMiss { write, .. } => format!("write `context.engine: {write}`"),
            Self::Unusable { error, .. } => error.fix(),
            Self::SecondRegistration { by, .. } => {
                format!("take {by} out of `plugins.enabled`")
            }
            Self::NotFound { .. } => {
                "put the engine's folder into the `plugins` folder of HERMES_HOME, or name one that is there".to_owned()
            }
        }
    }
}

impl Catalog {
    /// Finds the engine that a value of `context.engine` stands for. Nothing runs in this process; enabled general
    /// plugins are tried in a child if no directory has an engine of that name.
    ///
    /// # Errors
    /// None has exactly that name; the message says which one was probably meant, and what to write.
    pub fn select(&self, name: &str) -> Result<Candidate, SelectError> {
        if name.is_empty() || name == BUILT_IN {
            return Ok(Candidate {
                name: BUILT_IN.to_owned(),
                entry: None,
                warnings: Vec::new(),
            });
        }
        if let Some(entry) = self
            .engines()
            .find(|entry| entry.engine.as_deref() == Some(name))
        {
            return Ok(Candidate {
                name: name.to_owned(),
                entry: Some(entry.clone()),
                warnings: entry.notes.clone(),
            });
        }
        self.select_registered(name)
            .unwrap_or_else(|| Err(self.nearest(name)))
    }

    /// Engines that enabled general plugins would register. The first one to register wins.
    fn select_registered(&self, name: &str) -> Option<Result<Candidate, SelectError>> {
        let mut first: Option<(&Entry, String)> = None;
        let mut warnings = Vec::new();
        let mut chosen = None;
        for entry in &self.entries {
            if entry.kind != Kind::General || entry.refusal.is_some() {
                continue;
            }
            let engine = match self.tried(entry) {
                Ok(tried) => tried.verdict.and_then(|verdict| verdict.name),
                Err(refusal) if entry.is_called(name) => {
                    let error = Box::new(entry.error(refusal));
                    return Some(Err(SelectError::Unusable {
                        name: name.to_owned(),
                        error,
                    }));
                }
                Err(_) => None,
            };
            let Some(engine) = engine else { continue };
            match &first {
                None if engine == name => {
                    chosen = Some(entry);
                    first = Some((entry, engine));
                }
                None => first = Some((entry, engine)),
                Some((by, first)) if engine == name && chosen.is_none() => {
                    return Some(Err(SelectError::SecondRegistration {
                        name: name.to_owned(),
                        plugin: entry.name.clone(),
                        first: first.clone(),
                        by: by.name.clone(),
                    }));
                }
                Some((by, first)) => warnings.push(format!(
                    "plugin {} wants to register the engine {engine:?}, but plugin {} registers {first:?} already; only one engine can be registered through plugins",
                    entry.name, by.name
                )),
            }
        }
        if let Some(entry) = chosen {
            return Some(Ok(Candidate {
                name: name.to_owned(),
                entry: Some(entry.clone()),
                warnings,
            }));
        }
        let (entry, engine) = first?;
        entry.is_called(name).then(|| {
            Err(SelectError::NearMiss {
                name: name.to_owned(),
                there: format!("plugin {} registers the engine {engine:?}", entry.name),
                write: engine,
            })
        })
    }

    /// What was probably meant.
    fn nearest(&self, name: &str) -> SelectError {
        let loose = |text: &str| text.trim().to_lowercase();
        let wanted = loose(name);
        let same = self.engines().find_map(|entry| {
            let engine = entry.engine.as_deref()?;
            (loose(engine) == wanted).then_some(engine)
        });
        if let Some(engine) = same {
            return SelectError::NearMiss {
                name: name.to_owned(),
                there: format!("there is {engine:?}"),
                write: engine.to_owned(),
            };
        }
        let called =
            |entry: &&Entry| loose(&entry.name) == wanted || loose(&entry.directory_name) == wanted;
        // One that could serve is more probably meant than one that could not.
        let entry = self
            .engines()
            .filter(called)
            .find(|entry| entry.refusal.is_none() && entry.engine.is_some())
            .or_else(|| self.entries.iter().find(called));
        match entry {
            Some(Entry {
                refusal: None,
                engine: Some(engine),
                ..
            }) if entry.is_some_and(|entry| entry.kind == Kind::Engine) => {
                let (plugin, folder) = entry.map_or(("", ""), |entry| {
                    (entry.name.as_str(), entry.directory_name.as_str())
                });
                SelectError::NearMiss {
                    name: name.to_owned(),
                    there: format!(
                        "plugin {plugin} (folder {folder}) provides the engine {engine:?}"
                    ),
                    write: engine.clone(),
                }
            }
            Some(entry) if entry.refusal.is_some() => SelectError::Unusable {
                name: name.to_owned(),
                error: Box::new(entry.refusal.clone().map_or_else(
                    || entry.error(OpenError::RegisteredNothing),
                    |refusal| entry.error(refusal),
                )),
            },
            _ => SelectError::NotFound {
                name: name.to_owned(),
                available: self
                    .engines()
                    .filter(|entry| entry.refusal.is_none())
                    .filter_map(|entry| entry.engine.clone())
                    .collect(),
            },
        }
    }
}
