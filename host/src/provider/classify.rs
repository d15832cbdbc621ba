//! From an error answer to a [`Failure`]: its kind, and one sentence for the user.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use regex::Regex;
use serde_json::Value;

use super::overflow::{self, Meaning};
use super::{Failure, FailureKind, assemble, retry};

/// Who answered, for the sentences.
#[derive(Clone)]
pub(super) struct Peer {
    /// The address without path: `api.openai.com`, `127.0.0.1:8080`.
    pub(super) host: String,
    /// The address that requests go to.
    pub(super) url: String,
    /// The environment variable that has, or could have, the key.
    pub(super) key_variable: Option<String>,
    /// A key was sent.
    pub(super) has_key: bool,
    /// The section of the configuration that leads there.
    pub(super) section: String,
    /// The key itself, so that it never shows.
    pub(super) key: Option<String>,
}

/// An answer that is an error.
#[derive(Debug, Default)]
pub(super) struct Refusal<'a> {
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    pub(super) location: Option<&'a str>,
    pub(super) body: &'a str,
}

/// Longest part of a provider's own words that is shown.
const SHOWN: usize = 400;
/// Longest part of a body that is looked through.
const READ: usize = 64 << 10;

/// Makes a failure of an error answer.
pub(super) fn failure(refusal: &Refusal<'_>, peer: &Peer) -> Box<Failure> {
    let body = cut(refusal.body, READ);
    let error = Said::read(body);
    // An error inside a stream, or with status 200, names its status itself.
    let status = match refusal.status {
        Some(200..=299) | None => error.status.or(refusal.status),
        status => status,
    };
    let kind = kind_of(status, body, &error);
    let retry_after = refusal.retry_after.or_else(|| asked_in_text(body));
    let words = error.words(peer);
    let message = sentence(&kind, status, &words, refusal, retry_after, peer);
    let mut failure = Failure::new(kind, message);
    failure.status = status;
    failure.retry_after = retry_after;
    failure
}

fn kind_of(status: Option<u16>, body: &str, error: &Said) -> FailureKind {
    let text = body.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match overflow::meaning(status, body) {
        Meaning::TooLong(found) => {
            return FailureKind::Overflow {
                limit: found.limit,
                requested: found.requested,
                payload: found.payload,
            };
        }
        Meaning::AnswerLimit => return FailureKind::Refused,
        Meaning::Other => {}
    }
    let spent = has(&[
        "insufficient_quota",
        "credit balance",
        "insufficient credits",
        "insufficient balance",
        "billing_hard_limit",
        "billing_not_active",
    ]);
    let blocked = has(&[
        "content_filter",
        "content_policy",
        "content management policy",
        "responsibleaipolicyviolation",
        "flagged_input",
        "flagged by moderation",
        "moderation_blocked",
        "prohibited_content",
    ]);
    match status {
        Some(400..=599) if spent => FailureKind::Quota,
        Some(400 | 403 | 422) if blocked => FailureKind::Blocked,
        Some(400) if has(&["api key not valid", "invalid api key", "invalid_api_key"]) => {
            FailureKind::Auth
        }
        Some(401 | 403 | 407) => FailureKind::Auth,
        Some(402) => FailureKind::Quota,
        Some(429) => FailureKind::RateLimited,
        Some(408 | 409 | 425 | 500..=599) => FailureKind::Server,
        Some(300..=499) => FailureKind::Refused,
        // An error without any number.
        _ if spent => FailureKind::Quota,
        _ if blocked => FailureKind::Blocked,
        _ if has(&["rate limit", "rate_limit", "too many requests"]) => FailureKind::RateLimited,
        _ if has(&[
            "authentication",
            "invalid api key",
            "invalid_api_key",
            "unauthorized",
        ]) =>
        {
            FailureKind::Auth
        }
        _ if matches!(&*error.kind, "invalid_request_error" | "not_found_error") => {
            FailureKind::Refused
        }
        _ => FailureKind::Server,
    }
}

fn sentence(
    kind: &FailureKind,
    status: Option<u16>,
    words: &str,
    refusal: &Refusal<'_>,
    retry_after: Option<Duration>,
    peer: &Peer,
) -> String {
    let host = &peer.host;
    let number = status.map_or_else(String::new, |status| format!(" ({status})"));
    let said = if words.is_empty() {
        String::new()
    } else {
        format!(": {words}")
    };
    let later = match retry_after {
        Some(wait) if !wait.is_zero() => {
            format!("; it asks to come back in {}", retry::in_words(wait))
        }
        _ => String::new(),
    };
    match kind {
        FailureKind::Overflow { payload: true, .. } => {
            format!("{host} refused the request as too large{number}{said}")
        }
        FailureKind::Overflow { .. } => {
            format!("the request is too long for the model at {host}{number}{said}")
        }
        FailureKind::RateLimited => {
            format!("{host} is limiting requests{number}{said}{later}")
        }
        FailureKind::Server => format!("{host} failed{number}{said}{later}"),
        FailureKind::Quota => format!(
            "nothing is left to spend at {host}{number}{said}; add credit there or choose another model"
        ),
        FailureKind::Blocked => {
            format!("the content policy of {host} refuses this request{number}{said}")
        }
        FailureKind::Auth => format!(
            "{host} {}{number}{said}; {}",
            peer.key_trouble(),
            peer.key_advice()
        ),
        _ => refused(status, words, refusal, peer, &number, &said),
    }
}

