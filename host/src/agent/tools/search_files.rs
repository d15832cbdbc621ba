//! `search_files`: a regular expression over the files of the working directory, or over their names.

mod budget;
mod content;
mod rules;
mod walk;

use std::path::{Path, PathBuf};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::confine::{self, Directory, Kind, Opened, display};
use super::error::{ToolError, shown};
use super::{Place, Tool, answer};
use budget::{Budget, Stop};
use content::Searched;
use walk::{Found, Walk};

const EXPECTED: &str = r#"{"pattern": regular expression, "path"?: text, "glob"?: text, "kind"?: "content" or "name", "limit"?: number of matches}"#;

const SCHEMA: &str = r#"{"name":"search_files","description":"Search files in the working directory by a regular expression (Rust syntax, one line at a time; (?i) ignores case). `kind` \"content\" gives matching lines, \"name\" gives paths of files and directories that match. Ignored files (.gitignore), version control data and binary files are left out.","parameters":{"type":"object","properties":{"pattern":{"type":"string","description":"The regular expression"},"path":{"type":"string","description":"Search only this directory or file, relative to the working directory"},"glob":{"type":"string","description":"Only files that match, e.g. *.rs or src/**/*.toml"},"kind":{"type":"string","enum":["content","name"],"description":"What is searched (default content)"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"How many matches to give (default 100)"}},"required":["pattern"]}}"#;

/// Matches that a call gives at most, and without a wish.
const MOST_MATCHES: u64 = 1_000;
const USUAL_MATCHES: u64 = 100;

/// A compiled pattern takes this much memory at most.
const PATTERN_SIZE: usize = 4 << 20;

/// A pattern or glob is this long at most.
const LONGEST_PATTERN: usize = 10_000;

/// Searches files by content or by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchFiles;

impl Tool for SearchFiles {
    fn schema(&self) -> &str {
        SCHEMA
    }

    fn call(&self, arguments: &str, place: &Place) -> String {
        answer(search(arguments, place))
    }
}

fn search(arguments: &str, place: &Place) -> Result<Value, ToolError> {
    let arguments = Arguments::parse(arguments, EXPECTED)?;
    let pattern = pattern(&arguments.text("pattern")?)?;
    let by_name = arguments.choice("kind", &["content", "name"])? == "name";
    let path = arguments.optional_text("path")?;
    let path = path.filter(|path| !path.is_empty());
    let path = path.as_deref().unwrap_or(".");
    let globs = globs(arguments.optional_text("glob")?.as_deref(), place)?;
    let limit = arguments.optional_count("limit")?.unwrap_or(USUAL_MATCHES);
    let real = confine::resolve(place, path)?;
    let mut search = Search {
        pattern,
        globs,
        by_name,
        budget: Budget::new(limit.min(MOST_MATCHES), place.cancel.clone()),
        matches: Vec::new(),
        searched: 0,
        skipped: Skipped::default(),
    };
    let failed = |error| ToolError::io(path, error);
    let stopped = match confine::open(place, &real).map_err(failed)? {
        Opened::Special(kind) => {
            return Err(ToolError::Special {
                path: shown(path),
                kind,
            });
        }
        Opened::File(file, _) => search.file(file, &display(&real)),
        Opened::Directory(_) => search.directory(place, &real),
    };
    match stopped {
        Err(Stop::Interrupted) => Err(ToolError::Interrupted),
        stopped => Ok(search.result(stopped.err())),
    }
}

fn pattern(text: &str) -> Result<RegexMatcher, ToolError> {
    let refused = |why: String| ToolError::Pattern {
        problem: format!(
            "the pattern '{}' cannot be used: {why}; special characters are meant literally behind a backslash",
            shown(text)
        ),
    };
    if text.len() > LONGEST_PATTERN {
        return Err(refused(format!("it is over {LONGEST_PATTERN} bytes long")));
    }
    RegexMatcherBuilder::new()
        .multi_line(true)
        .crlf(true)
        .size_limit(PATTERN_SIZE)
        .dfa_size_limit(PATTERN_SIZE)
        .build(text)
        .map_err(|error| {
            let why = error.to_string();
            // The parser draws the pattern with a marker below; the sentence is in the last line.
            let why = why.lines().last().unwrap_or(&why).trim();
            refused(why.trim_start_matches("error: ").to_owned())
        })
}

