//! When to try again.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::Failure;

/// How often and how patiently a failed request is sent again.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How many times at most.
    pub retries: u32,
    /// The first wait; each further one is twice as long.
    pub first: Duration,
    /// The longest wait of our own choosing.
    pub longest: Duration,
    /// The longest wait that a provider may ask for. If it asks for more, nobody waits: the failure's sentence says
    /// when to come back.
    pub ceiling: Duration,
    /// Every wait is multiplied by this; tests set it to something small.
    pub scale: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 4,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            ceiling: Duration::from_secs(120),
            scale: 1.0,
        }
    }
}

impl RetryPolicy {
    /// The default, with the environment's `HERMES_RETRY_SCALE` (a factor for every wait) and `HERMES_RETRIES`.
    #[must_use]
    pub fn from_env() -> Self {
        let read = |name| std::env::var(name).ok();
        let mut policy = Self::default();
        if let Some(scale) = read("HERMES_RETRY_SCALE").and_then(|text| text.trim().parse().ok())
            && (0.0..=1000.0).contains(&scale)
        {
            policy.scale = scale;
        }
        if let Some(retries) = read("HERMES_RETRIES").and_then(|text| text.trim().parse().ok()) {
            policy.retries = retries;
        }
        policy
    }

    /// How long to wait before retry number `attempt` (from 0) of a request that failed like this; `None`: do not.
    #[must_use]
    pub fn wait(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if attempt >= self.retries || !failure.kind.is_transient() {
            return None;
        }
        let own = self
            .first
            .saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX))
            .min(self.longest);
        // Half of it is chance, so that agents that failed together do not come back together.
        let own = own.mul_f64(0.5 + fastrand::f64() / 2.0);
        let wait = match failure.retry_after {
            Some(asked) if asked > self.ceiling => return None,
            // A little later than asked, for the same reason; never earlier.
            Some(asked) => asked.saturating_add(own.mul_f64(0.1)),
            None => own,
        };
        Some(Duration::try_from_secs_f64(wait.as_secs_f64() * self.scale).unwrap_or(wait))
    }
}

/// [`RetryPolicy::wait`] of the process's policy.
#[must_use]
pub fn wait(attempt: u32, failure: &Failure) -> Option<Duration> {
    static POLICY: OnceLock<RetryPolicy> = OnceLock::new();
    POLICY
        .get_or_init(RetryPolicy::from_env)
        .wait(attempt, failure)
}

/// What `Retry-After` asks for: seconds, with or without a fraction, or a date.
pub(super) fn asked(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return seconds_of(seconds);
    }
    let then = httpdate::parse_http_date(value).ok()?;
    // A date that has passed says: now.
    Some(then.duration_since(now).unwrap_or_default())
}

/// A number of seconds, unless it is none.
pub(super) fn seconds_of(seconds: f64) -> Option<Duration> {
    if !seconds.is_finite() || seconds < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// A wait in the words of a sentence: `20 s`, `3 min`, `2 h`.
pub(super) fn in_words(wait: Duration) -> String {
    let seconds = wait
        .as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0));
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        7200..=172_799 => format!("{} h", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::FailureKind;

    fn failure(kind: FailureKind, retry_after: Option<u64>) -> Failure {
        let mut failure = *Failure::new(kind, "x");
        failure.retry_after = retry_after.map(Duration::from_secs);
        failure
    }

    #[test]
    fn waits_grow_and_end() {
        let policy = RetryPolicy::default();
        let lost = failure(FailureKind::Connection, None);
        let mut ceiling = Duration::from_secs(1);
        for attempt in 0..4 {
            for _ in 0..50 {
                let wait = policy.wait(attempt, &lost).expect("a wait");
                assert!(
                    wait <= ceiling && wait >= ceiling / 2,
                    "{attempt}: {wait:?}"
                );
            }
            ceiling *= 2;
        }
        assert_eq!(policy.wait(4, &lost), None);
        assert_eq!(policy.wait(u32::MAX, &lost), None);
        let many = RetryPolicy {
            retries: u32::MAX,
            ..RetryPolicy::default()
        };
        assert!(many.wait(1000, &lost).expect("a wait") <= many.longest);
    }

    #[test]
    fn what_again_would_not_change_is_not_tried_again() {
        let policy = RetryPolicy::default();
        for kind in [
            FailureKind::Auth,
            FailureKind::Blocked,
            FailureKind::Refused,
            FailureKind::Quota,
            FailureKind::Cancelled,
            FailureKind::Overflow {
                limit: None,
                requested: None,
                payload: false,
            },
        ] {
            assert_eq!(policy.wait(0, &failure(kind, None)), None);
        }
    }

    #[test]
    fn a_provider_s_wish_is_kept_up_to_the_ceiling() {
        let policy = RetryPolicy::default();
        let wait = |seconds| policy.wait(0, &failure(FailureKind::RateLimited, Some(seconds)));
        let seven = wait(7).expect("a wait");
        assert!((7.0..7.2).contains(&seven.as_secs_f64()), "{seven:?}");
        assert!(wait(120).is_some());
        assert_eq!(wait(121), None);
        let quick = RetryPolicy {
            scale: 0.001,
            ..RetryPolicy::default()
        };
        let wait = quick.wait(0, &failure(FailureKind::RateLimited, Some(7)));
        assert!(wait.expect("a wait") < Duration::from_millis(10));
    }

    #[test]
    fn seconds_and_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let ask = |text: &str| asked(text, now);
        assert_eq!(ask(" 20 "), Some(Duration::from_secs(20)));
        assert_eq!(ask("0.5"), Some(Duration::from_millis(500)));
        let later = httpdate::fmt_http_date(now + Duration::from_secs(90));
        assert_eq!(ask(&later), Some(Duration::from_secs(90)));
        let past = httpdate::fmt_http_date(now - Duration::from_secs(90));
        assert_eq!(ask(&past), Some(Duration::ZERO));
        for odd in ["-1", "NaN", "soon", ""] {
            assert_eq!(ask(odd), None, "{odd}");
        }
        assert_eq!(ask("1e300"), Some(Duration::MAX));
        assert_eq!(in_words(Duration::from_millis(1500)), "2 s");
        assert_eq!(in_words(Duration::from_secs(150)), "3 min");
        assert_eq!(in_words(Duration::from_secs(7201)), "3 h");
        assert!(in_words(Duration::MAX).ends_with("days"));
    }
}
