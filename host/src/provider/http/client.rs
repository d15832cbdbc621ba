//! The HTTP client of one address.

use std::time::Duration;

use reqwest::redirect::Policy;

use crate::provider::names;

/// Makes a client. For `http:` it reads no certificates, which is most of what making one costs.
pub(super) fn client(base: &str, connect: Duration) -> Result<reqwest::Client, String> {
    // The first one stays; a program that has chosen another one keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("hermes/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_nodelay(true)
        .pool_idle_timeout(Duration::from_secs(60))
        // A redirect would carry the key and the conversation to an address that nobody has named.
        .redirect(Policy::none());
    if base.starts_with("http:") {
        builder = builder.tls_certs_only([]);
    }
    if names::is_local(base) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        format!(
            "{}; are the system's certificates installed (ca-certificates), or SSL_CERT_FILE set?",
            chain(&error)
        )
    })
}

/// An error and its causes, without repetition.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}
