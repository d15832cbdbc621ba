//! The system message of a new session.

use std::path::Path;

/// The text that a new session begins with. It is written to the session and never made again, so that the front of
/// every request stays the same bytes.
pub(crate) fn default(directory: &Path, tools: bool) -> String {
    let mut text = String::from(
        "You are Hermes, a helpful assistant on a command line. Answer directly and briefly; say so when you do not know.",
    );
    if tools {
        text.push_str(
            " You can read files and search in the working directory with your tools. Look before you claim what a file says.",
        );
    }
    text.push_str(&format!("\nWorking directory: {}", directory.display()));
    text
}
