//! Lines of a file from one number to another, read as a stream: neither the file nor a line is ever held whole.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read};

use crate::provider::Cancel;

/// How far into a file a call reads at most, in bytes.
pub(super) const REACH: u64 = 64 << 20;

/// Characters of one line that are shown at most.
pub(super) const WIDEST_LINE: usize = 2_000;

/// Bytes of text that a page holds at most, give or take one line.
const PAGE: usize = 64 << 10;

/// The part of a file that is looked at to tell text from other data.
const SAMPLE: usize = 8 << 10;

/// Which lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The first one, from 1.
    pub(super) first: u64,
    /// How many.
    pub(super) lines: u64,
}

/// The lines that were read.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// `number|text`, one a line.
    pub(super) content: String,
    /// How many.
    pub(super) lines: u64,
    /// The last line of the file is among them.
    pub(super) at_end: bool,
    /// Something of a line is missing.
    pub(super) cut: Option<Cut>,
    /// Bytes were replaced.
    pub(super) invalid: bool,
    /// A line ended in CR LF.
    pub(super) crlf: bool,
}

/// Why a line is not shown whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It is wider than [`WIDEST_LINE`].
    Long,
    /// [`REACH`] was reached in it, or before it.
    Endless,
}

/// Why there is no page.
#[derive(Debug)]
pub(super) enum Stop {
    Interrupted,
    TooFar,
    PastEnd { lines: u64 },
    Binary(&'static str),
    Io(io::Error),
}

/// Reads the wanted lines.
pub(super) fn read(file: impl Read, wanted: Wanted, cancel: &Cancel) -> Result<Page, Stop> {
    let mut lines = Lines {
        reader: BufReader::with_capacity(SAMPLE, file),
        read: 0,
        cancel,
    };
    lines.begin()?;
    let mut skipped = 0;
    while skipped < wanted.first - 1 {
        match lines.next(0, &mut Vec::new())? {
            Line::None if skipped == 0 => return Ok(Page::default().ended()),
            Line::None => return Err(Stop::PastEnd { lines: skipped }),
            Line::Endless => return Err(Stop::TooFar),
            Line::Whole { .. } => skipped += 1,
        }
    }
    let mut page = Page::default();
    let mut line = Vec::new();
    while page.lines < wanted.lines && page.content.len() < PAGE {
        line.clear();
        // Every character has at most four bytes, and two more may belong to the line's end.
        match lines.next(WIDEST_LINE * 4 + 2, &mut line)? {
            Line::None if page.lines == 0 && skipped > 0 => {
                return Err(Stop::PastEnd { lines: skipped });
            }
            Line::None => return Ok(page.ended()),
            Line::Endless if line.is_empty() && page.lines == 0 => return Err(Stop::TooFar),
            Line::Endless => {
                if !line.is_empty() {
                    page.push(wanted.first, &line, u64::MAX)?;
                }
                page.cut = Some(Cut::Endless);
                return Ok(page);
            }
            Line::Whole { length } => page.push(wanted.first, &line, length)?,
        }
    }
    page.at_end = lines.fill()?.is_empty();
    Ok(page)
}

impl Page {
    fn ended(mut self) -> Self {
        self.at_end = true;
        self
    }

    /// Adds a line of which the first bytes are given.
    fn push(&mut self, first: u64, bytes: &[u8], length: u64) -> Result<(), Stop> {
        if bytes.contains(&0) {
            return Err(Stop::Binary("binary data"));
        }
        let whole = u64::try_from(bytes.len()).is_ok_and(|held| held == length);
        let bytes = match bytes.strip_suffix(b"\r") {
            Some(rest) if whole => {
                self.crlf = true;
                rest
            }
            _ => bytes,
        };
        let text = String::from_utf8_lossy(bytes);
        // The end of a cut line may be half a character, which says nothing about the file.
        self.invalid |= match std::str::from_utf8(bytes) {
            Ok(_) => false,
            Err(error) => whole || error.error_len().is_some(),
        };
        let number = first + self.lines;
        let _ = write!(self.content, "{number}|");
        match text.char_indices().nth(WIDEST_LINE) {
            None => self.content.push_str(&text),
            Some((at, _)) => {
                self.content.push_str(&text[..at]);
                self.content.push('…');
                self.cut = Some(Cut::Long);
            }
        }
        self.content.push('\n');
        self.lines += 1;
        Ok(())
    }
}

enum Line {
    None,
    /// Its length in bytes without the line feed.
    Whole {
        length: u64,
    },
    /// It does not end within reach.
    Endless,
}

struct Lines<'a, R> {
    reader: BufReader<R>,
    read: u64,
    cancel: &'a Cancel,
}

impl<R: Read> Lines<'_, R> {
    /// Looks at the first bytes, and passes over a byte order mark.
    fn begin(&mut self) -> Result<(), Stop> {
        let sample = self.fill()?;
        if sample.starts_with(b"\xff\xfe") || sample.starts_with(b"\xfe\xff") {
            return Err(Stop::Binary("UTF-16 (search_files can search it)"));
        }
        if sample.contains(&0) {
            return Err(Stop::Binary("binary data"));
        }
        if sample.starts_with(b"\xef\xbb\xbf") {
            self.consume(3);
        }
        Ok(())
    }

    /// The next line: its first `keep` bytes go to `into`.
    fn next(&mut self, keep: usize, into: &mut Vec<u8>) -> Result<Line, Stop> {
        let mut length = 0_u64;
        loop {
            if self.read >= REACH {
                return Ok(Line::Endless);
            }
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Ok(match length {
                    0 => Line::None,
                    _ => Line::Whole { length },
                });
            }
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = keep - into.len().min(keep);
            into.extend_from_slice(&part[..part.len().min(room)]);
            length += u64::try_from(part.len()).unwrap_or(u64::MAX);
            let used = part.len() + usize::from(end.is_some());
            self.consume(used);
            if end.is_some() {
                return Ok(Line::Whole { length });
            }
        }
    }

    fn fill(&mut self) -> Result<&[u8], Stop> {
        if self.cancel.is_cancelled() {
            return Err(Stop::Interrupted);
        }
        loop {
            match self.reader.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Io(error)),
            }
        }
        Ok(self.reader.buffer())
    }

    fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.read += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
}
