//! The members of a request that servers quarrel about, and what was learned about this one.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::provider::{Failure, FailureKind};

/// It does not know `stream_options`.
const NO_STREAM_OPTIONS: u8 = 1;
/// It does not stream.
const NO_STREAM: u8 = 2;
/// It calls `max_tokens` the other way.
const OTHER_LIMIT_NAME: u8 = 4;

/// The longest answer has two names.
const LIMIT_NAMES: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// How requests to one server end.
#[derive(Debug)]
pub(super) struct Manners {
    stream: bool,
    max_tokens: Option<u64>,
    limit_name: usize,
    parameters: String,
    learned: AtomicU8,
}

impl Manners {
    pub(super) fn new(stream: bool, max_tokens: Option<u64>, host: &str) -> Self {
        let mut manners = Self {
            stream,
            max_tokens,
            limit_name: usize::from(host == "api.openai.com"),
            parameters: String::new(),
            learned: AtomicU8::new(0),
        };
        manners.parameters = manners.text(0);
        manners
    }

    /// The members as the conversation puts them into each body.
    pub(super) fn parameters(&self) -> &str {
        &self.parameters
    }

    /// What is known by now.
    pub(super) fn known(&self) -> u8 {
        self.learned.load(Ordering::Relaxed)
    }

    /// Whether an answer will be streamed.
    pub(super) fn streams(&self, known: u8) -> bool {
        self.stream && known & NO_STREAM == 0
    }

    /// The body as this server takes it. It was built with [`Self::parameters`] at its end.
    pub(super) fn put<'b>(&self, body: &'b str, known: u8) -> Cow<'b, str> {
        if known == 0 {
            return Cow::Borrowed(body);
        }
        let Some(rest) = body
            .strip_suffix('}')
            .and_then(|rest| rest.strip_suffix(&self.parameters))
        else {
            return Cow::Borrowed(body);
        };
        let text = self.text(known);
        if text.is_empty() {
            return Cow::Owned(format!("{}}}", rest.trim_end_matches(',')));
        }
        Cow::Owned(format!("{rest}{text}}}"))
    }

    /// Whether a refusal was about one of the members, so that a request without it is worth sending at once.
    pub(super) fn learn(&self, known: u8, failure: &Failure) -> bool {
        if failure.kind != FailureKind::Refused
            || !matches!(failure.status, Some(400 | 404 | 422 | 501))
        {
            return false;
        }
        let text = failure.message.to_lowercase();
        let told = |word: &str| text.contains(word);
        let unknown = [
            "unsupported",
            "not support",
            "unknown",
            "unrecognized",
            "unexpected",
            "extra",
            "not permitted",
            "not allowed",
            "invalid",
        ]
        .iter()
        .any(|word| text.contains(word));
        let lesson = if told("stream_options") {
            NO_STREAM_OPTIONS
        } else if told("stream") && unknown {
            NO_STREAM
        } else if self.max_tokens.is_some() && unknown && LIMIT_NAMES.iter().any(|name| told(name))
        {
            OTHER_LIMIT_NAME
        } else {
            return false;
        };
        let applies = match lesson {
            OTHER_LIMIT_NAME => true,
            _ => self.streams(known),
        };
        if !applies || known & lesson != 0 {
            return false;
        }
        self.learned.fetch_or(lesson, Ordering::Relaxed);
        true
    }

    fn text(&self, known: u8) -> String {
        let mut members = Vec::new();
        if self.streams(known) {
            members.push("\"stream\":true".to_owned());
            if known & NO_STREAM_OPTIONS == 0 {
                members.push("\"stream_options\":{\"include_usage\":true}".to_owned());
            }
        }
        if let Some(limit) = self.max_tokens {
            let other = usize::from(known & OTHER_LIMIT_NAME != 0);
            let name = LIMIT_NAMES[self.limit_name ^ other];
            members.push(format!("\"{name}\":{limit}"));
        }
        members.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> Failure {
        let mut failure = *Failure::new(FailureKind::Refused, message);
        failure.status = Some(400);
        failure
    }

    #[test]
    fn a_server_is_asked_once_for_what_it_refuses() {
        let manners = Manners::new(true, Some(9), "h");
        let body = format!("{{\"messages\":[],{}}}", manners.parameters());
        assert_eq!(
            body,
            r#"{"messages":[],"stream":true,"stream_options":{"include_usage":true},"max_tokens":9}"#
        );
        assert!(matches!(manners.put(&body, 0), Cow::Borrowed(_)));
        assert!(manners.learn(
            0,
            &refused("Extra inputs are not permitted: stream_options")
        ));
        let known = manners.known();
        assert_eq!(
            manners.put(&body, known),
            r#"{"messages":[],"stream":true,"max_tokens":9}"#
        );
        assert!(!manners.learn(known, &refused("stream_options")));
        assert!(manners.learn(
            known,
            &refused("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'")
        ));
        assert!(manners.learn(manners.known(), &refused("streaming is not supported")));
        assert_eq!(
            manners.put(&body, manners.known()),
            r#"{"messages":[],"max_completion_tokens":9}"#
        );
        let without = Manners::new(true, None, "h");
        let body = format!("{{\"messages\":[],{}}}", without.parameters());
        assert_eq!(without.put(&body, NO_STREAM), r#"{"messages":[]}"#);
    }

    #[test]
    fn other_refusals_teach_nothing() {
        let manners = Manners::new(true, None, "api.openai.com");
        assert!(!manners.learn(0, &refused("messages[1] is invalid")));
        assert!(!manners.learn(0, &refused("max_tokens is unsupported")));
        let mut busy = refused("stream_options");
        busy.kind = FailureKind::Server;
        assert!(!manners.learn(0, &busy));
        let plain = Manners::new(false, Some(3), "api.openai.com");
        assert_eq!(plain.parameters(), "\"max_completion_tokens\":3");
        assert!(!plain.learn(0, &refused("stream_options")));
    }
}
