//! What the border costs, as ratios: `cargo bench -p hermes-tests --bench engine`.
//!
//! Absolute times depend on the machine; what is claimed is a count or a ratio, measured in interleaved pairs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hermes::engine::{
    Emission, EngineHandle, EngineSettings, MessageList, Services, Template, Timeouts,
};
use hermes::plugin::EngineModule;
use hermes_message::Message;
use hermes_plugin_api::{
    Call, Compress, ContextEngine, Create, Decision, Emit, EngineError, EngineState, Select,
    SelectContext, Verdict, abi, engine_module,
};
use serde_json::{Value, json};

/// Counts what is allocated.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Calls that have entered one of the engines below.
static ENTERED: AtomicU64 = AtomicU64::new(0);

// SAFETY: hands everything on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the system allocator's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Has no hooks.
#[derive(Clone)]
struct Bare(EngineState);

/// Keeps the whole request.
#[derive(Clone)]
struct KeepAll(EngineState);

macro_rules! required {
    ($engine:ident, $name:literal) => {
        impl ContextEngine for $engine {
            const NAME: &'static str = $name;
            fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
                Ok(Self(EngineState::new(cx.context_length())))
            }
            fn state(&self) -> EngineState {
                ENTERED.fetch_add(1, Ordering::Relaxed);
                self.0
            }
            fn state_mut(&mut self) -> &mut EngineState {
                &mut self.0
            }
            fn should_compress(
                &mut self,
                _: &Call<'_>,
                tokens: Option<u64>,
            ) -> Result<Decision, EngineError> {
                ENTERED.fetch_add(1, Ordering::Relaxed);
                let over = tokens.is_some_and(|tokens| tokens >= self.0.threshold_tokens);
                Ok(if over { Decision::Yes } else { Decision::No })
            }
            fn compress(
                &mut self,
                _: &Call<'_>,
                _: &Compress<'_>,
                _: &mut Emit<'_>,
            ) -> Result<Verdict, EngineError> {
                Ok(Verdict::unchanged("never"))
            }
        }
    };
}
required!(Bare, "bare");
required!(KeepAll, "keep-all");

impl SelectContext for KeepAll {
    fn select_context(
        &mut self,
        _: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        out.keep(0..input.request().len())?;
        Ok(Verdict::Done)
    }
}

fn engine(module: &'static abi::Module, timeouts: Timeouts) -> EngineHandle {
    let module = EngineModule::from_static(module).expect("a sound module");
    let settings = EngineSettings {
        context_length: 200_000,
        ..EngineSettings::default()
    };
    let services = Services {
        timeouts,
        ..Services::default()
    };
    let template = Template::create(&module, settings, services).expect("an instance");
    template.clone_for_agent().expect("a clone")
}

/// No budgets, so that calls run on the caller's own thread.
fn here() -> Timeouts {
    Timeouts {
        hooks: Duration::ZERO,
        quick: Duration::ZERO,
        lifecycle: Duration::ZERO,
        tools: Duration::ZERO,
        ..Timeouts::default()
    }
}

/// The median time of each of two bodies, measured in turns.
fn pair(rounds: usize, per_round: u32, mut a: impl FnMut(), mut b: impl FnMut()) -> (f64, f64) {
    let time = |body: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..per_round {
            body();
        }
        start.elapsed().as_secs_f64() / f64::from(per_round)
    };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Neither is always the one that comes second.
        if round % 2 == 0 {
            first.push(time(&mut a));
            second.push(time(&mut b));
        } else {
            second.push(time(&mut b));
            first.push(time(&mut a));
        }
    }
    first.sort_by(f64::total_cmp);
    second.sort_by(f64::total_cmp);
    (first[rounds / 2], second[rounds / 2])
}

fn nanos(seconds: f64) -> String {
    if seconds < 1e-6 {
        format!("{:.1} ns", seconds * 1e9)
    } else if seconds < 1e-3 {
        format!("{:.1} us", seconds * 1e6)
    } else {
        format!("{:.2} ms", seconds * 1e3)
    }
}

fn main() {
    let thousand = conversation(1000);
    absent_slot(&thousand);
    vtable_against_trait_object();
    hand_over();
    selection_against_json(&thousand);
    growth();
}

