//! What is wrong with a configuration file, as a person reads it.

use std::fmt;
use std::path::{Path, PathBuf};

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is wrong with the file; what it counts on (a key in the environment) is not there on this machine.
    Note,
    /// One value is not used, or not as it was meant; everything else holds.
    Warning,
    /// The file as a whole, or the choice of the engine, could not be used.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What kind of fault a [`Problem`] is, for programs that sort them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The file cannot be opened, is too large, or is no UTF-8 text.
    Unreadable,
    /// The text is not valid YAML.
    Syntax,
    /// A key stands twice in one mapping.
    Duplicate,
    /// A section or value has another shape than expected (a list for a mapping, a mapping for a name).
    Shape,
    /// A value is out of range or of another type than its key takes.
    Value,
    /// A key inside a section of ours that nothing reads.
    Unknown,
    /// The configured engine would not serve.
    Engine,
}

impl ProblemKind {
    /// The stable word for this kind in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Syntax => "syntax",
            Self::Duplicate => "duplicate",
            Self::Shape => "shape",
            Self::Value => "value",
            Self::Unknown => "unknown",
            Self::Engine => "engine",
        }
    }
}

/// One fault of the configuration: where it is, what was found, what is used instead and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What sort of fault it is.
    pub kind: ProblemKind,
    /// The file.
    pub path: PathBuf,
    /// Line, from 1, where one can be named.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
    /// The dotted key the fault belongs to.
    pub key: Option<String>,
    /// What is wrong and what holds instead.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, severity: Severity, path: &Path, message: String) -> Self {
        Self {
            severity,
            kind,
            path: path.to_owned(),
            line: None,
            column: None,
            key: None,
            message,
            hint: String::new(),
        }
    }

    pub(crate) fn at(mut self, place: Option<(usize, usize)>) -> Self {
        if let Some((line, column)) = place {
            self.line = Some(line);
            self.column = Some(column);
        }
        self
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// One line: `path:line:column: message (hint)`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        write!(f, ": {}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}
