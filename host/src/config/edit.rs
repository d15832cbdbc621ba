//! Changing one value of a file and nothing else (CFG-5).
//!
//! The bytes of one scalar are replaced, a text in the quote style that was there, or a missing key is added in the file's own
//! indentation. Both texts are then parsed, and the new one is written only if its resolved tree differs from the old
//! one's in exactly that value. What cannot be changed like that is refused, with the line and what to type there.
//!
//! Nothing is ever written to a file that is broken or has a key twice (CFG-6), nor to one that already says what was
//! asked for, nor to one that changed while we looked at it.

mod file;
mod insert;
mod plan;
mod scalar;
mod verify;

use super::key::{KeyError, KeyPath};
use super::{Config, document, resolve, text};
use file::Original;
use std::path::{Path, PathBuf};

/// What became of a request to change a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The file says so already; it was not touched.
    Unchanged,
    /// The value now stands in this line (from 1).
    Changed {
        /// The line of the new value.
        line: usize,
    },
}

/// Why a file was left as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The caller's key is none.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The file is no text that we could change.
    #[error("{}: {reason}; the file was left as it is", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The user must repair the file first.
    #[error("{}:{line}:{column}: broken YAML: {message}; the file was left as it is", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's words.
        message: String,
    },
    /// The user must remove one of two equal keys first.
    #[error(
        "{}:{last}: the key {key} stands twice, at line {first} and at line {last}; the file was left as it is",
        .path.display()
    )]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The dotted key.
        key: String,
        /// Line of the first.
        first: usize,
        /// Line of the last.
        last: usize,
    },
    /// The value stands in a form in which it cannot be changed alone.
    #[error("{}:{line}: {reason}; the file was left as it is", .path.display())]
    NotSafe {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
        /// What the user can type by hand.
        by_hand: String,
    },
    /// The key does not take this value.
    #[error("{0}")]
    Invalid(String),
    /// Somebody else wrote the file between our reading and our writing.
    #[error("{} was changed by another program at this moment; it was left as it is", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another writer holds the file.
    #[error("{} is being changed by another program", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The operating system said no.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Its answer.
        #[source]
        source: std::io::Error,
    },
}

impl EditError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Key(_) | Self::Invalid(_) => String::new(),
            Self::Unreadable { .. } => "repair the file with an editor".to_owned(),
            Self::Broken { line, .. } => format!("correct line {line} or the lines before it"),
            Self::Duplicate { first, last, .. } => format!("remove line {first} or line {last}"),
            Self::NotSafe { by_hand, .. } => by_hand.clone(),
            Self::Changed { .. } | Self::Locked { .. } => "try again".to_owned(),
            Self::Io { .. } => "check the owner and the mode of the file and its folder".to_owned(),
        }
    }

    /// True if the request itself was wrong, not the file.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Key(_) | Self::Invalid(_))
    }
}

/// How the caller's text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// A text, quoted where YAML would take it for something else.
    Text,
    /// Whatever YAML makes of it: a number, a boolean, null or a text.
    Typed,
}

/// Writes the name of the engine into `context.engine` (CLI-2).
pub fn write_engine(path: &Path, name: &str) -> Result<Outcome, EditError> {
    set(
        path,
        &KeyPath::parse("context.engine")?,
        name,
        Meaning::Text,
    )
}

/// Sets one value. `value` is taken as YAML takes it (`5`, `true`, `null`), except for keys that are known to hold a
/// text. What stood there before does not matter for it; a text keeps the quotes that the old value had.
pub fn set_value(path: &Path, key: &str, value: &str) -> Result<Outcome, EditError> {
    let key = KeyPath::parse(key)?;
    let meaning = if holds_text(&key) {
        Meaning::Text
    } else {
        Meaning::Typed
    };
    set(path, &key, value, meaning)
}

/// Sets one value to a text, whatever YAML would make of it.
pub fn set_text(path: &Path, key: &str, value: &str) -> Result<Outcome, EditError> {
    set(path, &KeyPath::parse(key)?, value, Meaning::Text)
}

