//! One exchange: a request goes out, an answer comes in, in whatever form.

use std::future::Future;
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{RequestBuilder, Response};
use tokio::time::Instant;

use super::{HttpTimeouts, client, ending};
use crate::provider::assemble::{self, Assembly};
use crate::provider::classify::{self, Peer, Refusal};
use crate::provider::sse::Events;
use crate::provider::{Cancel, Delta, Failure, FailureKind, Finish, Reply};

/// An answer in one piece is not longer than this.
const LONGEST_BODY: usize = 64 << 20;
/// An error is not longer than this.
const LONGEST_ERROR: usize = 256 << 10;
/// How long the rest of a stream (figures, its end) is waited for after the model has stopped.
const AFTER_STOP: Duration = Duration::from_secs(5);
/// The same when the figures are there already.
const AFTER_FIGURES: Duration = Duration::from_millis(250);

/// What belongs to one exchange.
pub(super) struct Exchange<'a> {
    pub(super) peer: &'a Peer,
    pub(super) timeouts: &'a HttpTimeouts,
    pub(super) cancel: &'a Cancel,
    pub(super) streamed: bool,
}

/// Why reading ended early.
enum Stop {
    Cancelled,
    Stalled(Duration),
    Broken(String),
}

impl Exchange<'_> {
    pub(super) async fn run(
        &self,
        request: RequestBuilder,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let patience = if self.streamed {
            self.timeouts.first_byte
        } else {
            self.timeouts.first_byte.max(self.timeouts.whole)
        };
        let response = match self.bounded(patience, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.no_connection(&error)),
            Err(stop) => return Err(self.stopped(stop, Assembly::default())),
        };
        if response.status().is_success() {
            self.answer(response, patience, on).await
        } else {
            Err(self.refusal(response).await)
        }
    }

    async fn answer(
        &self,
        mut response: Response,
        patience: Duration,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let mut assembly = Assembly::default();
        let mut events = Events::default();
        // Decided by the first byte: what the headers say is often not so.
        let mut json: Option<Vec<u8>> = None;
        let mut begun = false;
        let mut shown: Vec<u8> = Vec::new();
        let mut progress = Instant::now();
        let stop = loop {
            let limit = if assembly.is_complete() {
                let rest = if assembly.usage_said() {
                    AFTER_FIGURES
                } else {
                    AFTER_STOP
                };
                rest.min(self.timeouts.idle)
            } else if begun {
                self.timeouts.idle
            } else {
                patience
            };
            let part = match self.bounded(limit, response.chunk()).await {
                Ok(Ok(Some(part))) => part,
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(Stop::Broken(client::chain(&error))),
                Err(stop) => break Some(stop),
            };
            let mut part = &part[..];
            if !begun {
                let blank = part
                    .iter()
                    .take_while(|byte| byte.is_ascii_whitespace())
                    .count();
                part = &part[blank..];
                if part.is_empty() {
                    // Blanks, too, are but signs of life.
                    if progress.elapsed() > self.timeouts.whole {
                        break Some(Stop::Stalled(self.timeouts.whole));
                    }
                    continue;
                }
                begun = true;
                json = (part[0] == b'{' || part[0] == b'[').then(Vec::new);
            }
            if let Some(body) = &mut json {
                body.extend_from_slice(part);
                if body.len() > LONGEST_BODY {
                    break Some(Stop::Broken("the answer does not end".to_owned()));
                }
                continue;
            }
            if shown.len() < 4096 {
                shown.extend_from_slice(part);
            }
            let mut said = false;
            events.feed(part, &mut |data| {
                said = true;
                assembly.event(data, on);
            });
            if assembly.is_done() {
                ending::read(response).await;
                break None;
            }
            if said {
                progress = Instant::now();
            } else if progress.elapsed() > self.timeouts.whole {
                break Some(Stop::Stalled(self.timeouts.whole));
            }
        };
        let mut mended = false;
        if let Some(body) = json {
            let text = String::from_utf8_lossy(&body);
            mended = matches!(text, std::borrow::Cow::Owned(_));
            if let Some(value) = assemble::json(&text) {
                return self.whole(value, &text, mended, on);
            }
            // Events that begin with a bare object.
            shown.extend_from_slice(&body[..body.len().min(4096)]);
            events.feed(&body, &mut |data| assembly.event(data, on));
        }
        events.end(&mut |data| assembly.event(data, on));
        mended |= events.mended();
        if let Some(error) = assembly.take_error() {
            return Err(self.error_inside(&error.to_string(), assembly));
        }
        if events.too_long() {
            let stop = Stop::Broken("one of its events does not end".to_owned());
            return Err(self.stopped(stop, assembly));
        }
        match stop {
            Some(Stop::Cancelled) => Err(self.stopped(Stop::Cancelled, assembly)),
            _ if assembly.is_complete() && assembly.has_choices() => self.reply(assembly, mended),
            Some(stop) => Err(self.stopped(stop, assembly)),
            None if !assembly.has_choices() => Err(self.no_answer(&shown)),
            None => {
                let stop = Stop::Broken("the connection was closed".to_owned());
                Err(self.stopped(stop, assembly))
            }
        }
    }

    /// An answer in one piece.
    fn whole(
        &self,
        value: serde_json::Value,
        text: &str,
        mended: bool,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let mut assembly = Assembly::default();
        if value.is_array() {
            // Google wraps its errors into a list.
            return Err(self.error_inside(text, assembly));
        }
        assembly.chunk(value, on);
        if let Some(error) = assembly.take_error() {
            return Err(self.error_inside(&error.to_string(), assembly));
        }
        if !assembly.has_choices() {
            return Err(self.no_answer(text.as_bytes()));
        }
        self.reply(assembly, mended)
    }

    fn reply(&self, assembly: Assembly, mended: bool) -> Result<Reply, Box<Failure>> {
        let answer = assembly.answer();
        let mut notes = answer.notes;
        if mended {
            notes.push("the answer had bytes that are no text; they show as \u{fffd}".to_owned());
        }
        if let Some(message) = answer.message {
            return Ok(Reply {
                message,
                finish: answer.finish,
                usage: answer.usage,
                notes,
            });
        }
        let host = &self.peer.host;
        let mut failure = match answer.finish {
            Finish::Filter => {
                let message = format!("the content policy of {host} cut the whole answer off");
                Failure::new(FailureKind::Blocked, message)
            }
            Finish::Length => {
                let message = format!(
                    "{host} spent the whole length of the answer before its first word; raise model.max_tokens"
                );
                Failure::new(FailureKind::BadAnswer, message)
            }
            _ if answer.only_thought => {
                let message = format!("{host} sent the model's thoughts, and no answer");
                Failure::new(FailureKind::BadAnswer, message)
            }
            _ => Failure::new(
                FailureKind::BadAnswer,
                format!("{host} sent an empty answer"),
            ),
        };
        failure.usage = answer.usage;
        Err(failure)
    }

    /// A future with a time limit, which the caller may cancel.
    async fn bounded<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, Stop> {
        let timed = tokio::time::timeout(limit, work);
        match self.cancel.run_until_cancelled(timed).await {
            None => Err(Stop::Cancelled),
            Some(Err(_)) => Err(Stop::Stalled(limit)),
            Some(Ok(done)) => Ok(done),
        }
    }

    async fn refusal(&self, mut response: Response) -> Box<Failure> {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        let limit = self.timeouts.idle.min(Duration::from_secs(10));
        // Whatever of it arrives will do.
        while let Ok(Ok(Some(part))) = self.bounded(limit, response.chunk()).await {
            body.extend_from_slice(&part);
            if body.len() > LONGEST_ERROR {
                break;
            }
        }
        if self.cancel.is_cancelled() {
            return self.stopped(Stop::Cancelled, Assembly::default());
        }
        let header = |name: &str| text_of(&headers, name);
        let refusal = Refusal {
            status: Some(status),
            retry_after: classify::asked_in_headers(header),
            location: header(LOCATION.as_str()),
            body: &String::from_utf8_lossy(&body),
        };
        classify::failure(&refusal, self.peer)
    }

    /// An error that came as an answer.
    fn error_inside(&self, body: &str, assembly: Assembly) -> Box<Failure> {
        let refusal = Refusal {
            status: None,
            body,
            ..Refusal::default()
        };
        let mut failure = classify::failure(&refusal, self.peer);
        failure.usage = assembly.usage();
        failure.partial = assembly.partial();
        failure
    }

    fn no_connection(&self, error: &reqwest::Error) -> Box<Failure> {
        let host = &self.peer.host;
        let why = self.peer.clean(&client::chain(error));
        let message = if error.is_builder() {
            let message = format!("the request to {host} cannot be made: {why}");
            return Failure::new(FailureKind::Refused, message);
        } else if error.is_connect() && error.is_timeout() {
            format!(
                "{host} took no connection within {} s; is the address right, and the network up?",
                self.timeouts.connect.as_secs()
            )
        } else if error.is_connect() {
            format!("no connection to {host}: {why}; is the server running, and the address right?")
        } else {
            format!("the connection to {host} broke before an answer: {why}")
        };
        Failure::new(FailureKind::Connection, message)
    }

    fn no_answer(&self, shown: &[u8]) -> Box<Failure> {
        let text = String::from_utf8_lossy(shown);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = self.peer.clean(classify::cut(&words, 120));
        let (host, section) = (&self.peer.host, &self.peer.section);
        let message = if is_page(&text) {
            // A page stays a page: a portal before the network, a router, an address without its path.
            let words = classify::plain(&text);
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            let words = self.peer.clean(classify::cut(&words, 120));
            let message = format!(
                "{} sent a web page and no chat completion: {words}; is {section}.base_url right (it often ends in /v1), and does the network want a login?",
                self.peer.url
            );
            return Failure::new(FailureKind::Refused, message);
        } else if words.is_empty() {
            format!("{host} sent an empty answer")
        } else {
            format!(
                "{} sent something that is no chat completion: {words}; is {section}.base_url right?",
                self.peer.url
            )
        };
        Failure::new(FailureKind::BadAnswer, message)
    }

    fn stopped(&self, stop: Stop, assembly: Assembly) -> Box<Failure> {
        let host = &self.peer.host;
        let usage = assembly.usage();
        let partial = assembly.partial();
        let kept = if partial.is_some() {
            "; what had arrived is kept"
        } else {
            ""
        };
        let (kind, message) = match stop {
            Stop::Cancelled => (
                FailureKind::Cancelled,
                format!("the request to {host} was cancelled{kept}"),
            ),
            Stop::Stalled(limit) => {
                let seconds = limit.as_secs_f64();
                (
                    FailureKind::Stalled,
                    format!("nothing came from {host} for {seconds} s{kept}"),
                )
            }
            Stop::Broken(why) => {
                let why = self.peer.clean(&why);
                (
                    FailureKind::Connection,
                    format!("the answer of {host} broke off ({why}){kept}"),
                )
            }
        };
        let mut failure = Failure::new(kind, message);
        failure.partial = partial;
        failure.usage = usage;
        failure
    }
}

/// Whether a text is a page for a browser.
fn is_page(text: &str) -> bool {
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let start = classify::cut(start, 512).to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body", "<title", "<script", "<meta"]
        .iter()
        .any(|tag| start.starts_with(tag))
        // Behind a comment or the declaration of XHTML.
        || (start.starts_with("<!--") || start.starts_with("<?xml")) && start.contains("<html")
}

fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}
