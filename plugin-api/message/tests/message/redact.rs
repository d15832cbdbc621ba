//! Secrets leave, everything else stays.

use std::borrow::Cow;

use hermes_message::redact::{PATTERNS, redact, redact_json_strings};
use proptest::prelude::*;

use crate::inputs::recorded;

/// Texts and the part of them that must be gone.
const SECRETS: &[(&str, &str)] = &[
    (
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYFAKEKEY",
        "wJalr",
    ),
    ("export OPENAI_API_KEY='FAKEfake1234'", "FAKEfake"),
    ("DB_PASSWORD=swordfish", "swordfish"),
    ("id AKIAIOSFODNN7EXAMPLE in use", "AKIAIOS"),
    ("https://user:pa55@h/x?token=FAKE", "pa55"),
    ("https://user:pa55@h/x?token=FAKE", "FAKE"),
    ("https://user:pa55@h/x?token=FAKE&a=1", "FAKE"),
    (
        "git clone https://x0123456789abcdefghi@github.com/a/b",
        "x01234",
    ),
    ("postgres://app:s3cr3t!@db:5432/x", "s3cr3t"),
    (
        "-----BEGIN PRIVATE KEY-----\nMIIFAKE1\nMIIFAKE2\nMIIFAKE3\n-----END PRIVATE KEY-----\nafter",
        "MIIFAKE",
    ),
    (
        "-----BEGIN PRIVATE KEY-----\nnot base64 at all\n-----END",
        "base64",
    ),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaFAKE\\n",
        "b3Blb",
    ),
    (
        "b3BlbnNzaC1FAKEKEY\nQyNTUxOQAAACFAKE==\n-----END RSA PRIVATE KEY-----",
        "b3Blb",
    ),
    (
        "{\"headers\":{\"Authorization\":\"Bearer FAKE.JWT.X\"}}",
        "FAKE.JWT.X",
    ),
    ("Authorization: Basic dXNlcjpwYTU1", "dXNlcjp"),
    ("curl -H 'Authorization: token abcdef123'", "abcdef123"),
    ("/compress keep sk-FAKE0000", "sk-FAKE"),
    ("sk-proj-abc_DEF-1234567890abcdef", "abc_DEF"),
    ("ghp_FAKE0123456789abcdefFAKE0123456789", "ghp_"),
    ("github_pat_11FAKE_abcdefgh", "github_pat_"),
    ("xoxb-123456-FAKEfake", "xoxb"),
    ("AIzaSyFAKE0123456789abcdefghijklmnopqrs", "AIza"),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.FAKEsignature",
        "eyJ",
    ),
    ("sk_live_FAKE12345678", "sk_live"),
    ("password: hunter22", "hunter22"),
    ("client_secret = \"correct horse battery\"", "horse"),
    ("{\"api_key\": \"FAKE-FAKE\"}", "FAKE-FAKE"),
    ("{'token': 'abcdefFAKE'}", "abcdefFAKE"),
    (r#""{\"password\":\"hunter22\"}""#, "hunter22"),
    ("glpat-FAKEFAKE1234", "glpat"),
];

/// Texts in which nothing is secret.
const PLAIN: &[&str] = &[
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "550e8400-e29b-41d4-a716-446655440000",
    "{\"message_uid\":\"0123456789abcdef0123456789abcdef\",\"_tool_call_uid\":\"fedcba9876543210fedcba9876543210\"}",
    "c2stdGhpcyBpcyBub3QgYSBrZXkgYnV0IGxvb2tzIGxpa2Ugb25lIDEyMzQ1Njc4OTA=",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    "max_tokens=4096, prompt_tokens: 1204, threshold_tokens = 96000",
    "let token = self.next_token();",
    "fn parse(token: &str, key: &[u8]) -> Option<Token>",
    "token: string; password?: string",
    "the disk-usage-report-2024 and task-12345678",
    "use bearer authentication. A bearer token is needed",
    "export TOKEN=$OTHER_TOKEN PASSWORD=${PW} API_KEY=<your key>",
    "the secret: never give up; keys: many",
    "https://example.com/a?page=2&sort=key#token",
    "mailto:user@example.com git@github.com:a/b.git ssh://host:22/x",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "call_9diWc1DYm4RLmPfHgIaP2wd toolu_01ABCDEF",
    "PRIMARY_KEY = (id, name)",
    "sk-learn, ask-me-anything",
];

// case: 31
#[test]
fn every_kind_of_secret_leaves_and_its_surroundings_stay() {
    for (text, secret) in SECRETS {
        let clean = redact(text);
        assert!(!clean.contains(secret), "{text} became {clean}");
        assert!(clean.contains("[REDACTED]"), "{clean}");
        assert_eq!(redact(&clean), clean, "twice is once");
    }
    assert_eq!(
        redact("a https://user:pa55@h/x?token=FAKE&b=1 c"),
        "a https://user:[REDACTED]@h/x?token=[REDACTED]&b=1 c"
    );
    assert_eq!(
        redact("x\n-----BEGIN PRIVATE KEY-----\nMIIFAKE\n-----END PRIVATE KEY-----\ny"),
        "x\n[REDACTED]\ny"
    );
    assert_eq!(
        redact("AWS_SECRET_ACCESS_KEY=abcd/efgh\nnext"),
        "AWS_SECRET_ACCESS_KEY=[REDACTED]\nnext"
    );
}

