//! `read_file`: a window of lines of one text file.

mod window;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::confine::{self, Directory, Opened, display};
use super::error::{ToolError, shown};
use super::{Place, Tool, answer};
use window::{Cut, Page, Stop, Wanted};

const EXPECTED: &str = r#"{"path": text, "offset"?: first line from 1, "limit"?: number of lines}"#;

const SCHEMA: &str = r#"{"name":"read_file","description":"Read lines of a text file in the working directory. Each line comes as `number|text`. At most 2000 lines or 64 KiB a call; `next_offset` in the result is where to go on. Lines over 2000 characters are cut. Naming a directory lists it.","parameters":{"type":"object","properties":{"path":{"type":"string","description":"The file, relative to the working directory"},"offset":{"type":"integer","minimum":1,"description":"The first line to read, from 1 (default 1)"},"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"How many lines to read (default 2000)"}},"required":["path"]}}"#;

/// Lines that one call gives at most.
const MOST_LINES: u64 = 2_000;

/// Entries that are listed of a directory that was named in place of a file.
const MOST_ENTRIES: usize = 200;

/// Reads a window of lines of a text file.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadFile;

impl Tool for ReadFile {
    fn schema(&self) -> &str {
        SCHEMA
    }

    fn call(&self, arguments: &str, place: &Place) -> String {
        answer(read(arguments, place))
    }
}

fn read(arguments: &str, place: &Place) -> Result<Value, ToolError> {
    let arguments = Arguments::parse(arguments, EXPECTED)?;
    let path = arguments.text("path")?;
    let wanted = Wanted {
        first: arguments.optional_count("offset")?.unwrap_or(1),
        lines: arguments
            .optional_count("limit")?
            .unwrap_or(MOST_LINES)
            .min(MOST_LINES),
    };
    let real = confine::resolve(place, &path)?;
    let failed = |error| ToolError::io(&path, error);
    match confine::open(place, &real).map_err(failed)? {
        Opened::Special(kind) => Err(ToolError::Special {
            path: shown(&path),
            kind,
        }),
        Opened::Directory(directory) => Err(listing(&path, &directory)?),
        Opened::File(file, size) => {
            let page = window::read(file, wanted, &place.cancel).map_err(|stop| match stop {
                Stop::Interrupted => ToolError::Interrupted,
                Stop::TooFar => ToolError::TooFar {
                    path: shown(&path),
                    offset: wanted.first,
                    reach: window::REACH >> 20,
                },
                Stop::PastEnd { lines } => ToolError::PastEnd {
                    path: shown(&path),
                    lines,
                    offset: wanted.first,
                },
                Stop::Binary(what) => ToolError::Binary {
                    path: shown(&path),
                    what,
                    size,
                },
                Stop::Io(error) => failed(error),
            })?;
            Ok(result(&display(&real), size, wanted, &page))
        }
    }
}

fn result(path: &str, size: u64, wanted: Wanted, page: &Page) -> Value {
    let mut value = json!({"path": path, "content": page.content, "bytes": size});
    if page.lines > 0 {
        value["first_line"] = json!(wanted.first);
        value["last_line"] = json!(wanted.first + page.lines - 1);
    }
    if page.at_end {
        value["total_lines"] = json!(wanted.first - 1 + page.lines);
    } else if page.cut != Some(Cut::Endless) {
        value["next_offset"] = json!(wanted.first + page.lines);
    }
    let mut notes = Vec::new();
    if page.lines == 0 {
        notes.push("the file is empty".to_owned());
    }
    match page.cut {
        Some(Cut::Long) => notes.push(format!(
            "lines over {} characters are cut",
            window::WIDEST_LINE
        )),
        Some(Cut::Endless) => notes.push(format!(
            "this tool reads no further than {} MiB into a file; search_files finds text behind that",
            window::REACH >> 20
        )),
        None => {}
    }
    if page.invalid {
        notes.push("bytes that are no valid UTF-8 are shown as \u{fffd}".to_owned());
    }
    if page.crlf {
        notes.push("lines end in CR LF".to_owned());
    }
    if !notes.is_empty() {
        value["notes"] = json!(notes);
    }
    value
}

/// A directory was named: what is in it is most likely what the model wants to know next.
fn listing(path: &str, directory: &Directory) -> Result<ToolError, ToolError> {
    let entries = directory
        .entries(MOST_ENTRIES)
        .map_err(|error| ToolError::io(path, error))?;
    Ok(ToolError::IsDirectory {
        path: shown(path),
        more: entries.more,
        entries: entries
            .list
            .iter()
            .map(|entry| {
                let name = entry.name.to_string_lossy();
                match entry.kind {
                    confine::Kind::Directory => format!("{name}/"),
                    _ => name.into_owned(),
                }
            })
            .collect(),
    })
}
