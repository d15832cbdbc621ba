//! The host's helper model as the algorithm sees it.

use hermes_plugin_api::{Call, CompleteRequest, ErrorClass};
use serde_json::json;

use crate::helper::{Ask, Class, Failure, Helper, Reply};
use crate::secrets;

/// The helper behind one call.
pub(crate) struct HostHelper<'a, 'c> {
    call: &'a Call<'c>,
    window: u64,
}

impl<'a, 'c> HostHelper<'a, 'c> {
    pub(crate) fn new(call: &'a Call<'c>, window: u64) -> Self {
        Self { call, window }
    }
}

impl Helper for HostHelper<'_, '_> {
    fn window(&self) -> u64 {
        self.window
    }

    fn ask(&mut self, ask: &Ask<'_>) -> Result<Reply, Failure> {
        if self.call.cancelled() {
            return Err(Failure::new(Class::Cancelled, "the pass was given up"));
        }
        let request = CompleteRequest {
            messages: json!([{"role": "user", "content": ask.prompt}]),
            // Models that think spend tokens before the first word; a limit here would cut their summaries.
            max_tokens: None,
            purpose: "summary".to_owned(),
            timeout: None,
        };
        match self
            .call
            .host()
            .complete(Some(self.call), &request, &mut |_| {})
        {
            Ok(completion) => Ok(Reply {
                text: completion.text,
                finish_reason: completion.finish_reason,
            }),
            Err(error) => Err(Failure {
                class: class(error.class),
                message: secrets::redact(&error.message).into_owned(),
                retry_after: error.retry_after,
            }),
        }
    }

    fn progress(&mut self, done: usize, total: usize) {
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        self.call.progress(number(done), number(total));
    }
}

fn class(class: ErrorClass) -> Class {
    match class {
        ErrorClass::Auth => Class::Auth,
        ErrorClass::Quota => Class::Quota,
        ErrorClass::Network => Class::Network,
        ErrorClass::Overload => Class::Overload,
        ErrorClass::Context => Class::Context,
        ErrorClass::Empty => Class::Empty,
        ErrorClass::Truncated => Class::Truncated,
        ErrorClass::Cancelled => Class::Cancelled,
        ErrorClass::NotGranted => Class::Missing,
        _ => Class::Other,
    }
}
