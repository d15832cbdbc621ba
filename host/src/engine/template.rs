//! The registered instance of an engine, and the instances that agents get from it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hermes_engine_abi as abi;

use super::control::CallControl;
use super::core::{Core, Entered, SharedState, library};
use super::handle::{CallRecord, CreateInfo, Instance, Living, NotMade};
use super::lane::{Lane, Task};
use super::outcome::{kind_of, with_text};
use super::services::Services;
use super::supervise::{Answer, Reply, Waited};
use super::{EngineFault, EngineHandle, EngineState, FaultKind, Slot};
use crate::plugin::EngineModule;

/// What an engine is created with, the same for the registered instance and for every agent's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineSettings {
    /// The engine's own section of `config.yaml`; null = `{}`.
    pub config: serde_json::Value,
    /// The model's window; 0 = not known yet.
    pub context_length: u64,
}

/// The registered instance: process-wide, serving no conversation itself (CLONE-1). Clones share it.
#[derive(Clone)]
pub struct Template {
    inner: Arc<Inner>,
}

struct Inner {
    core: Core,
    settings: EngineSettings,
    living: Living,
    /// The plugin made the instance itself, so `create` gives nothing that is equal to it.
    is_registered: bool,
    builtin: OnceLock<Template>,
    /// Held by the agent that is being made. Others wait for it, but not for a call that was given up.
    cloning: Mutex<()>,
}

/// An agent could not get an instance of its own (CLONE-4). Its text is the log's line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Context engine '{engine}' could not be safely copied for this agent: {cause}")]
pub struct CloneFault {
    /// The engine's name.
    pub engine: String,
    /// Why not.
    pub cause: String,
}

impl Template {
    /// Makes the registered instance: by `create`, or the one that the plugin's `register(ctx)` has made.
    ///
    /// # Errors
    /// Whatever `create` answers or does not answer in time, as a fault that the user can act on.
    pub fn create(
        module: &EngineModule,
        settings: EngineSettings,
        services: Services,
    ) -> Result<Self, EngineFault> {
        if let Some(why) = services.ledger.is_out(&library(module)) {
            let kind = FaultKind::TakenOut;
            return Err(EngineFault::new(kind, module.name(), Slot::Create, why));
        }
        let living = Living::default();
        let core = if module.registers_instance() {
            registered(module, &services, &living)?
        } else {
            create(module, &settings, &services, &living, abi::FOR_TEMPLATE)?
        };
        Ok(Self {
            inner: Arc::new(Inner {
                core,
                settings,
                living,
                is_registered: module.registers_instance(),
                builtin: OnceLock::new(),
                cloning: Mutex::new(()),
            }),
        })
    }

    /// Names the built-in that takes over when this engine is taken out (SAFE-4). Set once.
    #[must_use]
    pub fn with_builtin(self, builtin: Self) -> Self {
        // A second one would change nothing: there is one built-in.
        let _ = self.inner.builtin.set(builtin);
        self
    }

    /// The engine's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.inner.core.name()
    }

    /// The engine's module.
    #[must_use]
    pub fn module(&self) -> &EngineModule {
        &self.inner.core.module
    }

    /// What it was created with.
    #[must_use]
    pub fn settings(&self) -> &EngineSettings {
        &self.inner.settings
    }

    /// What it was given.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.inner.core.services
    }

    /// What the registered instance showed when it was made.
    #[must_use]
    pub fn state(&self) -> EngineState {
        self.inner.core.state()
    }

    pub(crate) fn builtin(&self) -> Option<&Self> {
        self.inner.builtin.get()
    }

    /// A new agent's own instance. Called once on every agent initialisation.
    ///
    /// # Errors
    /// Says why the engine could not be copied; the registered instance and other agents are untouched.
    pub fn clone_for_agent(&self) -> Result<EngineHandle, CloneFault> {
        let core = self.clone_core()?;
        Ok(EngineHandle::new(self.clone(), core))
    }

    pub(crate) fn clone_core(&self) -> Result<Core, CloneFault> {
        let core = &self.inner.core;
        let fault = |cause: String| CloneFault {
            engine: core.name().to_owned(),
            cause,
        };
        if let Some(why) = core.services.ledger.is_out(&core.library()) {
            return Err(fault(format!("{why}; restart the program to try it again")));
        }
        if core.has(Slot::Clone) {
            return self.copy().map_err(fault);
        }
        if self.inner.is_registered {
            return Err(fault(
                "its plugin registered an instance, and the engine has no clone slot".to_owned(),
            ));
        }
        let (settings, living) = (&self.inner.settings, &self.inner.living);
        create(
            &core.module,
            settings,
            &core.services,
            living,
            abi::FOR_AGENT,
        )
        .map_err(|cause| fault(format!("{} {}", cause.slot, cause.why)))
    }

    /// Runs `clone` on the registered instance's lane.
    fn copy(&self) -> Result<Core, String> {
        let _turn = self
            .inner
            .cloning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let core = &self.inner.core;
        let services = core.services.clone();
        let marker = Entered::new(&core.module, &services);
        let control = core.control(Slot::Clone);
        let reply = Reply::new();
        let answer = Answer::new(&reply);
        let job = {
            let (control, services) = (Arc::clone(&control), services.clone());
            move |place: &mut Option<Instance>| {
                let source = place.as_ref()?;
                let _inside = marker.enter(Slot::Clone);
                let record = CallRecord::new(Slot::Clone, control, Arc::from(""), None);
                let made = source.copy(&services, &record);
                let error = record.into_sink().error().to_owned();
                // Dropped here, on the lane, if nobody waits any more.
                answer.give(match made {
                    Some(Ok(new)) => {
                        let state = new.state();
                        Ok((new, state))
                    }
                    Some(Err(why)) => Err((why, error)),
                    None => Err((NotMade::Status(abi::ERR_UNSUPPORTED), error)),
                });
                Some(Box::new(answer) as Box<dyn Send>)
            }
        };
        let slot = Slot::Clone;
        let entered = if control.budget().is_none() {
            core.lane.run_here(slot, job)
        } else {
            core.lane.push_if_idle(Task {
                slot,
                job: Box::new(job),
            })
        };
        if !entered {
            return Err("a call is still inside the registered instance".to_owned());
        }
        match reply.wait(&control, services.timeouts.grace, services.timeouts.quick) {
            Waited::Done(Ok((new, state))) | Waited::StateAbandoned(Ok((new, state))) => Ok(Core {
                lane: Lane::new(core.name(), Some(new)),
                module: core.module.clone(),
                state: share(state),
                services,
            }),
            Waited::Done(Err((why, text))) | Waited::StateAbandoned(Err((why, text))) => {
                Err(format!("clone {}", not_made(why, &text).1))
            }
            Waited::Abandoned => {
                services.ledger.abandoned(&core.library());
                Err(given_up("clone", &control))
            }
            Waited::Lost => Err("there is no registered instance to copy".to_owned()),
        }
    }
}

