//! A provider that speaks real HTTP and misbehaves on command.
//!
//! ```no_run
//! use hermes_tests::{Behaviour, FakeProvider};
//!
//! let provider = FakeProvider::start();
//! provider.push(Behaviour::status(429, "slow down").header("Retry-After", "1"));
//! provider.push(Behaviour::text("hello").reset_after(1));
//! provider.default(Behaviour::text("all is well"));
//! // … point `model.base_url` to provider.url() …
//! assert_eq!(provider.requests().len(), 3);
//! ```
//!
//! Each chat request takes the next behaviour that was pushed, and the default one when there is none. Any number of
//! connections are served at once, each by a thread of its own. Dropping the server ends all of them.

mod answer;
mod behaviour;
mod overflow;
mod request;
mod serve;

use std::collections::{HashMap, VecDeque};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use behaviour::Behaviour;
pub use overflow::OverflowError;
pub use request::Request;

use serde_json::{Value, json};

/// A provider on this machine. See the module's text.
#[derive(Debug)]
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    stopped: AtomicBool,
    connections: AtomicUsize,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Behaviour>,
    default: Behaviour,
    paths: HashMap<String, Behaviour>,
    requests: Vec<Request>,
    open: Vec<TcpStream>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Notes a request, and says what is done with it.
    fn take(&self, request: Request) -> Behaviour {
        let mut state = self.state();
        let behaviour = if request.is_chat() {
            state
                .queue
                .pop_front()
                .unwrap_or_else(|| state.default.clone())
        } else {
            let found = state.paths.get(request.path()).cloned();
            found.unwrap_or_else(|| Behaviour::status(404, "there is nothing here"))
        };
        state.requests.push(request);
        behaviour
    }
}

impl FakeProvider {
    /// Starts a server on a free port of this machine. Until told otherwise it answers every request with `ok`.
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                default: Behaviour::text("ok"),
                paths: HashMap::new(),
                requests: Vec::new(),
                open: Vec::new(),
            }),
            stopped: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let for_listener = Arc::clone(&shared);
        let listener = std::thread::spawn(move || serve::listen(&listener, &for_listener));
        Self {
            address,
            shared,
            listener: Some(listener),
        }
    }

    /// What to write under `model.base_url`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// A `config.yaml` with this provider as the model `fake`, with a window of so many tokens.
    #[must_use]
    pub fn config(&self, context_length: u64) -> String {
        format!(
            "model:\n  default: fake\n  provider: custom\n  base_url: {}\n  api_key: fake-key\n  context_length: {context_length}\n",
            self.url()
        )
    }

    /// Puts a behaviour behind those that wait.
    pub fn push(&self, behaviour: Behaviour) {
        self.shared.state().queue.push_back(behaviour);
    }

    /// Puts several behind those that wait.
    pub fn push_all(&self, behaviours: impl IntoIterator<Item = Behaviour>) {
        self.shared.state().queue.extend(behaviours);
    }

    /// What is done when nothing waits.
    pub fn default(&self, behaviour: Behaviour) {
        self.shared.state().default = behaviour;
    }

    /// What is done with requests to another path, `/v1/models` for example. Without it they get a 404.
    pub fn at(&self, path: &str, behaviour: Behaviour) {
        self.shared.state().paths.insert(path.to_owned(), behaviour);
    }

    /// Answers `/v1/models` with these models and their windows.
    pub fn models(&self, models: &[(&str, u64)]) {
        let data: Vec<Value> = models
            .iter()
            .map(|(id, window)| json!({"id": id, "context_length": window}))
            .collect();
        self.at(
            "/v1/models",
            Behaviour::body(&json!({"object": "list", "data": data}).to_string()),
        );
    }

    /// The chat requests that have come in so far, in their order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        let state = self.shared.state();
        state
            .requests
            .iter()
            .filter(|request| request.is_chat())
            .cloned()
            .collect()
    }

    /// All requests, those to other paths included.
    #[must_use]
    pub fn all_requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Takes the chat requests that have come in, and forgets them.
    #[must_use]
    pub fn take_requests(&self) -> Vec<Request> {
        let mut all = std::mem::take(&mut self.shared.state().requests);
        all.retain(Request::is_chat);
        all
    }

    /// How many behaviours are still waiting.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.state().queue.len()
    }

    /// How many connections have been made.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many chat requests have come in; whether they have.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            if self.requests().len() >= count {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        for stream in self.shared.state().open.drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        // Wakes the listener, which looks at the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}
