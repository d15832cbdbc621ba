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
    let (host, url) = (&peer.host, &peer.url);
    if let Some(300..=399) = status {
        let to = refusal
            .location
            .map_or_else(String::new, |to| format!(" to {}", cut(to, 200)));
        return format!(
            "{url} has moved{to}{number}; set model.base_url to the address that answers itself"
        );
    }
    if status == Some(404) {
        let low = words.to_lowercase();
        return if low.contains("model") {
            format!("{host} does not have this model{number}{said}; choose another model")
        } else {
            format!(
                "there are no chat completions at {url}{number}{said}; check model.base_url (it often ends in /v1)"
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
        match &self.key_variable {
            Some(variable) => format!("check {variable}, or `hermes config get model`"),
            None => "name the variable that holds it: `hermes config set model.api_key_env NAME`"
                .to_owned(),
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
fn plain(body: &str) -> String {
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
mod tests {
    use super::*;

    fn peer() -> Peer {
        Peer {
            host: "api.example.com".into(),
            url: "https://api.example.com/v1/chat/completions".into(),
            key_variable: Some("EXAMPLE_API_KEY".into()),
            has_key: true,
            key: Some("secret-key-12345".into()),
        }
    }

    fn of(status: Option<u16>, body: &str) -> Failure {
        *failure(
            &Refusal {
                status,
                body,
                ..Refusal::default()
            },
            &peer(),
        )
    }

    #[test]
    fn each_status_is_its_kind() {
        use FailureKind as K;
        for (status, body, want) in [
            (400, "{}", K::Refused),
            (
                400,
                r#"{"error":{"message":"API key not valid. Please pass a valid API key."}}"#,
                K::Auth,
            ),
            (400, r#"{"error":{"code":"content_filter"}}"#, K::Blocked),
            (
                400,
                r#"{"error":{"message":"Your credit balance is too low"}}"#,
                K::Quota,
            ),
            (401, "", K::Auth),
            (402, "", K::Quota),
            (403, "", K::Auth),
            (
                403,
                r#"{"error":{"metadata":{"flagged_input":"x"}}}"#,
                K::Blocked,
            ),
            (404, "", K::Refused),
            (408, "", K::Server),
            (429, "", K::RateLimited),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, K::Quota),
            (500, "", K::Server),
            (529, r#"{"error":{"type":"overloaded_error"}}"#, K::Server),
            (301, "", K::Refused),
        ] {
            assert_eq!(of(Some(status), body).kind, want, "{status} {body}");
        }
        for (body, want) in [
            (
                r#"{"error":{"code":429,"message":"slow down"}}"#,
                K::RateLimited,
            ),
            (r#"{"error":{"message":"Overloaded"}}"#, K::Server),
            (r#"{"error":{"code":"502","message":"x"}}"#, K::Server),
            (r#"{"error":"rate limit exceeded"}"#, K::RateLimited),
            (
                r#"{"error":{"type":"invalid_request_error","message":"x"}}"#,
                K::Refused,
            ),
        ] {
            assert_eq!(of(None, body).kind, want, "{body}");
            assert_eq!(of(Some(200), body).kind, want, "{body}");
        }
    }

    #[test]
    fn sentences_say_who_what_and_what_to_do() {
        let told = |status, body| of(Some(status), body).message;
        let auth = told(
            401,
            r#"{"error":{"message":"Incorrect API key provided: secret-key-12345."}}"#,
        );
        assert_eq!(
            auth,
            "api.example.com does not accept the key (401): Incorrect API key provided: [key]; \
             check EXAMPLE_API_KEY, or `hermes config get model`"
        );
        assert!(
            told(404, r#"{"error":{"message":"model x not found"}}"#)
                .contains("choose another model")
        );
        assert!(told(404, "<html>404</html>").contains("/v1"));
        let page = told(502, "<html><body><h1>Bad Gateway</h1>\n</body></html>");
        assert_eq!(page, "api.example.com failed (502): Bad Gateway");
        let nested = told(
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"tools.0: bad\"}}"}}}"#,
        );
        assert_eq!(
            nested,
            "api.example.com refused the request (400): tools.0: bad"
        );
        assert!(
            told(400, r#"{"error":{"message":"max_tokens is too large: 9"}}"#)
                .contains("lower model.max_tokens")
        );
    }

    #[test]
    fn a_wait_is_read_wherever_it_stands() {
        let wait = |body| of(Some(429), body).retry_after;
        assert_eq!(
            wait("Please try again in 8.5s."),
            Some(Duration::from_millis(8500))
        );
        assert_eq!(
            wait("Please try again in 1m2s."),
            Some(Duration::from_secs(62))
        );
        assert_eq!(wait("try again in 250ms"), Some(Duration::from_millis(250)));
        assert_eq!(
            wait(r#"{"retryDelay": "34s"}"#),
            Some(Duration::from_secs(34))
        );
        assert_eq!(wait("try again in a while"), None);
        let headers = |ms: Option<&'static str>, s: Option<&'static str>| {
            asked_in_headers(|name| if name == "retry-after" { s } else { ms })
        };
        assert_eq!(
            headers(Some("1500"), Some("9")),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(headers(None, Some("9")), Some(Duration::from_secs(9)));
        assert_eq!(headers(Some("x"), None), None);
    }
}