/// The keys of ours that hold names and addresses: an engine called `1` is no number.
fn holds_text(key: &KeyPath) -> bool {
    let texts = |name: &str| {
        [
            "default",
            "model",
            "provider",
            "base_url",
            "api_mode",
            "api_key",
            "api_key_env",
            "key_env",
        ]
        .contains(&name)
    };
    match key.parts().as_slice() {
        ["context", "engine"] | ["compression", "tail_mode"] => true,
        ["model", name] | ["auxiliary", "compression", name] => texts(name),
        ["fallback_providers", _, name] => texts(name),
        ["plugins", "entries", _, "sha256"] => true,
        _ => false,
    }
}

fn set(path: &Path, key: &KeyPath, value: &str, meaning: Meaning) -> Result<Outcome, EditError> {
    let original = Original::open(path)?;
    let planned = edited(original.bytes(), &original.path, key, value, meaning)?;
    match planned {
        None => Ok(Outcome::Unchanged),
        Some((text, line)) => {
            original.replace(text.as_bytes())?;
            Ok(Outcome::Changed { line })
        }
    }
}

/// The new content and the line of the value; none when nothing has to change. Touches no file.
fn edited(
    bytes: &[u8],
    path: &Path,
    key: &KeyPath,
    value: &str,
    meaning: Meaning,
) -> Result<Option<(String, usize)>, EditError> {
    let unreadable = |error: text::TextError| EditError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let whole = text::decode(bytes).map_err(unreadable)?;
    let (bom, body) = text::split_bom(whole);
    let old = Parsed::new(body, path)?;
    let Some(planned) = plan::plan(body, &old.document, &old.roots, key, value, meaning)
        .map_err(|refusal| refusal.into_error(path))?
    else {
        return Ok(None);
    };
    let plan = &planned.plan;
    let mut new_body = body.to_owned();
    new_body.replace_range(plan.range.clone(), &plan.text);
    verify::check(&old, &new_body, &planned, key).map_err(|refusal| refusal.into_error(path))?;
    let new_text = format!("{}{new_body}", &whole[..bom]);
    refuse_invalid(bytes, new_text.as_bytes(), path, key)?;
    Ok(Some((new_text, plan.line)))
}

/// A text with its tree; broken and doubled ones never get this far.
struct Parsed {
    document: document::Document,
    /// The resolved value of each document.
    roots: Vec<serde_yaml::Value>,
}

impl Parsed {
    fn new(body: &str, path: &Path) -> Result<Self, EditError> {
        let broken = |error: document::SyntaxError| {
            let (line, column) = error.place.unwrap_or((1, 1));
            EditError::Broken {
                path: path.to_owned(),
                line,
                column,
                message: error.message,
            }
        };
        let document = document::Document::parse(body).map_err(&broken)?;
        // First: this is where files that grow by their aliases end.
        let roots = document
            .parts()
            .iter()
            .map(|part| resolve::resolve(&document, part.root))
            .collect::<Result<_, _>>()
            .map_err(broken)?;
        if let Some(found) = resolve::duplicates(&document).into_iter().next() {
            return Err(EditError::Duplicate {
                path: path.to_owned(),
                key: found.key,
                first: found.first_line,
                last: found.last.0,
            });
        }
        Ok(Self { document, roots })
    }
}

/// A value that the reader would replace by a default is not written. Whether it would is the reader's own judgement.
fn refuse_invalid(old: &[u8], new: &[u8], path: &Path, key: &KeyPath) -> Result<(), EditError> {
    let before = Config::from_text(old, path);
    let known = |message: &str| before.problems().iter().any(|p| p.message == message);
    let plain = key.names().join(".");
    let after = Config::from_text(new, path);
    let fault = after
        .problems()
        .iter()
        .find(|problem| problem.key.as_deref() == Some(&plain) && !known(&problem.message));
    match fault {
        None => Ok(()),
        Some(problem) => {
            let what = problem.message.split(';').next().unwrap_or_default();
            Err(EditError::Invalid(format!("{what}; nothing was written")))
        }
    }
}

/// Why a plan cannot be made or does not hold.
#[derive(Debug)]
struct Refusal {
    line: usize,
    reason: String,
    by_hand: String,
}

impl Refusal {
    fn into_error(self, path: &Path) -> EditError {
        EditError::NotSafe {
            path: path.to_owned(),
            line: self.line,
            reason: self.reason,
            by_hand: self.by_hand,
        }
    }
}
