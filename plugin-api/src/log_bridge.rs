//! `tracing` inside an engine ends in the host's log.
//!
//! A compiled engine has its own copy of every static, `tracing`'s dispatcher too, so that a subscriber of the host is
//! invisible there. In a library the SDK therefore installs this one, once, unless the author has installed another. An
//! engine that is linked into the host uses the host's subscriber and needs no bridge.

use std::fmt::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::export::with_host;
use crate::services::Level;

static INSTALL: Once = Once::new();

/// Called in a library, before the author's code first runs.
pub(crate) fn install() {
    INSTALL.call_once(|| {
        // Fails only where the author has installed a subscriber, which is the author's right.
        let _ = tracing::subscriber::set_global_default(Bridge {
            spans: AtomicU64::new(1),
        });
    });
}

/// Forwards events; spans have no time of their own here and are only counted.
struct Bridge {
    spans: AtomicU64,
}

fn level(metadata: &Metadata<'_>) -> Level {
    match *metadata.level() {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

impl Subscriber for Bridge {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // The level is the host's and differs between instances, so it is asked each time.
        tracing::subscriber::Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        with_host(|host| host.logs(level(metadata))).unwrap_or(false)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let target = event.metadata().target();
        with_host(|host| {
            host.log(
                level(event.metadata()),
                &format!("{target}: {}{}", line.message, line.fields),
            );
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One event as text: the message, then `key=value` for each field.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing into a `String` cannot fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}
