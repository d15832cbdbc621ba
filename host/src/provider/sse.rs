//! Server-sent events, from bytes in any portions.
//!
//! Forgiving where servers err: an event without the blank line behind it still counts when the stream ends, a bare
//! JSON object on a line of its own is taken for data, and bytes that are no UTF-8 become U+FFFD.

use memchr::memchr2;

/// An event longer than this is no answer of a model.
const LONGEST: usize = 64 << 20;

/// The state between two portions.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: String,
    has_data: bool,
    after_cr: bool,
    begun: bool,
    mended: bool,
    too_long: bool,
}

impl Events {
    /// Takes a portion; `on` gets the data of every event that is complete with it.
    pub(super) fn feed(&mut self, mut bytes: &[u8], on: &mut impl FnMut(&str)) {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.keep(bytes);
                return;
            };
            self.keep(&bytes[..end]);
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(on);
        }
    }

    /// The stream has ended: what is left counts as a line and an event.
    pub(super) fn end(&mut self, on: &mut impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.end_line(on);
        }
        self.dispatch(on);
    }

    /// Whether some bytes were no UTF-8.
    pub(super) fn mended(&self) -> bool {
        self.mended
    }

    /// Whether an event was longer than any answer can be; it is left out.
    pub(super) fn too_long(&self) -> bool {
        self.too_long
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + self.data.len() + bytes.len() > LONGEST {
            self.too_long = true;
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, on: &mut impl FnMut(&str)) {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        if matches!(line, std::borrow::Cow::Owned(_)) {
            self.mended = true;
        }
        let mut line = &*line;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.trim_start_matches('\u{feff}');
        }
        if line.is_empty() {
            self.dispatch(on);
        } else if line.starts_with('{') {
            // Some servers put an error into the stream without any framing.
            self.dispatch(on);
            on(line);
        } else if let Some(data) = line.strip_prefix("data:") {
            if self.has_data {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            self.has_data = true;
        }
        // Comments, `event:`, `id:` and `retry:` say nothing that matters here.
        let mut bytes = bytes;
        bytes.clear();
        self.line = bytes;
    }

    fn dispatch(&mut self, on: &mut impl FnMut(&str)) {
        if std::mem::take(&mut self.has_data) {
            on(&self.data);
            self.data.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(portions: &[&[u8]]) -> (Vec<String>, Events) {
        let mut events = Events::default();
        let mut found = Vec::new();
        let mut on = |data: &str| found.push(data.to_owned());
        for portion in portions {
            events.feed(portion, &mut on);
        }
        events.end(&mut on);
        (found, events)
    }

    #[test]
    fn every_way_to_end_a_line_and_every_cut_gives_the_same_events() {
        let text = "\u{feff}: hello\r\n\r\ndata: a\r\n\r\ndata:b\rdata: c\r\revent: x\ndata: \u{e4}\n\ndata: half";
        let want = ["a", "b\nc", "\u{e4}", "half"];
        assert_eq!(all(&[text.as_bytes()]).0, want);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(all(&bytes).0, want);
        for cut in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(cut);
            assert_eq!(all(&[a, b]).0, want, "cut at {cut}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_told() {
        let (found, events) = all(&[b"data: a\xff", b"\xe4b\n\n"]);
        assert_eq!(found, ["a\u{fffd}\u{fffd}b"]);
        assert!(events.mended());
        assert!(!all(&["data: \u{e4}".as_bytes()]).1.mended());
    }

    #[test]
    fn a_bare_object_is_data() {
        let (found, _) = all(&[b"data: 1\n{\"error\":1}\n\n"]);
        assert_eq!(found, ["1", "{\"error\":1}"]);
    }
}
