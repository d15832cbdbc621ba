//! Adding a key that is not there, in the file's own manner.

use super::Refusal;
use super::plan::{Gap, Plan, Request, own_bytes, shown};
use super::scalar;
use crate::config::document::{Document, Kind, NodeId, Style};

/// Plans the insertion of the names that are missing.
pub(super) fn insert(request: &Request<'_>, gap: Gap) -> Result<Plan, Refusal> {
    let Some(id) = gap.at else {
        return Ok(at_end(request, request.body.len(), 0));
    };
    let node = request.document.node(id);
    match &node.kind {
        Kind::Map(entries, true) => Ok(into_flow(request, &gap, id, entries.last())),
        Kind::Map(entries, false) if gap.depth == 0 => {
            let end = request
                .document
                .parts()
                .first()
                .map_or(request.body.len(), |part| part.end);
            let indent = entries
                .first()
                .map_or(0, |(key, _)| column(request.document, *key));
            Ok(at_end(request, end, indent))
        }
        Kind::Map(entries, false) => Ok(into_block(request, &gap, entries)),
        Kind::Scalar(..) => into_nothing(request, &gap, id),
        Kind::Alias(target) => instead_of_alias(request, &gap, id, *target),
        Kind::Seq(..) => {
            let reason = format!(
                "{} is a list, expected a mapping",
                shown(request, gap.depth)
            );
            Err(request.refuse(node.place.0, reason))
        }
    }
}

/// At the end of a document, after its last comments.
fn at_end(request: &Request<'_>, end: usize, indent: usize) -> Plan {
    let unit = indent_unit(request.document);
    let (lines, wanted, extra) = block_lines(request, 0, indent, unit, line_end(request.body, end));
    with_line_breaks(request, end, lines, wanted, extra)
}

/// After the last entry of a mapping, before the comments and blank lines that follow it.
fn into_block(request: &Request<'_>, gap: &Gap, entries: &[(NodeId, NodeId)]) -> Plan {
    let indent = entries
        .first()
        .map_or(0, |(key, _)| column(request.document, *key));
    let last = entries.last().map_or(0, |(key, value)| {
        content_end(request, *value).max(request.document.node(*key).span.end)
    });
    let at = after_line(request.body, last);
    let unit = indent_unit(request.document);
    let (lines, wanted, extra) =
        block_lines(request, gap.depth, indent, unit, line_end(request.body, at));
    with_line_breaks(request, at, lines, wanted, extra)
}

/// `key: value` behind the last entry of `{…}`.
fn into_flow(
    request: &Request<'_>,
    gap: &Gap,
    id: NodeId,
    last: Option<&(NodeId, NodeId)>,
) -> Plan {
    let (entry, wanted) = flow_entry(request, gap.depth);
    let node = request.document.node(id);
    let (at, text) = match last {
        Some((key, value)) => {
            let key_end = request.document.node(*key).span.end;
            let value_end = request.document.node(*value).span.end;
            (key_end.max(value_end), format!(", {entry}"))
        }
        None => {
            let open = request.body[node.span.clone()]
                .find('{')
                .map_or(0, |at| at + 1);
            (node.span.start + open, entry)
        }
    };
    Plan {
        range: at..at,
        text,
        line: line_at(request.body, at),
        wanted,
    }
}

/// A section without content: `context:` gets a line below it, `context: null` a mapping in place of the word.
fn into_nothing(request: &Request<'_>, gap: &Gap, id: NodeId) -> Result<Plan, Refusal> {
    let node = request.document.node(id);
    if gap.depth == 0 {
        // A document of `---` or `null` alone.
        if !node.span.is_empty() {
            return Err(
                request.refuse(node.place.0, "the file is `null`, not a mapping".to_owned())
            );
        }
        let end = request
            .document
            .parts()
            .first()
            .map_or(request.body.len(), |part| part.end);
        return Ok(at_end(request, end, 0));
    }
    let range = own_bytes(request, id)?;
    let in_mapping = gap.key.filter(|_| range.is_empty() && !gap.flow);
    let Some(key) = in_mapping else {
        let (entry, wanted) = flow_entry(request, gap.depth);
        let blank = if range.is_empty() { " " } else { "" };
        let text = format!("{blank}{{{entry}}}");
        return Ok(Plan {
            range,
            text,
            line: node.place.0,
            wanted,
        });
    };
    let unit = indent_unit(request.document);
    let indent = column(request.document, key) + unit;
    let at = after_line(request.body, range.start);
    let (lines, wanted, extra) =
        block_lines(request, gap.depth, indent, unit, line_end(request.body, at));
    Ok(with_line_breaks(request, at, lines, wanted, extra))
}

/// `context: *b` becomes `context: {<<: *b, engine: lcm}`: all else of the shared mapping stays, and so do the others
/// that share it.
fn instead_of_alias(
    request: &Request<'_>,
    gap: &Gap,
    id: NodeId,
    target: NodeId,
) -> Result<Plan, Refusal> {
    let node = request.document.node(id);
    let is_mapping = matches!(request.document.node(target).kind, Kind::Map(..));
    let alone = gap.depth + 1 == request.key.names().len();
    if !is_mapping || !alone || gap.depth == 0 {
        let reason = format!(
            "{} is the alias {}, which other parts of the file share",
            shown(request, gap.depth),
            &request.body[node.span.clone()]
        );
        return Err(request.refuse(node.place.0, reason));
    }
    let (entry, wanted) = flow_entry(request, gap.depth);
    let text = format!("{{<<: {}, {entry}}}", &request.body[node.span.clone()]);
    Ok(Plan {
        range: node.span.clone(),
        text,
        line: node.place.0,
        wanted,
    })
}

