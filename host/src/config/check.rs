//! What a careful look finds beyond reading: keys that nobody reads, and an engine that would not serve.

use super::problem::{Problem, ProblemKind, Severity};
use super::value::untag;
use super::{BUILT_IN_ENGINE, Config, HOST_SECTIONS, known};
use serde_yaml::Value;

/// Answers whether an engine of this name would serve, and if not, why in one line.
pub type Serves<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// All problems of a configuration: those of reading, keys that nothing reads in sections of ours, keys elsewhere that
/// look like mistyped ones of ours, and, where `serves` is given, an engine that would not serve. All other keys belong
/// to the original and are never named.
pub fn check(config: &Config, serves: Option<Serves<'_>>) -> Vec<Problem> {
    let mut problems = config.problems().to_vec();
    if config.is_broken() {
        return problems;
    }
    for section in known::SECTIONS {
        let pattern: Vec<&str> = section
            .path
            .split('.')
            .filter(|name| !name.is_empty())
            .collect();
        for path in matching(config, &pattern) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            unknown(config, &path, section, &mut problems);
        }
    }
    let engine = config.engine_name();
    if let Some(Err(reason)) = serves.map(|serves| serves(engine)) {
        let message = format!(
            "context.engine is {engine:?}, which would not serve: {reason}; {BUILT_IN_ENGINE} is used"
        );
        problems.push(
            Problem::new(ProblemKind::Engine, Severity::Error, config.path(), message)
                .at(config.places.of(&["context", "engine"]))
                .key("context.engine")
                .hint(format!("`hermes plugins why {engine}` tells more")),
        );
    }
    problems.sort_by_key(|problem| problem.line.unwrap_or(0));
    problems
}

/// The paths in the file that a pattern stands for; `*` is every key of a mapping and every place of a list.
fn matching(config: &Config, pattern: &[&str]) -> Vec<Vec<String>> {
    let mut paths: Vec<Vec<String>> = vec![Vec::new()];
    for part in pattern {
        let mut longer = Vec::new();
        for path in paths {
            let names = match *part {
                "*" => {
                    let at: Vec<&str> = path.iter().map(String::as_str).collect();
                    match config.find(&at).map(untag) {
                        Some(Value::Mapping(mapping)) => {
                            mapping.keys().map(super::json::key_text).collect()
                        }
                        Some(Value::Sequence(list)) => {
                            (0..list.len()).map(|index| index.to_string()).collect()
                        }
                        _ => Vec::new(),
                    }
                }
                name => vec![name.to_owned()],
            };
            longer.extend(names.into_iter().map(|name| {
                let mut path = path.clone();
                path.push(name);
                path
            }));
        }
        paths = longer;
    }
    paths
}

fn unknown(config: &Config, path: &[&str], section: &known::Section, problems: &mut Vec<Problem>) {
    let mapping = match path {
        [] => config.root.as_ref(),
        path => match config.find(path).map(untag) {
            Some(Value::Mapping(mapping)) => Some(mapping),
            _ => None,
        },
    };
    for key in mapping.into_iter().flat_map(|mapping| mapping.keys()) {
        let name = super::json::key_text(key);
        let is_known = section.keys.contains(&name.as_str())
            || section.others.contains(&name.as_str())
            || (path.is_empty()
                && (HOST_SECTIONS.contains(&name.as_str()) || name == config.engine_name()));
        if is_known {
            continue;
        }
        let near = if section.is_ours {
            nearest(&name, section.keys)
        } else {
            mistyped(&name, section.keys)
        };
        let hint = match near {
            Some(near) => format!("did you mean {near}?"),
            None if section.is_ours => "remove the line".to_owned(),
            None => continue,
        };
        let mut path = path.to_vec();
        path.push(&name);
        let dotted = path.join(".");
        problems.push(
            Problem::new(
                ProblemKind::Unknown,
                Severity::Warning,
                config.path(),
                format!("{dotted} is no key that anything reads"),
            )
            .at(config.places.of_key(&path))
            .key(dotted)
            .hint(hint),
        );
    }
}

fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let best = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), *known));
    let (score, known) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > 0.85).then_some(known)
}

/// The key of ours that a name is but for one or two slips of the finger, or for its spelling (`baseUrl`). Careful: the
/// original has many keys that nobody here knows.
fn mistyped<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |name: &str| name.replace(['-', '_', ' '], "").to_ascii_lowercase();
    let name = plain(name);
    known
        .iter()
        .map(|own| (strsim::damerau_levenshtein(&name, &plain(own)), *own))
        .filter(|(distance, own)| {
            *distance <= usize::from(own.len() > 4) + usize::from(own.len() > 9)
        })
        .min()
        .map(|(_, own)| own)
}
