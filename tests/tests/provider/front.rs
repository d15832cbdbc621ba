//! What comes of a provider's answers at the front door: `hermes chat -q`.

use hermes_tests::{Behaviour, FakeProvider, Home};
use serde_json::Value;

/// The program's answer to a question, as JSON, and what it says beside it.
fn asked(home: &Home, more: &[&str]) -> (Value, String) {
    let output = home
        .command()
        .args(["chat", "-q", "hello", "--json"])
        .args(more)
        .current_dir(home.outside())
        // Retries come at once.
        .env("HERMES_RETRY_SCALE", "0.001")
        .output()
        .expect("hermes runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (value, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_web_page_in_place_of_an_answer_is_asked_for_once() {
    let server = FakeProvider::start();
    let home = Home::new();
    home.config(&server.config(100_000));
    for page in [
        "<html><body>Welcome to the <b>router</b></body></html>",
        "\n  <!DOCTYPE html>\n<title>Login to the router</title>",
        "\u{feff}<!-- made by hand --><HTML>router</HTML>",
        "<?xml version=\"1.0\"?><html>router</html>",
    ] {
        server.default(Behaviour::status(200, page).header("Content-Type", "text/html"));
        let (value, said) = asked(&home, &[]);
        assert_eq!(value["outcome"], "failed", "{page}: {value}");
        let told = format!("{value}{said}");
        assert!(
            told.contains("is model.base_url right") && told.contains("router"),
            "{page}: {told}"
        );
        assert!(!told.contains("<b>"), "{told}");
        assert_eq!(server.take_requests().len(), 1, "{page}");
    }
    // Whereas an answer that is empty may well come right.
    server.push(Behaviour::status(200, ""));
    server.push(Behaviour::text("fine"));
    assert_eq!(asked(&home, &[]).0["answer"], "fine");
}
