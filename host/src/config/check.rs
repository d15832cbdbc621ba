//! What a careful look finds beyond reading: keys that nobody reads, and an engine that would not serve.

use super::problem::{Problem, ProblemKind, Severity};
use super::{BUILT_IN_ENGINE, Config, compression, timeouts};
use serde_yaml::Value;

/// The keys below `context`. `engines` holds the sections of engines named like a section of the host.
const CONTEXT: &[&str] = &["engine", "timeouts", "engines"];

/// Answers whether an engine of this name would serve, and if not, why in one line.
pub type Serves<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// All problems of a configuration: those of reading, keys of ours that nothing reads, and, where `serves` is given, an
/// engine that would not serve. Keys of other sections belong to the original and are never named.
pub fn check(config: &Config, serves: Option<Serves<'_>>) -> Vec<Problem> {
    let mut problems = config.problems().to_vec();
    if config.is_broken() {
        return problems;
    }
    unknown(config, &["context"], CONTEXT, &mut problems);
    unknown(
        config,
        &["context", "timeouts"],
        timeouts::KNOWN,
        &mut problems,
    );
    unknown(config, &["compression"], compression::KNOWN, &mut problems);
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

fn unknown(config: &Config, section: &[&str], known: &[&str], problems: &mut Vec<Problem>) {
    let Some(Value::Mapping(mapping)) = config.find(section) else {
        return;
    };
    for key in mapping.keys() {
        let name = super::json::key_text(key);
        if known.contains(&name.as_str()) {
            continue;
        }
        let mut path = section.to_vec();
        path.push(&name);
        let dotted = path.join(".");
        let hint = match nearest(&name, known) {
            Some(near) => format!("did you mean {near}?"),
            None => "remove the line".to_owned(),
        };
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
