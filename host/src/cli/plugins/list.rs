//! `hermes plugins list`.

use comfy_table::{ContentArrangement, Table, presets};

use super::super::output;
use super::super::{CliError, Exit, Globals};
use super::shown;
use crate::plugin::{Catalog, Entry, Source};

pub(super) fn run(catalog: &Catalog, globals: &Globals) -> Result<Exit, CliError> {
    let wanted = catalog.config().engine_name();
    if let Err(reason) = catalog.select(wanted) {
        output::warning(format!(
            "context.engine: {reason}; the built-in serves instead"
        ));
    }
    if globals.json {
        output::json(&catalog.entries())?;
    } else {
        output::text(text(catalog.entries()))?;
    }
    Ok(Exit::Done)
}

fn text(entries: &[Entry]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header([
            "ENGINE",
            "STATUS",
            "SOURCE",
            "PLUGIN",
            "FOLDER",
            "VERSION",
            "DESCRIPTION",
        ]);
    for entry in entries {
        let optional = |text: &Option<String>| shown(text.as_deref().unwrap_or("-"));
        table.add_row([
            optional(&entry.engine),
            entry.status.to_string(),
            entry.source.to_string(),
            shown(&entry.name),
            folder(entry),
            optional(&entry.version),
            optional(&entry.description),
        ]);
    }
    let mut text = table.trim_fmt();
    for entry in entries {
        if let Some(reason) = &entry.reason {
            let name = folder(entry);
            text += &format!("\n{name}: {}", shown(reason));
            if let Some(fix) = &entry.fix {
                text += &format!("\n  -> {}", shown(fix));
            }
        }
        if entry.source == Source::BuiltIn {
            for note in &entry.notes {
                text += &format!("\n{}: {}", entry.name, shown(note));
            }
        }
    }
    text
}

/// The folder's own name; the real path is in `show` and in the JSON.
fn folder(entry: &Entry) -> String {
    if entry.source == Source::BuiltIn {
        "-".to_owned()
    } else {
        shown(entry.folder_name())
    }
}
