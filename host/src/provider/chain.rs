//! Those of `fallback_providers` that answer in the main model's stead.
//!
//! The main model is asked first, and tried again as often as any. When it has failed for good ([`Chain::give_way`])
//! somebody else is asked, and it is left alone for a while, so that not every request waits for a server that is
//! down; then it has its turn again. The chain only knows who has failed; each conversation keeps whom it asks, because
//! requests are made for one model: its name, its members, and a length that it takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::models::{Window, window_of};
use super::{Failure, FailureKind, Provider, WindowSource};
use crate::engine::ModelInfo;

/// How long a model is left alone after it has failed for good, unless `HERMES_FALLBACK_SECONDS` says otherwise.
pub(super) const REST: Duration = Duration::from_secs(60);

/// The main model among the numbers of those who may be asked.
const MAIN: usize = 0;

/// A model that may be asked in the main one's stead.
#[derive(Debug)]
pub(crate) struct StandIn {
    /// Its place in the list, from 1.
    pub(super) number: usize,
    /// The section that it comes from.
    pub(super) key: String,
    pub(super) provider: Arc<dyn Provider>,
    /// What an engine is told of it, apart from its window.
    pub(super) info: ModelInfo,
    /// The window that the configuration gives it.
    pub(super) configured: Option<u64>,
    /// Its window, once somebody has asked.
    pub(super) window: Mutex<Option<Window>>,
}

impl StandIn {
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The section of the configuration.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn model(&self) -> &str {
        &self.info.model
    }

    pub(crate) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    /// What an engine is told of it.
    pub(crate) fn info(&self) -> ModelInfo {
        ModelInfo {
            context_length: self.window(),
            ..self.info.clone()
        }
    }

    /// Its window in tokens. The first time, its provider may be asked for it.
    pub(crate) fn window(&self) -> u64 {
        self.found().tokens
    }

    /// What there is to say about the window.
    pub(crate) fn warning(&self) -> Option<String> {
        let found = self.found();
        (found.source == WindowSource::Default).then(|| {
            let (model, key, tokens) = (self.model(), &self.key, found.tokens);
            format!("the window of {model} is not known, {tokens} tokens are assumed; `{key}.context_length` sets it")
        })
    }

    /// Its provider takes less than was thought.
    pub(crate) fn narrow(&self, tokens: u64) {
        *self.lock() = Some(Window {
            tokens,
            source: WindowSource::Provider,
            warning: None,
        });
    }

    /// Whether a request of this size fits, as far as is known.
    fn takes(&self, tokens: u64) -> bool {
        let window = self.window();
        window == 0 || tokens <= window
    }

    fn found(&self) -> Window {
        self.lock()
            .get_or_insert_with(|| window_of(self.configured, &*self.provider, self.model()))
            .clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Window>> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the list.
#[derive(Debug)]
pub(super) enum Seat {
    Ready(Arc<StandIn>),
    /// It cannot be asked before the user has set something: the sentence for the time when it would have been.
    Unset(String),
}

/// Who may be asked in the main model's stead, in order, and who has failed lately. Shared by all conversations.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    seats: Vec<Seat>,
    rest: Duration,
    rests: Mutex<BTreeMap<usize, Rest>>,
}

/// Somebody has failed for good, and is left alone.
#[derive(Clone, Debug)]
struct Rest {
    until: Instant,
    why: String,
}

/// Who is asked next.
#[derive(Debug, Default)]
pub(crate) struct Next {
    pub(crate) stand_in: Option<Arc<StandIn>>,
    /// Those who would have been asked before, if they could be: sentences for the user.
    pub(crate) unset: Vec<String>,
}

impl Chain {
    pub(super) fn new(seats: Vec<Seat>, rest: Duration) -> Self {
        Self {
            seats,
            rest,
            rests: Mutex::default(),
        }
    }

