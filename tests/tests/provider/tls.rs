//! Certificates are checked, and those that the system trusts are taken.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use hermes::provider::{Cancel, FailureKind, HttpOptions, HttpProvider, Provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Names the file of the authority to a child process of this test.
const AUTHORITY: &str = "HERMES_TEST_TLS_URL";

// One test twice: in this process, whose system knows nothing of the authority, and in a child that trusts it.
#[test]
fn only_a_trusted_server_gets_a_request() {
    if let Ok(url) = std::env::var(AUTHORITY) {
        let reply = ask(&url).expect("a trusted server answers");
        assert_eq!(reply, "hello over tls");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    if let Err(why) = make_certificates(folder.path()) {
        eprintln!("skipped: openssl makes no certificates here: {why}");
        return;
    }
    let url = serve(folder.path());
    let failure = ask(&url).expect_err("nobody has vouched for it");
    assert_eq!(failure.kind, FailureKind::Connection, "{failure}");
    assert!(
        failure.message.to_lowercase().contains("certificate"),
        "{failure}"
    );
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "tls::only_a_trusted_server_gets_a_request",
            "--nocapture",
        ])
        .env(AUTHORITY, &url)
        .env("SSL_CERT_FILE", folder.path().join("ca.pem"))
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("a child");
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

fn ask(url: &str) -> Result<String, Box<hermes::provider::Failure>> {
    let provider = HttpProvider::new(HttpOptions::new(url)).expect("a provider");
    let body = format!("{{\"messages\":[],{}}}", provider.parameters());
    let reply = provider.send(&body, &Cancel::new(), &mut |_| {})?;
    Ok(reply.message.text().into_owned())
}

fn make_certificates(folder: &Path) -> Result<(), String> {
    let run = |arguments: &str| {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(folder)
            .output()
            .map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(told)
    };
    std::fs::write(
        folder.join("names"),
        "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
    )
    .map_err(|error| error.to_string())?;
    run(
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority",
    )?;
    run("req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=test-server")?;
    run(
        "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 2 -extfile names",
    )
}

/// A server that answers every connection once, until the test ends.
fn serve(folder: &Path) -> String {
    let certificate =
        CertificateDer::from_pem_file(folder.join("leaf.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(folder.join("leaf.key")).expect("a key");
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a usable pair");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/v1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut tls = StreamOwned::new(connection, stream);
            let mut request = [0; 4096];
            // A client that refuses the certificate sends nothing.
            if tls.read(&mut request).is_ok_and(|length| length > 0) {
                let body = r#"{"choices":[{"message":{"content":"hello over tls"},"finish_reason":"stop"}]}"#;
                let _ = write!(
                    tls,
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                let _ = tls.flush();
            }
        }
    });
    url
}
