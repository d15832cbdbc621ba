//! From a file to resolved sections, and what is told when that fails.

use super::places::Places;
use super::problem::{Problem, ProblemKind, Severity};
use super::read::Reader;
use super::value::show;
use super::{BUILT_IN_ENGINE, document, resolve, text};
use serde_yaml::{Mapping, Value};
use std::io::Read;
use std::path::Path;

/// Reads at most one byte more than is allowed, so that a huge file costs no more than a large one.
pub(crate) fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    // Looked at before it is opened: opening a pipe would wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(text::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a text that is no YAML has a line that would say which model is to be asked, or where.
pub(crate) fn names_a_model(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    // UTF-16 has a NUL between its letters.
    let text = text.replace('\0', "");
    let says = |line: &str| {
        let line = line.trim_start_matches(|c: char| " \t\u{feff}-?{\"'".contains(c));
        [
            "model",
            "provider",
            "base_url",
            "api_key",
            "key_env",
            "custom_providers",
        ]
        .iter()
        .any(|key| line.starts_with(key))
    };
    text.lines().any(says)
}

pub(crate) type Parsed = (Option<Mapping>, Places, Vec<Problem>);

/// The resolved sections of a file, where they stand, and what was odd; or why nothing of it can be used.
pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Parsed, Box<Problem>> {
    let broken = |kind, message: String| {
        let message = format!("{message}; defaults are used");
        Problem::new(kind, Severity::Error, path, message)
    };
    let text = text::decode(bytes).map_err(|error| {
        let problem = broken(ProblemKind::Unreadable, error.to_string());
        Box::new(
            problem
                .at(error.place())
                .hint("save the file as UTF-8 text"),
        )
    })?;
    let (_, body) = text::split_bom(text);
    let syntax = |error: document::SyntaxError| {
        let problem = broken(
            ProblemKind::Syntax,
            format!("broken YAML: {}", error.message),
        );
        let hint = match stray_bom(text, body) {
            Some((at, (line, _))) => format!(
                "delete the invisible byte order mark U+FEFF in line {line}, at byte {at} of the file"
            ),
            None => {
                "correct the file with an editor; no command writes to it until then".to_owned()
            }
        };
        Box::new(problem.at(error.place).hint(hint))
    };
    let document = document::Document::parse(body).map_err(syntax)?;
    let roots = document
        .parts()
        .iter()
        .map(|part| Ok((resolve::resolve(&document, part.root)?, part.root)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(syntax)?;
    let found = resolve::duplicates(&document);
    let mut problems: Vec<Problem> = found.iter().map(|found| duplicate(found, path)).collect();
    let mapping = match roots.into_iter().next() {
        None | Some((Value::Null, _)) => None,
        Some((Value::Mapping(mapping), _)) => Some(mapping),
        Some((other, id)) => {
            let message = format!(
                "the file is {}, expected a mapping of sections such as `context:`; defaults are used",
                show(&other)
            );
            problems.push(
                Problem::new(ProblemKind::Shape, Severity::Error, path, message)
                    .at(Some(document.node(id).place))
                    .hint("write sections at the start of the line, their keys indented below"),
            );
            None
        }
    };
    if let Some(second) = document.parts().get(1) {
        let message = format!(
            "a second document begins at line {}; only the first one is read",
            second.line
        );
        problems.push(
            Problem::new(ProblemKind::Shape, Severity::Warning, path, message)
                .at(Some((second.line, 1)))
                .hint("remove the line `---` and what follows, or move it above"),
        );
    }
    if let Some((at, place)) = stray_bom(text, body) {
        let message = format!(
            "a byte order mark stands inside the text at byte {at}; the key or value beside it is not recognised"
        );
        problems.push(
            Problem::new(ProblemKind::Shape, Severity::Warning, path, message)
                .at(Some(place))
                .hint("delete the invisible character U+FEFF there"),
        );
    }
    Ok((mapping, Places::new(document), problems))
}

/// A byte order mark behind the start, as careless programs leave it: its offset in the file and its place.
fn stray_bom(text: &str, body: &str) -> Option<(usize, (usize, usize))> {
    let at = body.find(text::BOM)?;
    Some((
        text.len() - body.len() + at,
        text::place_at_end(&body[..at]),
    ))
}

fn duplicate(found: &resolve::Duplicate, path: &Path) -> Problem {
    let message = format!(
        "the key {} stands twice, at line {} and at line {}; the last one counts",
        found.key, found.first_line, found.last.0
    );
    Problem::new(ProblemKind::Duplicate, Severity::Warning, path, message)
        .at(Some(found.last))
        .key(found.key.clone())
        .hint(format!(
            "remove line {} or line {}",
            found.first_line, found.last.0
        ))
}

/// The configured engine (SEL-1).
pub(crate) fn engine_name(reader: &mut Reader<'_>) -> String {
    let key = ["context", "engine"];
    reader.section(&["context"]);
    if let Some(value @ (Value::Sequence(_) | Value::Mapping(_))) = reader.value(&key) {
        let message = format!(
            "context.engine is {}, expected the name of one engine; {BUILT_IN_ENGINE} is used",
            show(value)
        );
        let hint = "write one name, such as `engine: compressor`".to_owned();
        reader.report(ProblemKind::Shape, Severity::Warning, &key, message, hint);
        return BUILT_IN_ENGINE.to_owned();
    }
    reader
        .text(&key)
        .unwrap_or_else(|| BUILT_IN_ENGINE.to_owned())
}