fn refused(
    status: Option<u16>,
    words: &str,
    refusal: &Refusal<'_>,
    peer: &Peer,
    number: &str,
    said: &str,
) -> String {
    let (host, url, section) = (&peer.host, &peer.url, &peer.section);
    if let Some(300..=399) = status {
        let to = refusal
            .location
            .map_or_else(String::new, |to| format!(" to {}", cut(to, 200)));
        return format!(
            "{url} has moved{to}{number}; set {section}.base_url to the address that answers itself"
        );
    }
    if status == Some(404) {
        let low = words.to_lowercase();
        return if low.contains("model") {
            format!("{host} does not have this model{number}{said}; choose another model")
        } else {
            format!(
                "there are no chat completions at {url}{number}{said}; check {section}.base_url (it often ends in /v1)"
            )
        };
    }
    if let Meaning::AnswerLimit = overflow::meaning(status, refusal.body) {
        return format!(
            "{host} cannot give answers as long as was asked for{number}{said}; lower model.max_tokens"
        );
    }
    format!("{host} refused the request{number}{said}")
}

/// Without the key.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("url", &self.url)
            .field("key_variable", &self.key_variable)
            .field("has_key", &self.has_key)
            .finish_non_exhaustive()
    }
}

impl Peer {
    /// Takes everything secret out of a text.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(key) = self.key.as_deref().filter(|key| key.len() >= 6) {
            text = text.replace(key, "[key]");
        }
        hermes_message::redact::redact(&text).into_owned()
    }

    fn key_trouble(&self) -> &'static str {
        if self.has_key {
            "does not accept the key"
        } else {
            "wants a key"
        }
    }

    fn key_advice(&self) -> String {
        let section = &self.section;
        match &self.key_variable {
            Some(variable) => format!("check {variable}, or `hermes config get {section}`"),
            None => format!(
                "name the variable that holds it: `hermes config set {section}.api_key_env NAME`"
            ),
        }
    }
}

/// What an error body says.
#[derive(Debug, Default)]
struct Said {
    status: Option<u16>,
    kind: String,
    message: String,
    raw: String,
}

impl Said {
    fn read(body: &str) -> Self {
        let mut said = Self::default();
        match assemble::json(body.trim()) {
            Some(value) => said.gather(&value, 0),
            None => said.raw = plain(body),
        }
        said
    }

    fn gather(&mut self, value: &Value, depth: u32) {
        if depth > 6 {
            return;
        }
        match value {
            Value::String(text) if self.message.is_empty() => self.message.clone_from(text),
            Value::Array(list) => list
                .iter()
                .take(3)
                .for_each(|one| self.gather(one, depth + 1)),
            Value::Object(members) => {
                for key in ["code", "status", "status_code"] {
                    let number = members.get(key).and_then(number);
                    self.status = self.status.or(number.filter(|n| (400..600).contains(n)));
                }
                if let Some(Value::String(kind)) = members.get("type")
                    && kind != "error"
                    && self.kind.is_empty()
                {
                    self.kind.clone_from(kind);
                }
                // A gateway's own words say less than those of the provider behind it.
                let raw = members.get("metadata").and_then(|m| m.get("raw"));
                if let Some(Value::String(raw)) = raw {
                    match assemble::json(raw) {
                        Some(value) => self.gather(&value, depth + 1),
                        None => self.message = plain(raw),
                    }
                }
                for key in ["error", "errors", "message", "detail", "msg"] {
                    if let Some(value) = members.get(key) {
                        self.gather(value, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn words(&self, peer: &Peer) -> String {
        let words = if self.message.is_empty() {
            &self.raw
        } else {
            &self.message
        };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = peer.clean(cut(&words, SHOWN));
        words.trim_end_matches('.').to_owned()
    }
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|n| u16::try_from(n).ok()),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A body that is no JSON: pages of gateways are reduced to their words.
pub(super) fn plain(body: &str) -> String {
    let mut words = String::new();
    let mut inside = false;
    for c in cut(body, 4096).chars() {
        match c {
            '<' => inside = true,
            '>' if inside => {
                inside = false;
                words.push(' ');
            }
            _ if !inside => words.push(c),
            _ => {}
        }
    }
    words
}

/// `Please try again in 1m2.5s`, `"retryDelay": "34s"`.
fn asked_in_text(body: &str) -> Option<Duration> {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        let time = r"([\d.]+)\s*ms|(\d+)\s*m(?:in(?:ute)?s?)?(?:\s*([\d.]+)\s*s)?|([\d.]+)\s*s";
        let before = r#"(?:try again|retry) in|retryDelay"\s*:\s*""#;
        Regex::new(&format!(r"(?i)(?:{before})\s*(?:{time})")).ok()
    });
    let found = pattern.as_ref()?.captures(body)?;
    let part = |at| {
        found
            .get(at)
            .map_or(Some(0.0), |part| part.as_str().parse::<f64>().ok())
    };
    let (ms, minutes, more, seconds) = (part(1)?, part(2)?, part(3)?, part(4)?);
    retry::seconds_of(ms / 1000.0 + minutes * 60.0 + more + seconds)
}

/// What the headers ask for.
pub(super) fn asked_in_headers<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let milliseconds = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok());
    milliseconds
        .and_then(|ms| retry::seconds_of(ms / 1000.0))
        .or_else(|| retry::asked(header("retry-after")?, SystemTime::now()))
}

/// The start of a text, not longer than so many bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests;
