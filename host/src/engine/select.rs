//! Which engine serves.

use super::core::library;
use super::handle::{EngineHandle, Notice};
use super::{EngineFault, EngineSettings, Services, Template};
use crate::plugin::EngineModule;

/// The built-in's name. It always means the built-in (SEL-6).
pub const BUILT_IN: &str = "compressor";

/// Where engines come from that are no part of the program.
pub trait EngineSource {
    /// Loads the engine with exactly this name.
    ///
    /// # Errors
    /// Says in one sentence why it does not serve, and which engine is there and what to write if the
    /// name was nearly right (SEL-4).
    fn load(&self, name: &str) -> Result<EngineModule, String>;
}

/// The chosen engine, and what else was wanted.
pub struct Selected {
    /// The registered instance of the engine that serves.
    pub template: Template,
    /// Why it is not the one that `context.engine` names.
    pub fallback: Option<Fallback>,
}

/// The engine that was wanted does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The value of `context.engine`.
    pub wanted: String,
    /// Why it does not serve.
    pub reason: String,
}

impl std::fmt::Display for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wanted, reason } = self;
        write!(
            f,
            "context engine '{wanted}' does not serve: {reason}. The built-in '{BUILT_IN}' serves instead; \
             `hermes plugins why {}` says more",
            shell_word(wanted)
        )
    }
}

/// A name as a shell takes it for one word: a blank at its end is what makes it differ from the right one.
fn shell_word(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// Chooses the engine that `context.engine` names, and no other (SEL-1 … SEL-3). If it does not serve, the
/// built-in does, with one warning that names the cause (SEL-5).
///
/// `setup` gives the settings and services of an engine by its name: the built-in's own, and those of the
/// named one.
///
/// # Errors
/// Only if the built-in itself cannot be made.
pub fn select(
    wanted: Option<&str>,
    builtin: &EngineModule,
    source: &dyn EngineSource,
    setup: &dyn Fn(&str, &EngineModule) -> (EngineSettings, Services),
) -> Result<Selected, EngineFault> {
    let (settings, services) = setup(BUILT_IN, builtin);
    let builtin = Template::create(builtin, settings, services)?;
    let wanted = match wanted {
        None | Some("" | BUILT_IN) => {
            return Ok(Selected {
                template: builtin,
                fallback: None,
            });
        }
        Some(wanted) => wanted,
    };
    match make(wanted, source, setup) {
        Ok(template) => Ok(Selected {
            template: template.with_builtin(builtin),
            fallback: None,
        }),
        Err(reason) => {
            let fallback = Fallback {
                wanted: wanted.to_owned(),
                reason,
            };
            tracing::warn!("{fallback}");
            Ok(Selected {
                template: builtin,
                fallback: Some(fallback),
            })
        }
    }
}

fn make(
    wanted: &str,
    source: &dyn EngineSource,
    setup: &dyn Fn(&str, &EngineModule) -> (EngineSettings, Services),
) -> Result<Template, String> {
    let module = source.load(wanted)?;
    if module.name() != wanted {
        return Err(format!(
            "{} calls itself '{}'; write that as context.engine, or give the plugin the name '{wanted}'",
            library(&module),
            module.name()
        ));
    }
    let (settings, services) = setup(wanted, &module);
    Template::create(&module, settings, services)
        .map_err(|fault| format!("{} {}", fault.slot, fault.why))
}

impl Selected {
    /// A new agent's own engine. If the chosen one cannot be copied, this agent gets the built-in's, and the
    /// log has CLONE-4's line; the registered instance and other agents are untouched.
    ///
    /// # Errors
    /// Only if the built-in itself cannot be made.
    pub fn for_agent(&self) -> Result<EngineHandle, EngineFault> {
        let fault = match self.template.clone_for_agent() {
            Ok(handle) => {
                return Ok(match &self.fallback {
                    Some(Fallback { wanted, reason }) => handle.fallen_back(wanted, reason.clone()),
                    None => handle,
                });
            }
            Err(fault) => fault,
        };
        let unavailable = |why: String| {
            let kind = super::FaultKind::Unavailable;
            EngineFault::new(kind, BUILT_IN, super::Slot::Create, why)
        };
        let Some(builtin) = self.template.builtin() else {
            return Err(unavailable(fault.cause));
        };
        tracing::warn!("{fault}");
        let handle = builtin
            .clone_for_agent()
            .map_err(|fault| unavailable(fault.cause))?;
        let mut handle = handle.fallen_back(&fault.engine, fault.cause.clone());
        handle.notify(Notice::Warning(fault.to_string()));
        Ok(handle)
    }
}