// case: 31
#[test]
fn a_secret_split_over_two_texts_leaves_in_both() {
    let first = redact("see -----BEGIN RSA PRIVATE KEY-----\nMIIEpAFAKEFAKE\nQQFAKE");
    let second = redact("FAKEFAKEFAKE/+1\nabcdFAKE==\n-----END RSA PRIVATE KEY----- done");
    assert_eq!((&*first, &*second), ("see [REDACTED]", "[REDACTED] done"));
}

// case: 31
#[test]
fn what_only_looks_like_a_secret_stays() {
    for text in PLAIN {
        assert!(
            matches!(redact(text), Cow::Borrowed(same) if same == *text),
            "{text} became {}",
            redact(text)
        );
    }
}

// case: 31
#[test]
fn json_stays_json_and_named_values_leave_whole() {
    let text = r#"{"url":"x","headers":{"Authorization":"Bearer FAKE.JWT.X","X-Api-Key":"k"},"password" : "a\"b","n":[1.0,"sk-FAKE0000"],"token":{"type":"string"},"key":"\u0073k-FAKE1111","pem":"-----BEGIN PRIVATE KEY-----\nA","z":"-----END"}"#;
    let clean = redact_json_strings(text);
    assert_eq!(
        clean,
        r#"{"url":"x","headers":{"Authorization":"[REDACTED]","X-Api-Key":"[REDACTED]"},"password" : "[REDACTED]","n":[1.0,"[REDACTED]"],"token":{"type":"string"},"key":"[REDACTED]","pem":"[REDACTED]","z":"-----END"}"#
    );
    assert_eq!(redact_json_strings(&clean), clean);
    assert!(matches!(
        redact_json_strings(r#"{"a":"b"}"#),
        Cow::Borrowed(_)
    ));
    assert_eq!(
        redact_json_strings("{broken TOKEN=abcd1234"),
        "{broken TOKEN=[REDACTED]"
    );
}

// case: 31
#[test]
fn secrets_inside_written_json_leave_and_it_stays_json() {
    let inner = r#"{"password":"hunter22","h":"Authorization: Basic dXNlcjpwYTU1","k":"-----BEGIN PRIVATE KEY-----\nMIIFAKE\n-----END PRIVATE KEY-----"}"#;
    let outer = serde_json::json!({ "arguments": inner }).to_string();
    for clean in [redact(&outer), redact_json_strings(&outer)] {
        let value: serde_json::Value = serde_json::from_str(&clean).expect("JSON");
        let inner = value["arguments"].as_str().expect("text");
        assert!(
            !["hunter22", "dXNlcjp", "MIIFAKE"]
                .iter()
                .any(|secret| inner.contains(secret)),
            "{inner}"
        );
        serde_json::from_str::<serde_json::Value>(inner).expect("the inner text, too");
    }
}

#[test]
fn ordinary_conversations_are_left_alone() {
    for (name, bytes) in recorded() {
        let file = hermes_message::format::read(&bytes).expect(&name);
        let (mut touched, mut all) = (0, 0);
        for message in file.conversations.iter().flat_map(|c| &c.messages) {
            let text = message.text();
            all += 1;
            if let Cow::Owned(clean) = redact(&text) {
                touched += 1;
                let at = clean.find("[REDACTED]").unwrap_or(0);
                let around: String = clean[clean.floor_char_boundary(at.saturating_sub(40))..]
                    .chars()
                    .take(60)
                    .collect();
                println!("{name}: {around:?}");
            }
        }
        println!("{name}: {touched} of {all} messages touched");
        assert!(touched * 50 <= all, "{name}: {touched} of {all}");
    }
}

proptest! {
    // case: 31
    #[test]
    fn a_secret_leaves_wherever_it_stands(before in "[ -~\n]{0,40}", after in "[ \n.,;)\"'][ -~\n]{0,40}") {
        let text = format!("{before} ghp_FAKE0123456789abcdef{after}");
        prop_assert!(!redact(&text).contains("FAKE0123456789abcdef"));
    }

    #[test]
    fn no_text_makes_it_panic_and_twice_is_once(text in "(\\PC|\n|KEY=|token=|://|:|@|-----BEGIN PRIVATE KEY-----|-----END|\"|\\\\){0,30}") {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once), once.as_str());
        let quoted = serde_json::json!({ "password": text, "a": text }).to_string();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&redact_json_strings(&quoted)).is_ok());
    }
}

#[test]
fn the_list_of_patterns_is_documented() {
    assert!(PATTERNS.iter().all(|pattern| !pattern.name.is_empty()));
}
