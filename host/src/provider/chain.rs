//! The main model, and those of `fallback_providers` that answer in its stead.
//!
//! The main model is asked first, and tried again as often as any. When it has failed for good ([`Provider::give_way`])
//! the next one is asked, for a while, so that not every request waits for a server that is down; then the main model
//! has its turn again. Each answer of another one says whose it is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Cancel, Delta, Failure, FailureKind, Provider, Reply};

/// How long the main model is left alone after it has failed for good.
const REST: Duration = Duration::from_secs(60);

/// One model that may be asked.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) model: String,
}

/// The main model and its stand-ins, in order.
#[derive(Debug)]
pub(super) struct Chain {
    main: Arc<dyn Provider>,
    others: Vec<Seat>,
    rest: Mutex<Option<Rest>>,
}

/// The main model rests, and another one is asked.
#[derive(Clone, Debug)]
struct Rest {
    /// Its number, from 1.
    seat: usize,
    until: Instant,
    /// What became of the main model.
    why: String,
}

impl Chain {
    pub(super) fn new(main: Arc<dyn Provider>, others: Vec<Seat>) -> Self {
        Self {
            main,
            others,
            rest: Mutex::new(None),
        }
    }

    /// Who is asked now, if not the main model.
    fn resting(&self) -> Option<(Rest, &Seat)> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.take_if(|rest| rest.until <= Instant::now());
        let rest = rest.clone()?;
        let seat = self.others.get(rest.seat.checked_sub(1)?)?;
        Some((rest, seat))
    }

    fn asked_instead(seat: &Seat, why: &str) -> String {
        let (model, at) = (&seat.model, seat.provider.name());
        format!("{why}; {model} at {at} is asked instead")
    }
}

impl Provider for Chain {
    fn name(&self) -> &str {
        self.main.name()
    }

    fn parameters(&self) -> &str {
        self.main.parameters()
    }

    fn send(
        &self,
        body: &str,
        cancel: &Cancel,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let Some((rest, seat)) = self.resting() else {
            return self.main.send(body, cancel, on);
        };
        let body = addressed(body, self.main.parameters(), seat);
        match seat.provider.send(&body, cancel, on) {
            Ok(mut reply) => {
                let (model, at) = (&seat.model, seat.provider.name());
                let note = format!("{}; this answer is by {model} at {at}", rest.why);
                reply.notes.push(note);
                Ok(reply)
            }
            Err(mut failure) => {
                failure.seat = rest.seat;
                if failure.kind != FailureKind::Cancelled {
                    failure.message = format!("{}; and then {}", rest.why, failure.message);
                }
                Err(failure)
            }
        }
    }

    fn give_way(&self, failure: &Failure) -> Option<String> {
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
            return None;
        }
        let now = self.resting();
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((now, seat)) = now
            && now.seat > failure.seat
        {
            // Another conversation has found out before.
            return Some(Self::asked_instead(seat, &failure.message));
        }
        let Some(seat) = self.others.get(failure.seat) else {
            // Nobody is left: next time it begins with the main model again.
            *rest = None;
            return None;
        };
        let why = match rest.take() {
            Some(rest) if failure.seat > 0 => rest.why,
            _ => failure.message.clone(),
        };
        *rest = Some(Rest {
            seat: failure.seat + 1,
            until: Instant::now() + REST,
            why,
        });
        Some(Self::asked_instead(seat, &failure.message))
    }

    fn context_length(&self, model: &str) -> Option<u64> {
        self.main.context_length(model)
    }
}

/// The body of a request to the main model, for another one: with its name, and its members at the end.
fn addressed(body: &str, parameters: &str, seat: &Seat) -> String {
    let name = Value::from(seat.model.as_str());
    let own = seat.provider.parameters();
    let rest = body.strip_suffix('}').unwrap_or(body);
    let rest = rest.strip_suffix(parameters).unwrap_or(rest);
    let rest = rest.trim_end_matches(',');
    let comma = if own.is_empty() { "" } else { "," };
    if let Some(behind) = rest.strip_prefix("{\"model\":") {
        let mut names = serde_json::Deserializer::from_str(behind).into_iter::<String>();
        if let Some(Ok(_)) = names.next() {
            let behind = &behind[names.byte_offset()..];
            return format!("{{\"model\":{name}{behind}{comma}{own}}}");
        }
    }
    // Not as conversations build it.
    match serde_json::from_str::<Value>(body) {
        Ok(Value::Object(mut members)) => {
            members.insert("model".to_owned(), name);
            Value::Object(members).to_string()
        }
        _ => body.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{HttpOptions, HttpProvider};

    #[test]
    fn a_body_gets_another_name_and_other_members_at_its_end() {
        let seat = |max_tokens| {
            let mut options = HttpOptions::new("http://127.0.0.1:9/v1");
            options.stream = false;
            options.max_tokens = max_tokens;
            Seat {
                provider: Arc::new(HttpProvider::new(options).expect("a provider")),
                model: "b\"2".to_owned(),
            }
        };
        let body = r#"{"model":"a\"1","messages":[{"content":"{\"model\":\"x\""}],"stream":true}"#;
        assert_eq!(
            addressed(body, "\"stream\":true", &seat(Some(5))),
            r#"{"model":"b\"2","messages":[{"content":"{\"model\":\"x\""}],"max_tokens":5}"#
        );
        assert_eq!(
            addressed(r#"{"model":"a","messages":[]}"#, "", &seat(None)),
            r#"{"model":"b\"2","messages":[]}"#
        );
        assert_eq!(
            addressed(r#"{"messages":[],"model":"a"}"#, "", &seat(None)),
            r#"{"messages":[],"model":"b\"2"}"#
        );
        assert_eq!(addressed("no JSON", "", &seat(None)), "no JSON");
    }
}
