//! `hermes plugins show NAME`.

use super::super::output;
use super::super::{CliError, Exit, Globals};
use super::{find, shown};
use crate::plugin::{Catalog, Entry};

pub(super) fn run(catalog: &Catalog, name: &str, globals: &Globals) -> Result<Exit, CliError> {
    let entry = find(catalog, name)?;
    if globals.json {
        output::json(entry)?;
    } else {
        output::text(text(entry))?;
    }
    Ok(Exit::Done)
}

fn text(entry: &Entry) -> String {
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|p| p.display().to_string());
    let lines = [
        ("plugin", Some(entry.name.clone())),
        ("engine", entry.engine.clone()),
        ("kind", Some(entry.kind.as_str().to_owned())),
        ("status", Some(entry.status.to_string())),
        ("source", Some(entry.source.to_string())),
        ("directory", path(&entry.directory)),
        ("library", path(&entry.library)),
        ("version", entry.version.clone()),
        ("engine ABI", entry.abi.clone()),
        ("description", entry.description.clone()),
        ("failed at", entry.step.map(|step| step.to_string())),
        ("reason", entry.reason.clone()),
        ("to do", entry.fix.clone()),
    ];
    let mut text = String::new();
    for (label, value) in lines {
        if let Some(value) = value {
            text += &format!("{label:<12} {}\n", shown(&value));
        }
    }
    for note in &entry.notes {
        text += &format!("{:<12} {}\n", "note", shown(note));
    }
    text.trim_end().to_owned()
}