fn conversation(count: usize) -> Vec<Message> {
    (0..count)
        .map(|index| {
            let role = if index % 2 == 0 { "user" } else { "assistant" };
            let text = format!("message {index}: ") + &"some words to read. ".repeat(54);
            let json = json!({"role": role, "content": text}).to_string();
            Message::parse(&json).expect("a message")
        })
        .collect()
}

fn absent_slot(messages: &[Message]) {
    const REQUESTS: u64 = 1_000_000;
    let mut engine = engine(engine_module!(Bare), Timeouts::default());
    let request = MessageList::wire(messages);
    let stored = MessageList::stored(messages);
    let (allocations, entered) = (
        ALLOCATIONS.load(Ordering::Relaxed),
        ENTERED.load(Ordering::Relaxed),
    );
    let start = Instant::now();
    for attempt in 0..REQUESTS {
        let attempt = u32::try_from(attempt).unwrap_or(0);
        let emission = engine.select_context(&request, &stored, None, 200_000, 0, attempt);
        assert!(matches!(
            black_box(emission),
            Ok(Emission::Unchanged { .. })
        ));
    }
    let took = start.elapsed().as_secs_f64() / 1e6;
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
    let entered = ENTERED.load(Ordering::Relaxed) - entered;
    println!(
        "absent slot, {REQUESTS} requests: {entered} calls, {allocations} allocations, {} each",
        nanos(took)
    );
    assert_eq!(
        (entered, allocations),
        (0, 0),
        "an absent slot costs nothing"
    );
}

/// What the same engine would be if there were no border.
trait Direct {
    fn should_compress(&mut self, tokens: Option<u64>) -> Result<Decision, EngineError>;
    fn state(&self) -> EngineState;
}

impl Direct for Bare {
    fn should_compress(&mut self, tokens: Option<u64>) -> Result<Decision, EngineError> {
        ENTERED.fetch_add(1, Ordering::Relaxed);
        let over = tokens.is_some_and(|tokens| tokens >= self.0.threshold_tokens);
        Ok(if over { Decision::Yes } else { Decision::No })
    }
    fn state(&self) -> EngineState {
        ENTERED.fetch_add(1, Ordering::Relaxed);
        self.0
    }
}

type Slot = unsafe extern "C" fn(
    *mut abi::Engine,
    *const abi::Call,
    *const abi::DecideArgs,
    *mut u32,
) -> abi::Status;

/// What an engine in C would put into the slot.
unsafe extern "C" fn plain_should_compress(
    this: *mut abi::Engine,
    _: *const abi::Call,
    args: *const abi::DecideArgs,
    yes: *mut u32,
) -> abi::Status {
    ENTERED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's threshold, a complete struct, and room for the answer.
    unsafe {
        let threshold = *this.cast::<u64>();
        *yes = u32::from(u64::try_from((*args).prompt_tokens).is_ok_and(|n| n >= threshold));
    }
    abi::OK
}

