//! `hermes plugins why NAME`.

use super::super::output;
use super::super::{CliError, Exit, Globals};
use super::shown;
use crate::plugin::Catalog;
use crate::plugin::report::Why;

pub(super) fn run(catalog: &Catalog, name: &str, globals: &Globals) -> Result<Exit, CliError> {
    let why = catalog.why(name);
    if globals.json {
        output::json(&why)?;
    } else {
        output::text(text(&why))?;
    }
    Ok(if why.serves { Exit::Done } else { Exit::Failed })
}

fn text(why: &Why) -> String {
    let mut text = String::new();
    for step in &why.steps {
        let mark = match step.ok {
            Some(true) => "ok",
            Some(false) => "NO",
            None => "-",
        };
        text += &format!(
            "{mark:<3} {:<9} {}\n",
            step.step.as_str(),
            shown(&step.detail)
        );
        if !step.fix.is_empty() {
            text += &format!("{:<13} -> {}\n", "", shown(&step.fix));
        }
    }
    text += &match why.serves {
        true => format!("{} serves", shown(&why.name)),
        false => format!(
            "{} does not serve; the built-in engine would",
            shown(&why.name)
        ),
    };
    text
}
