//! Makes new rows searchable in the background, so that no turn waits for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::store::Store;

/// Turns come in bursts; each burst is indexed once.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest burst.
const LONGEST: Duration = Duration::from_secs(2);
/// How long one round may keep the store's writer busy.
const ROUND: Duration = Duration::from_millis(50);

/// Nudges a thread that is started with the first nudge and ends with the last agent.
#[derive(Debug)]
pub(crate) struct Indexer {
    store: Weak<Store>,
    nudge: Mutex<Option<Sender<()>>>,
}

impl Indexer {
    pub(crate) fn new(store: Option<&Arc<Store>>) -> Self {
        Indexer {
            store: store.map_or_else(Weak::new, Arc::downgrade),
            nudge: Mutex::new(None),
        }
    }

    /// There are new rows. What is not indexed when the process ends is indexed at the next start.
    pub(crate) fn nudge(&self) {
        if self.store.strong_count() == 0 {
            return;
        }
        let mut nudge = self.nudge.lock().unwrap_or_else(PoisonError::into_inner);
        if nudge.as_ref().is_some_and(|sender| sender.send(()).is_ok()) {
            return;
        }
        let (sender, receiver) = channel();
        let store = self.store.clone();
        let thread = std::thread::Builder::new().name("hermes-indexer".to_owned());
        if thread.spawn(move || work(&store, &receiver)).is_ok() {
            // The receiver waits for it already.
            let _ = sender.send(());
            *nudge = Some(sender);
        }
    }
}

fn work(store: &Weak<Store>, nudges: &Receiver<()>) {
    while nudges.recv().is_ok() {
        let until = Instant::now() + LONGEST;
        loop {
            match nudges.recv_timeout(PAUSE) {
                // Turns without a pause between them are not to wait for ever.
                Ok(()) if Instant::now() >= until => break,
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        while let Some(store) = store.upgrade() {
            match store.catch_up(ROUND) {
                Ok(done) if done.pending > 0 && done.indexed > 0 => {}
                Ok(_) => {
                    // A long conversation would otherwise fill the cache with pages that nobody reads again.
                    store.release_memory();
                    break;
                }
                Err(error) => {
                    tracing::info!(%error, "newer messages become searchable later");
                    break;
                }
            }
        }
    }
}
