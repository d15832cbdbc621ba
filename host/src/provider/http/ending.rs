//! What comes behind the last word of an answer: the end of its body, and nothing else.
//!
//! A connection can carry the next request only when the body before has been read to its end. Servers send that end
//! together with the last word, or some time after it.

use std::time::Duration;

use reqwest::Response;

/// How long the answer is held back for it. Mostly it is there already, and the next request finds the connection.
const AT_ONCE: Duration = Duration::from_millis(5);
/// How long it is waited for in the background. A server that takes longer costs a new connection.
const LATER: Duration = Duration::from_secs(5);
/// So much may come behind the last word; more is a server that does not stop.
const LONGEST: usize = 256 << 10;

/// Reads a response to its end: for a moment here, and then in a task of its own. Runs inside the runtime.
pub(super) async fn read(mut response: Response) {
    let mut left = LONGEST;
    if tokio::time::timeout(AT_ONCE, rest(&mut response, &mut left))
        .await
        .is_err()
    {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(LATER, rest(&mut response, &mut left)).await;
        });
    }
}

/// Reads until the end, an error, or more than there can be.
async fn rest(response: &mut Response, left: &mut usize) {
    while let Ok(Some(part)) = response.chunk().await {
        match left.checked_sub(part.len()) {
            Some(less) => *left = less,
            None => return,
        }
    }
}