    /// Who is asked for a request of this size, and what became of the main model; `None`: the main model is asked.
    /// Whoever is asked already, goes on as long as that works.
    pub(crate) fn now(
        &self,
        tokens: u64,
        current: Option<&StandIn>,
    ) -> Option<(Arc<StandIn>, String)> {
        let resting = self.resting();
        let why = resting.get(&MAIN)?.why.clone();
        let awake = |stand_in: &&Arc<StandIn>| !resting.contains_key(&stand_in.number);
        let still = current
            .and_then(|current| self.ready().find(|other| other.number == current.number))
            .filter(awake)
            .filter(|current| current.takes(tokens));
        let stand_in = still.or_else(|| best(self.ready().filter(awake), tokens))?;
        Some((Arc::clone(stand_in), why))
    }

    /// The one of this number (0: the main model) has failed for good: whom to ask for the request instead. `tried`
    /// are those who have failed at this request.
    pub(crate) fn give_way(
        &self,
        failed: usize,
        failure: &Failure,
        tried: &[usize],
        tokens: u64,
    ) -> Next {
        // A request that is refused, or an answer that is none, is not mended by asking somebody else.
        if !matches!(
            failure.kind,
            FailureKind::Connection
                | FailureKind::Server
                | FailureKind::RateLimited
                | FailureKind::Stalled
                | FailureKind::Auth
                | FailureKind::Quota
        ) {
            return Next::default();
        }
        let resting = self.resting();
        let stand_in = best(
            self.ready().filter(|other| {
                other.number != failed
                    && !tried.contains(&other.number)
                    && !resting.contains_key(&other.number)
            }),
            tokens,
        );
        let mut rests = self.rests();
        if stand_in.is_some() {
            let rest = Rest {
                until: Instant::now() + self.rest,
                why: failure.message.clone(),
            };
            rests.insert(failed, rest);
        } else {
            // Nobody is left: next time it begins with the main model again.
            rests.clear();
        }
        let before = stand_in.map_or(self.seats.len(), |chosen| chosen.number - 1);
        let unset = self.seats[..before].iter().filter_map(|seat| match seat {
            Seat::Unset(why) => Some(why.clone()),
            Seat::Ready(_) => None,
        });
        Next {
            stand_in: stand_in.cloned(),
            unset: unset.collect(),
        }
    }

    /// A request of this size is too long for a stand-in: a later one that takes it.
    pub(crate) fn larger(
        &self,
        than: &StandIn,
        tried: &[usize],
        tokens: u64,
    ) -> Option<Arc<StandIn>> {
        let resting = self.resting();
        let mut later = self.ready().filter(|other| {
            other.number > than.number
                && !tried.contains(&other.number)
                && !resting.contains_key(&other.number)
        });
        later.find(|other| other.takes(tokens)).cloned()
    }

    /// The user has chosen a model: it is asked, whatever became of the one before.
    pub(crate) fn forgive_main(&self) {
        self.rests().remove(&MAIN);
    }

    fn ready(&self) -> impl Iterator<Item = &Arc<StandIn>> {
        self.seats.iter().filter_map(|seat| match seat {
            Seat::Ready(stand_in) => Some(stand_in),
            Seat::Unset(_) => None,
        })
    }

    fn resting(&self) -> BTreeMap<usize, Rest> {
        let mut rests = self.rests();
        let now = Instant::now();
        rests.retain(|_, rest| now < rest.until);
        rests.clone()
    }

    fn rests(&self) -> MutexGuard<'_, BTreeMap<usize, Rest>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first who takes a request of this size. If nobody does, the first: a pass has to make it fit.
fn best<'a>(
    mut all: impl Iterator<Item = &'a Arc<StandIn>>,
    tokens: u64,
) -> Option<&'a Arc<StandIn>> {
    let first = all.next()?;
    if first.takes(tokens) {
        return Some(first);
    }
    Some(all.find(|other| other.takes(tokens)).unwrap_or(first))
}