/// The missing names as lines, and how many lines stand before the value's.
fn block_lines(
    request: &Request<'_>,
    depth: usize,
    indent: usize,
    unit: usize,
    line_end: &str,
) -> (String, serde_yaml::Value, usize) {
    let names = &request.key.names()[depth..];
    let (value, wanted) = scalar::render(request.value, request.meaning, None, false);
    let mut lines = String::new();
    for (level, name) in names.iter().enumerate() {
        if level > 0 {
            lines.push_str(line_end);
        }
        lines.push_str(&" ".repeat(indent + level * unit));
        lines.push_str(&scalar::key(name, false));
        lines.push(':');
    }
    lines.push(' ');
    lines.push_str(&value);
    (lines, wanted, names.len() - 1)
}

/// The missing names as `a: {b: value}`.
fn flow_entry(request: &Request<'_>, depth: usize) -> (String, serde_yaml::Value) {
    let (value, wanted) = scalar::render(request.value, request.meaning, None, true);
    let mut entry = value;
    for (level, name) in request.key.names()[depth..].iter().rev().enumerate() {
        if level > 0 {
            entry = format!("{{{entry}}}");
        }
        entry = format!("{}: {entry}", scalar::key(name, true));
    }
    (entry, wanted)
}

/// Puts lines at `at`, with the break that the text before or after them needs.
fn with_line_breaks(
    request: &Request<'_>,
    at: usize,
    lines: String,
    wanted: serde_yaml::Value,
    extra: usize,
) -> Plan {
    let end = line_end(request.body, at);
    let before = &request.body[..at];
    let starts_line = before.is_empty() || before.ends_with(['\n', '\r']);
    // A file whose last line has no break keeps it so.
    let text = if starts_line {
        format!("{lines}{end}")
    } else {
        format!("{end}{lines}")
    };
    let line = line_at(request.body, at) + extra + usize::from(!starts_line);
    Plan {
        range: at..at,
        text,
        line,
        wanted,
    }
}

/// Where the content of a node ends. A block collection has no end of its own; its last entry has.
fn content_end(request: &Request<'_>, id: NodeId) -> usize {
    let node = request.document.node(id);
    match &node.kind {
        Kind::Scalar(_, Style::Block) => {
            let written = &request.body[node.span.clone()];
            let header = written.lines().next().unwrap_or_default();
            // With `+` the blank lines behind the text belong to it.
            if header.contains('+') {
                node.span.end
            } else {
                node.span.start + written.trim_end().len()
            }
        }
        Kind::Map(entries, false) => entries.last().map_or(node.span.end, |(key, value)| {
            content_end(request, *value).max(request.document.node(*key).span.end)
        }),
        Kind::Seq(items, false) => items
            .last()
            .map_or(node.span.end, |item| content_end(request, *item)),
        _ => node.span.end,
    }
}

/// The column of a node, from 0.
fn column(document: &Document, id: NodeId) -> usize {
    document.node(id).place.1 - 1
}

/// How far nested mappings are indented in this file: the first one tells.
fn indent_unit(document: &Document) -> usize {
    let parents = document.nodes().iter().filter_map(|node| match &node.kind {
        Kind::Map(entries, false) => Some(entries),
        _ => None,
    });
    for (key, value) in parents.flatten() {
        if let Kind::Map(inner, false) = &document.node(*value).kind {
            let outer = column(document, *key);
            if let Some(found) = inner.first().map(|(key, _)| column(document, *key)) {
                return found.saturating_sub(outer).clamp(1, 16);
            }
        }
    }
    2
}

/// The offset behind the line break of the line that `at` is in; `at` itself if a line begins there.
fn after_line(body: &str, at: usize) -> usize {
    if body[..at].ends_with('\n') {
        return at;
    }
    match body[at..].find(['\n', '\r']) {
        None => body.len(),
        Some(found) => {
            let end = at + found;
            end + if body[end..].starts_with("\r\n") {
                2
            } else {
                1
            }
        }
    }
}

/// The line break in use before `at`, else the first one of the file, else a line feed.
fn line_end(body: &str, at: usize) -> &'static str {
    let near = body[..at].trim_end_matches(['\n', '\r']).len();
    let breaks = &body[near..at];
    let sample = if breaks.is_empty() {
        body.find(['\n', '\r']).map_or("\n", |first| &body[first..])
    } else {
        breaks
    };
    if sample.starts_with("\r\n") {
        "\r\n"
    } else if sample.starts_with('\r') {
        "\r"
    } else {
        "\n"
    }
}

/// The line of an offset, from 1.
fn line_at(body: &str, at: usize) -> usize {
    let before = &body[..at];
    let pairs = before.matches("\r\n").count();
    before.matches(['\n', '\r']).count() - pairs + 1
}