fn vtable_against_trait_object() {
    let module = EngineModule::from_static(engine_module!(Bare)).expect("a sound module");
    let table = *module.vtable();
    let host = abi::Host::EMPTY;
    let call = abi::Call::EMPTY;
    let args = abi::CreateArgs {
        context_length: 200_000,
        ..abi::CreateArgs::EMPTY
    };
    let mut this = std::ptr::null_mut();
    let create = table.create.expect("required");
    // SAFETY: the engine is linked into this program; the host table and the call outlive every call below.
    let status = unsafe {
        create(
            &raw const host,
            &raw const call,
            &raw const args,
            &raw mut this,
        )
    };
    assert_eq!(status, abi::OK);
    let decide = table.should_compress.expect("required");
    let show = table.state.expect("required");
    let decide_args = abi::DecideArgs {
        prompt_tokens: 1000,
        ..abi::DecideArgs::EMPTY
    };

    let mut boxed: Box<dyn Direct> = black_box(Box::new(Bare(EngineState::new(200_000))));
    let (border, direct) = pair(
        41,
        20_000,
        || {
            let mut yes = 0;
            // SAFETY: as above; one call at a time.
            let status = unsafe {
                black_box(decide)(this, &raw const call, &raw const decide_args, &raw mut yes)
            };
            black_box((status, yes));
        },
        || {
            black_box(boxed.should_compress(black_box(Some(1000))).is_ok());
        },
    );
    println!(
        "should_compress: vtable {}, Box<dyn> {}: {:.2}x",
        nanos(border),
        nanos(direct),
        border / direct
    );
    // The border itself, without the guard against panics that the author's kit puts behind it.
    let threshold = 150_000_u64;
    let (border, direct) = pair(
        41,
        20_000,
        || {
            let mut yes = 0;
            let this = (&raw const threshold).cast_mut().cast();
            let plain: Slot = plain_should_compress;
            // SAFETY: the function reads a number behind `this`, and the arguments are complete.
            let status = unsafe {
                black_box(plain)(this, &raw const call, &raw const decide_args, &raw mut yes)
            };
            black_box((status, yes));
        },
        || {
            black_box(boxed.should_compress(black_box(Some(1000))).is_ok());
        },
    );
    println!(
        "should_compress of a plain table: vtable {}, Box<dyn> {}: {:.2}x",
        nanos(border),
        nanos(direct),
        border / direct
    );
    let boxed: Box<dyn Direct> = black_box(Box::new(Bare(EngineState::new(200_000))));
    let (border, direct) = pair(
        41,
        20_000,
        || {
            let mut out = abi::State::INITIAL;
            // SAFETY: as above.
            let status = unsafe { black_box(show)(this, &raw mut out) };
            black_box((status, out));
        },
        || {
            black_box(boxed.state());
        },
    );
    println!(
        "state: vtable {}, Box<dyn> {}: {:.2}x",
        nanos(border),
        nanos(direct),
        border / direct
    );
    let destroy = table.destroy.expect("required");
    // SAFETY: once, and the instance is not used again.
    unsafe { destroy(this) };
}

fn hand_over() {
    let mut on_lane = engine(engine_module!(Bare), Timeouts::default());
    let mut on_thread = engine(engine_module!(Bare), here());
    let (lane, thread) = pair(
        21,
        500,
        || drop(black_box(on_lane.should_compress(Some(1000)))),
        || drop(black_box(on_thread.should_compress(Some(1000)))),
    );
    println!(
        "should_compress through a handle: on its lane {}, on this thread {}",
        nanos(lane),
        nanos(thread)
    );
}

fn selection_against_json(messages: &[Message]) {
    let mut on_lane = engine(engine_module!(KeepAll), Timeouts::default());
    let mut on_thread = engine(engine_module!(KeepAll), here());
    let (wire, stored) = (MessageList::wire(messages), MessageList::stored(messages));
    let values: Vec<Value> = messages
        .iter()
        .map(|message| serde_json::from_str(message.wire()).expect("JSON"))
        .collect();
    let bytes: usize = messages.iter().map(|message| message.wire().len()).sum();
    println!(
        "{} messages of {} bytes:",
        messages.len(),
        bytes / messages.len()
    );
    for (name, engine) in [
        ("on its lane", &mut on_lane),
        ("on this thread", &mut on_thread),
    ] {
        let (border, text) = pair(
            21,
            20,
            || {
                let emission = engine.select_context(&wire, &stored, None, 200_000, 0, 0);
                let Ok(Emission::Messages(items)) = black_box(emission) else {
                    panic!("it keeps all");
                };
                assert_eq!(items.len(), messages.len());
            },
            || {
                // The host writes, the engine reads; the engine writes, the host reads.
                let sent = serde_json::to_string(&values).expect("JSON");
                let read: Vec<Value> = serde_json::from_str(&sent).expect("JSON");
                let back = serde_json::to_string(&read).expect("JSON");
                let result: Vec<Value> = serde_json::from_str(&back).expect("JSON");
                assert_eq!(black_box(result).len(), messages.len());
            },
        );
        println!(
            "  select_context {name} keeps all: {}, as JSON text both ways {}: {:.0}x faster",
            nanos(border),
            nanos(text),
            text / border
        );
    }
}

/// What one more message costs a list that nobody else holds.
fn growth() {
    let one = &conversation(1)[0];
    for count in [100, 1_000, 10_000] {
        let mut list = MessageList::stored(&conversation(count));
        let start = Instant::now();
        for _ in 0..1000 {
            list.push(one.clone());
        }
        let took = start.elapsed().as_secs_f64() / 1000.0;
        println!("one more message behind {count}: {}", nanos(took));
    }
}
