//! What a secret looks like.

use std::sync::LazyLock;

use regex::Regex;

use super::compile;

/// One shape of secret.
#[derive(Debug)]
pub struct Pattern {
    /// What it finds.
    pub name: &'static str,
    /// Group `v` is the secret; what stands around it stays.
    pub(super) regex: &'static str,
    /// A second look at the secret, for what a regular expression says badly.
    pub(super) is_secret: fn(&str) -> bool,
}

/// Words without one of which a text has no secret. Cheap to look for, and rare.
pub(super) const HINTS: &str = r"(?i)pass|pwd|secret|token|key|credential|auth|bearer|://|eyJ|sk-|sk_|rk_|gh[opsur]_|github_pat|glpat-|xox|xapp-|akia|asia|aiza|ya29|gocspx|npm_|pypi-|hf_|gsk_|sg\.|whsec_|dop_v1|nvapi-|:AA|sig=|signature|code=";

/// Names whose value is a secret, in lower case and any of the usual spellings.
macro_rules! names {
    () => {
        r"(?:password|passwd|passphrase|passwort|pwd|secret|client[_-]?secret|secret[_-]?key|secret[_-]?access[_-]?key|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|token|(?:access|refresh|auth|session|id|bot|api|bearer)[_-]?token|credentials?)"
    };
}

/// Word boundaries are ASCII ones, `(?-u:\b)`: Unicode's would send every text with a letter beyond ASCII to the slowest
/// of the matching engines.
///
/// Everything that [`super::redact`] looks for beside private keys. What has a name comes first: the name
/// says where its secret ends, a shape may see only a part of it.
pub static PATTERNS: &[Pattern] = &[
    Pattern {
        name: "Bearer tokens",
        regex: r"(?i)(?-u:\b)bearer(?:\s|%20)+(?P<v>[A-Za-z0-9_~+/-][A-Za-z0-9._~+/=-]{5,})",
        is_secret: is_no_word,
    },
    Pattern {
        name: "Authorization headers",
        regex: r#"(?i)(?-u:\b)authorization\\?["']?\s*[:=]\s*\\?["']?(?:basic|digest|token|apikey|negotiate)\s+(?P<v>[^\s"'\\,;]{4,})"#,
        is_secret: any,
    },
    Pattern {
        name: "passwords in URLs",
        regex: r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:"'<>\\?#]*:(?P<v>[^\s/@"'<>\\]+)@"#,
        is_secret: is_no_reference,
    },
    Pattern {
        name: "tokens in the place of a URL's user",
        regex: r#"[A-Za-z][A-Za-z0-9+.-]*://(?P<v>[A-Za-z0-9_~.-]{16,})@"#,
        is_secret: has_digit,
    },
    Pattern {
        name: "secret query parameters",
        regex: r##"(?i)[?&;](?:access_token|refresh_token|id_token|auth_token|token|api[_-]?key|key|secret|client_secret|password|passwd|pwd|sig|signature|auth|code|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature)=(?P<v>[^&\s"'<>#\\)\]]{3,})"##,
        is_secret: is_no_reference,
    },
    Pattern {
        name: "assignments to environment variables (API_KEY=…, TOKEN=…, PASSWORD=…)",
        regex: r#"(?-u:\b)(?:[A-Z0-9]+_)*(?:[A-Z0-9]*KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIALS?)(?:_[A-Z0-9]+)?\s?=\s?\\?["']?(?P<v>[^\s"'`,;<>\\\[\](){}]{4,})"#,
        is_secret: is_no_reference,
    },
    Pattern {
        name: "quoted values of secret names (\"password\": \"…\")",
        regex: concat!(
            r"(?i)(?:(?-u:\b)|_)",
            names!(),
            r#"\\?["']?\s*(?::|=|=>|:=)\s*"(?P<v>[^"\\\n]{4,})""#
        ),
        is_secret: is_no_reference,
    },
    Pattern {
        name: "the same in single quotes",
        regex: concat!(
            r"(?i)(?:(?-u:\b)|_)",
            names!(),
            r#"\\?["']?\s*(?::|=|=>|:=)\s*'(?P<v>[^'\\\n]{4,})'"#
        ),
        is_secret: is_no_reference,
    },
    Pattern {
        name: "the same inside written JSON",
        regex: concat!(
            r"(?i)(?:(?-u:\b)|_)",
            names!(),
            r#"\\+"\s*:\s*\\+"(?P<v>[^"\\\n]{4,})\\+""#
        ),
        is_secret: is_no_reference,
    },
    Pattern {
        name: "unquoted values of secret names (password: hunter22, token=a1b2c3)",
        regex: concat!(
            r"(?i)(?:(?-u:\b)|_)",
            names!(),
            r#"\s*[:=]\s*(?P<v>[^\s"'`,;<>&|\\\[\](){}*$=:]{4,}[^\s"'`,;<>&|\\\[\](){}]*)"#
        ),
        is_secret: is_no_code,
    },
    Pattern {
        name: "Amazon access key ids",
        regex: r"(?-u:\b)(?P<v>(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ABIA|ACCA)[A-Z0-9]{12,})(?-u:\b)",
        is_secret: any,
    },
    Pattern {
        name: "keys of model providers (sk-…, gsk_…, xai-…, hf_…, nvapi-…, pplx-…)",
        regex: r"(?-u:\b)(?P<v>(?:sk|xai|pplx|nvapi|tvly)-[A-Za-z0-9_-]{8,}|(?:gsk|hf|r8)_[A-Za-z0-9]{20,})",
        is_secret: has_digit,
    },
    Pattern {
        name: "tokens of code hosts (ghp_…, github_pat_…, glpat-…, npm_…, pypi-…)",
        regex: r"(?-u:\b)(?P<v>gh[opsur]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}|glpat-[A-Za-z0-9_-]{8,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,})",
        is_secret: any,
    },
    Pattern {
        name: "Slack and Telegram tokens (xox…, xapp-…, 123456:AA…)",
        regex: r"(?-u:\b)(?P<v>xox[abceoprs]-[A-Za-z0-9-]{6,}|xapp-[A-Za-z0-9-]{8,}|[0-9]{6,12}:AA[A-Za-z0-9_-]{30,})",
        is_secret: any,
    },
    Pattern {
        name: "Google keys and tokens (AIza…, ya29.…, GOCSPX-…)",
        regex: r"(?-u:\b)(?P<v>AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,})",
        is_secret: any,
    },
    Pattern {
        name: "keys of payment, mail and cloud services (sk_live_…, whsec_…, SG.…, dop_v1_…)",
        regex: r"(?-u:\b)(?P<v>[sr]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/]{16,}|SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|dop_v1_[a-f0-9]{32,})",
        is_secret: any,
    },
    Pattern {
        name: "JSON web tokens",
        regex: r"(?-u:\b)(?P<v>eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?)",
        is_secret: any,
    },
];

