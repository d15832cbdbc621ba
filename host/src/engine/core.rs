//! One living instance and the calls into it, before anybody asks what a fault should lead to.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_engine_abi as abi;

use super::args::{PassOutcome, SlotArgs};
use super::control::CallControl;
use super::emission::Collector;
use super::handle::{CallRecord, Instance, Sink};
use super::lane::{Job, Lane, Task};
use super::services::Services;
use super::supervise::{Answer, Reply, Waited};
use super::{EngineFault, EngineState, FaultKind, Slot};
use crate::plugin::EngineModule;
use crate::plugin::marker::{Inside, Markers};

/// The last state that was read, shared with the lane.
pub(crate) type SharedState = Arc<Mutex<EngineState>>;

pub(crate) struct Core {
    pub(crate) module: EngineModule,
    pub(crate) services: Services,
    pub(crate) lane: Lane,
    pub(crate) state: SharedState,
}

/// One call, ready to be made.
pub(crate) struct Request {
    pub(crate) slot: Slot,
    pub(crate) args: SlotArgs,
    pub(crate) session: Arc<str>,
    pub(crate) control: Arc<CallControl>,
    pub(crate) emitted: Option<Collector>,
}

/// What a slot has answered.
pub(crate) struct Returned {
    pub(crate) status: abi::Status,
    pub(crate) yes: u32,
    pub(crate) sink: Sink,
    /// It came back after it was cancelled: what it gave may be cut short.
    pub(crate) late: bool,
}

/// No status: the slot has not returned yet.
const INSIDE: abi::Status = abi::Status::MIN;

impl Core {
    pub(crate) fn name(&self) -> &str {
        self.module.name()
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        slot.is_in(self.module.vtable())
    }

    pub(crate) fn state(&self) -> EngineState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fault(&self, kind: FaultKind, slot: Slot, why: impl Into<String>) -> EngineFault {
        EngineFault::new(kind, self.name(), slot, why)
    }

    /// Makes a call and waits for it, within its budget. `here`: on the caller's thread, without one.
    pub(crate) fn call(&self, request: Request, here: bool) -> Result<Returned, EngineFault> {
        let slot = request.slot;
        let control = Arc::clone(&request.control);
        let reply = Reply::new();
        let status = Arc::new(AtomicI32::new(INSIDE));
        let pass_id = match &request.args {
            SlotArgs::Compress(request) => request.pass_id.clone(),
            _ => String::new(),
        };
        let session = Arc::clone(&request.session);
        let job = self.job(request, Some(Answer::new(&reply)), Arc::clone(&status));
        if !self.enter(slot, job, here) {
            return Err(self.busy(slot));
        }
        let timeouts = &self.services.timeouts;
        match reply.wait(&control, timeouts.grace, timeouts.quick) {
            Waited::Done(returned) => Ok(returned),
            Waited::StateAbandoned(returned) => {
                self.note_abandoned();
                tracing::warn!(
                    engine = self.name(),
                    "state did not come back after {slot}; the last values are shown"
                );
                Ok(returned)
            }
            Waited::Abandoned => {
                self.note_abandoned();
                if slot == Slot::Compress {
                    self.discard_late_pass(session, pass_id, status);
                }
                Err(if control.is_called_off() {
                    self.fault(FaultKind::Cancelled, slot, "was cancelled and did not stop")
                } else {
                    let budget = control.budget().unwrap_or_default();
                    self.fault(
                        FaultKind::Timeout,
                        slot,
                        format!("did not return within {budget:?} and was given up"),
                    )
                })
            }
            Waited::Lost => Err(self.fault(
                FaultKind::Error,
                slot,
                "found no instance to call, because making it had failed",
            )),
        }
    }

    fn enter(&self, slot: Slot, job: Job, here: bool) -> bool {
        if here {
            self.lane.run_here(slot, job)
        } else {
            self.lane.push_if_idle(Task { slot, job })
        }
    }

    /// Queues a call behind whatever is inside, to be delivered in order (PASS-10).
    pub(crate) fn defer(&self, request: Request) -> bool {
        let slot = request.slot;
        let job = self.job(request, None, Arc::default());
        self.lane.push(Task { slot, job })
    }