fn globs(text: Option<&str>, place: &Place) -> Result<Override, ToolError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(Override::empty());
    };
    let refused = |why: String| ToolError::Pattern {
        problem: format!(
            "the glob '{}' cannot be used: {why}; write it like *.rs or src/**/*.toml",
            shown(text)
        ),
    };
    if text.len() > LONGEST_PATTERN {
        return Err(refused(format!("it is over {LONGEST_PATTERN} bytes long")));
    }
    let mut builder = OverrideBuilder::new(&place.directory);
    builder
        .add(text)
        .and_then(|builder| builder.build())
        .map_err(|error| refused(error.to_string()))
}

/// What was left out, and why.
#[derive(Default)]
struct Skipped {
    binary: u64,
    unreadable: u64,
    large: u64,
    long_lines: u64,
}

struct Search {
    pattern: RegexMatcher,
    globs: Override,
    by_name: bool,
    budget: Budget,
    matches: Vec<Value>,
    searched: u64,
    skipped: Skipped,
}

impl Search {
    fn directory(&mut self, place: &Place, start: &Path) -> Result<(), Stop> {
        let mut walk = Walk::new(place, start);
        while let Some(found) = walk.next(&self.budget)? {
            self.budget.spend_entry()?;
            self.found(&found, place)?;
        }
        self.skipped.unreadable += walk.unreadable();
        Ok(())
    }

    fn found(&mut self, found: &Found, place: &Place) -> Result<(), Stop> {
        let is_directory = found.kind == Kind::Directory;
        let absolute = place.directory.join(&found.path);
        if self.globs.matched(&absolute, is_directory).is_ignore()
            // A glob names files; directories are only walked through.
            || (is_directory && !self.globs.is_empty())
        {
            return Ok(());
        }
        if self.by_name {
            return self.name(&found.path, is_directory);
        }
        if found.kind != Kind::File {
            return Ok(());
        }
        self.file_in(&found.directory, &found.path)
    }

    fn name(&mut self, path: &Path, is_directory: bool) -> Result<(), Stop> {
        let mut name = display(path);
        if let Ok(true) = self.pattern.is_match(name.as_bytes()) {
            if is_directory {
                name.push('/');
            }
            self.budget.spend_match(name.len())?;
            self.matches.push(json!(name));
        }
        Ok(())
    }

    fn file_in(&mut self, directory: &Directory, path: &Path) -> Result<(), Stop> {
        match directory.open(path.file_name().unwrap_or_default()) {
            Ok(Opened::File(file, _)) => self.file(file, &display(path)),
            // It was a file a moment ago.
            Ok(Opened::Directory(_) | Opened::Special(_)) => Ok(()),
            Err(_) => {
                self.skipped.unreadable += 1;
                Ok(())
            }
        }
    }

    /// Searches one open file; with `kind` "name" its name.
    fn file(&mut self, file: std::fs::File, path: &str) -> Result<(), Stop> {
        if self.by_name {
            return self.name(&PathBuf::from(path), false);
        }
        self.searched += 1;
        let (searched, stopped) =
            content::search(&self.pattern, file, path, &self.budget, &mut self.matches);
        match searched {
            Searched::Whole => {}
            Searched::Part => self.skipped.large += 1,
            Searched::Binary => self.skipped.binary += 1,
            Searched::Unreadable => self.skipped.unreadable += 1,
            Searched::LongLine => self.skipped.long_lines += 1,
        }
        stopped
    }

    fn result(self, stopped: Option<Stop>) -> Value {
        let mut value = json!({"matches": self.matches});
        if !self.by_name {
            value["files_searched"] = json!(self.searched);
        }
        let mut notes = Vec::new();
        if let Some(stop) = stopped {
            value["truncated"] = json!(true);
            notes.push(stop.sentence());
        }
        let skipped = &self.skipped;
        for (count, what) in [
            (skipped.binary, "binary files were left out"),
            (skipped.unreadable, "files or directories could not be read"),
            (
                skipped.large,
                "files were searched only in their first part",
            ),
            (
                skipped.long_lines,
                "files were left at a line of over a megabyte",
            ),
        ] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        if !notes.is_empty() {
            value["notes"] = json!(notes);
        }
        value
    }
}