static NAME: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"(?i)^(?:[a-z0-9]+[_.-])*",
        names!(),
        r"$|(?i)^(?:proxy-)?authorization$|(?i)^x-api-key$"
    ))
});

/// Whether a key of an object says that its value is a secret.
pub(super) fn names_a_secret(key: &str) -> bool {
    NAME.is_match(key)
}

fn any(_: &str) -> bool {
    true
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

/// `bearer token`, `bearer authentication.`: words, not a secret.
fn is_no_word(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',', '-']);
    has_digit(text)
        || text.contains(['.', '_', '+', '/', '='])
        || text.bytes().any(|b| b.is_ascii_uppercase())
}

/// `$TOKEN`, `${TOKEN}`, `<your key>`, `***`, `%s`, `{token}`: a place for a secret, not one.
fn is_no_reference(text: &str) -> bool {
    let is_reference =
        text.starts_with(['$', '<', '{', '%', '*']) || text.contains("...") || text.contains('…');
    !is_reference
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "none" | "null" | "true" | "false" | "string" | "undefined" | "required"
        )
}

/// `token: string`, `token = next_token`, `self.password`: code and prose, not a secret. What remains has
/// digits, or letters of both cases with a mark between.
fn is_no_code(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',', '?', '!']);
    let is_path = text.contains('.')
        && text
            .split('.')
            .all(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_'));
    let is_number = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'.' || b == b'_');
    is_no_reference(text) && !is_path && !is_number && text.len() >= 4 && has_digit(text)
}