    /// The fault of a call that cannot get in now.
    pub(crate) fn busy(&self, slot: Slot) -> EngineFault {
        let why = match self.lane.inside() {
            Some(inside) => format!("was skipped: a call of {inside} is still inside"),
            None => "was skipped: earlier calls are still waiting".to_owned(),
        };
        self.fault(FaultKind::Busy, slot, why)
    }

    fn job(
        &self,
        request: Request,
        answer: Option<Answer<Returned>>,
        final_status: Arc<AtomicI32>,
    ) -> Job {
        let marker = Entered::new(&self.module, &self.services);
        let state = Arc::clone(&self.state);
        Box::new(move |place: &mut Option<Instance>| {
            let done = |answer: Option<Answer<Returned>>| {
                answer.map(|answer| Box::new(answer) as Box<dyn Send>)
            };
            let Some(instance) = place.as_mut() else {
                return done(answer);
            };
            let _inside = marker.enter(request.slot);
            let control = Arc::clone(&request.control);
            let record = CallRecord::new(
                request.slot,
                request.control,
                request.session,
                request.emitted,
            );
            let (status, yes) = instance.call(request.slot, &record, &request.args);
            let late = control.is_cancelled();
            let sink = record.into_sink();
            final_status.store(status, Ordering::Release);
            let waited_for = match &answer {
                Some(answer) => answer.give(Returned {
                    status,
                    yes,
                    sink,
                    late,
                }),
                None => {
                    if status != abi::OK {
                        let (engine, slot) = (instance.module().name(), request.slot);
                        let why = sink.error();
                        tracing::warn!(
                            engine,
                            "{slot} was delivered late and failed: {status} {why}"
                        );
                    }
                    true
                }
            };
            // A late result is dropped as a whole, and so is the state behind it. A dead instance has none.
            if !waited_for || status == abi::ERR_PANIC {
                return done(answer);
            }
            if let Some(read) = instance.state()
                && !answer.as_ref().is_some_and(Answer::is_abandoned)
            {
                *state.lock().unwrap_or_else(PoisonError::into_inner) = read;
            }
            done(answer)
        })
    }

    /// Whenever the abandoned pass ends: if the engine thinks that it succeeded, it is told otherwise.
    fn discard_late_pass(&self, session: Arc<str>, pass_id: String, status: Arc<AtomicI32>) {
        if !self.has(Slot::PassResult) {
            return;
        }
        let request = Request {
            slot: Slot::PassResult,
            args: SlotArgs::Pass {
                pass_id,
                outcome: PassOutcome::Discarded("the pass did not end in time".to_owned()),
            },
            session,
            control: self.control(Slot::PassResult),
            emitted: None,
        };
        let tell = self.job(request, None, Arc::default());
        self.lane.push(Task {
            slot: Slot::PassResult,
            job: Box::new(move |place| {
                if status.load(Ordering::Acquire) == abi::OK {
                    tell(place)
                } else {
                    None
                }
            }),
        });
    }

    pub(crate) fn control(&self, slot: Slot) -> Arc<CallControl> {
        Arc::new(CallControl::new(self.services.timeouts.of(slot)))
    }

    /// The key under which abandoned calls are counted.
    pub(crate) fn library(&self) -> String {
        library(&self.module)
    }

    fn note_abandoned(&self) {
        self.services.ledger.abandoned(&self.library());
    }
}

/// The key under which a library's abandoned calls are counted.
pub(crate) fn library(module: &EngineModule) -> String {
    format!("{} ({})", module.name(), module.loaded_from())
}

/// Marks entries of one engine, where the host keeps marks.
#[derive(Clone)]
pub(crate) struct Entered {
    marker: Option<(Markers, EngineModule)>,
}

impl Entered {
    pub(crate) fn new(module: &EngineModule, services: &Services) -> Self {
        let marker = services.marker.clone();
        Self {
            marker: marker.map(|marker| (marker, module.clone())),
        }
    }

    /// Inside that slot until the returned value is dropped.
    pub(crate) fn enter(&self, slot: Slot) -> Option<Inside> {
        let (marker, module) = self.marker.as_ref()?;
        Some(marker.enter(module, slot.name()))
    }
}