/// Makes an instance with `create`, on a lane of its own.
fn create(
    module: &EngineModule,
    settings: &EngineSettings,
    services: &Services,
    living: &Living,
    purpose: u32,
) -> Result<Core, EngineFault> {
    let info = CreateInfo {
        purpose,
        config: match &settings.config {
            serde_json::Value::Null => "{}".to_owned(),
            config => config.to_string(),
        },
        data_dir: services.data_dir.to_string_lossy().into_owned(),
        plugin_dir: services.plugin_dir.to_string_lossy().into_owned(),
        context_length: settings.context_length,
    };
    let control = Arc::new(CallControl::new(services.timeouts.of(Slot::Create)));
    let lane = Lane::new(module.name(), None);
    let marker = Entered::new(module, services);
    let reply = Reply::new();
    let answer = Answer::new(&reply);
    let job = {
        let (module, services, living) = (module.clone(), services.clone(), Arc::clone(living));
        let control = Arc::clone(&control);
        move |place: &mut Option<Instance>| {
            let _inside = marker.enter(Slot::Create);
            let record = CallRecord::new(Slot::Create, control, Arc::from(""), None);
            let made = Instance::create(&module, &services, &living, &record, &info);
            let error = record.into_sink().error().to_owned();
            match made {
                Ok(new) => {
                    let state = new.state();
                    *place = Some(new);
                    if !answer.give(Ok(state)) {
                        // Nobody waits any more: destroyed here, on the lane.
                        *place = None;
                    }
                }
                Err(why) => {
                    answer.give(Err((why, error)));
                }
            }
            Some(Box::new(answer) as Box<dyn Send>)
        }
    };
    let slot = Slot::Create;
    let entered = if control.budget().is_none() {
        lane.run_here(slot, job)
    } else {
        lane.push_if_idle(Task {
            slot,
            job: Box::new(job),
        })
    };
    let fault = |kind, why: String| Err(EngineFault::new(kind, module.name(), slot, why));
    if !entered {
        return fault(
            FaultKind::Error,
            "could not be called: the system gives no more threads".to_owned(),
        );
    }
    match reply.wait(&control, services.timeouts.grace, services.timeouts.quick) {
        Waited::Done(Ok(state)) | Waited::StateAbandoned(Ok(state)) => Ok(Core {
            lane,
            module: module.clone(),
            state: share(state),
            services: services.clone(),
        }),
        Waited::Done(Err((why, text))) | Waited::StateAbandoned(Err((why, text))) => {
            let (kind, why) = not_made(why, &text);
            fault(kind, why)
        }
        Waited::Abandoned => {
            services.ledger.abandoned(&library(module));
            fault(FaultKind::Timeout, given_up("it", &control))
        }
        Waited::Lost => fault(FaultKind::Error, "ended without an answer".to_owned()),
    }
}

/// Takes over the instance that the plugin has made.
fn registered(
    module: &EngineModule,
    services: &Services,
    living: &Living,
) -> Result<Core, EngineFault> {
    let instance = module
        .registered()
        .and_then(|registered| Instance::registered(module, &registered, living))
        .ok_or_else(|| {
            EngineFault::new(
                FaultKind::Unavailable,
                module.name(),
                Slot::Create,
                "has nothing to start from: the instance that its plugin registered is in use already",
            )
        })?;
    // Its state is read with the first call; entering it here could hang.
    Ok(Core {
        lane: Lane::new(module.name(), Some(instance)),
        module: module.clone(),
        state: share(None),
        services: services.clone(),
    })
}

fn share(state: Option<EngineState>) -> SharedState {
    Arc::new(Mutex::new(state.unwrap_or_default()))
}

fn not_made(why: NotMade, text: &str) -> (FaultKind, String) {
    match why {
        NotMade::Status(status) => {
            let (kind, what) = kind_of(status);
            (kind, with_text(what, text))
        }
        NotMade::Null => (
            FaultKind::InvalidOutput,
            "answered OK, but gave no instance".to_owned(),
        ),
        NotMade::Same => (
            FaultKind::InvalidOutput,
            "gave an instance that exists already instead of a new one".to_owned(),
        ),
    }
}

fn given_up(what: &str, control: &CallControl) -> String {
    let budget = control.budget().unwrap_or_default();
    format!("{what} did not return within {budget:?} and was given up")
}
