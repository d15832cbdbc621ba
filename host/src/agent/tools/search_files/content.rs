//! One file, line by line.

use std::fs::File;
use std::io::{self, Read};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use serde_json::{Value, json};

use super::budget::{Budget, Stop};

/// Bytes that are read of one file.
const REACH: usize = 128 << 20;

/// A line may be this long; its file is left there otherwise.
const LONGEST_LINE: usize = 1 << 20;

/// Characters that are shown of a matching line.
const WIDEST: usize = 400;

/// Bytes that are shown before the match in a line that is wider.
const BEFORE: usize = 100;

/// How far one file was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Searched {
    Whole,
    Part,
    Binary,
    LongLine,
    Unreadable,
}

/// Searches a file and adds its matches. Those of a file that turns out to be binary are dropped again.
pub(super) fn search(
    pattern: &RegexMatcher,
    file: File,
    path: &str,
    budget: &Budget,
    matches: &mut Vec<Value>,
) -> (Searched, Result<(), Stop>) {
    let before = matches.len();
    let mut reader = Metered {
        file,
        budget,
        left: REACH,
        stopped: None,
        failed: false,
    };
    let mut hits = Hits {
        pattern,
        path,
        budget,
        matches,
        binary: false,
        stopped: None,
    };
    let outcome = searcher().search_reader(pattern, &mut reader, &mut hits);
    let Hits {
        binary, stopped, ..
    } = hits;
    if binary {
        budget.give_back(matches.len() - before);
        matches.truncate(before);
    }
    let stopped = reader.stopped.or(stopped);
    let searched = match outcome {
        _ if binary => Searched::Binary,
        _ if stopped.is_some() => Searched::Whole,
        Ok(()) if reader.left == 0 => Searched::Part,
        Ok(()) => Searched::Whole,
        Err(_) if reader.failed => Searched::Unreadable,
        // All that is left is a line that does not fit.
        Err(_) => Searched::LongLine,
    };
    (searched, stopped.map_or(Ok(()), Err))
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST_LINE))
        .build()
}

/// A file that is read within the budget.
struct Metered<'a> {
    file: File,
    budget: &'a Budget,
    left: usize,
    stopped: Option<Stop>,
    failed: bool,
}

impl Read for Metered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(self.left);
        let read = match self.file.read(&mut into[..most]) {
            Ok(read) => read,
            Err(error) => {
                self.failed = error.kind() != io::ErrorKind::Interrupted;
                return Err(error);
            }
        };
        self.left -= read;
        match self
            .budget
            .check()
            .and_then(|()| self.budget.spend_bytes(read))
        {
            Ok(()) => Ok(read),
            Err(stop) => {
                self.stopped = Some(stop);
                Err(io::Error::other("the search ends here"))
            }
        }
    }
}

/// Keeps the matches of one file.
struct Hits<'a> {
    pattern: &'a RegexMatcher,
    path: &'a str,
    budget: &'a Budget,
    matches: &'a mut Vec<Value>,
    binary: bool,
    stopped: Option<Stop>,
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.bytes();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let at = self.pattern.find(line).ok().flatten();
        let text = clip(line, at.map_or(0, |at| at.start()));
        if let Err(stop) = self.budget.spend_match(text.len() + self.path.len()) {
            self.stopped = Some(stop);
            return Ok(false);
        }
        let line = found.line_number();
        self.matches
            .push(json!({"path": self.path, "line": line, "text": text}));
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}

/// The part of a line around a place, short enough to be shown.
fn clip(line: &[u8], at: usize) -> String {
    let from = if line.len() <= WIDEST {
        0
    } else {
        at.saturating_sub(BEFORE)
    };
    // Not in the middle of a character.
    let from = (from..line.len())
        .find(|at| line[*at] & 0b1100_0000 != 0b1000_0000)
        .unwrap_or(from);
    // Every character has at most four bytes.
    let to = line.len().min(from + WIDEST * 4);
    let text = String::from_utf8_lossy(&line[from..to]);
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => {
            shown.push_str(&text[..end]);
            shown.push('…');
        }
        None => {
            shown.push_str(&text);
            if to < line.len() {
                shown.push('…');
            }
        }
    }
    shown
}
