//! Variables of the environment, and `${NAME}` in values of the configuration.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::io::Read;
use std::path::Path;

use crate::config::HermesHome;

/// A longer file of variables is not read to its end.
const MOST: u64 = 1 << 20;

type LookUp<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Where variables are looked up. Tests bring their own.
pub(super) struct Environment<'a>(Box<LookUp<'a>>);

impl<'a> Environment<'a> {
    /// The variables of this process, and those that `.env` in the user's folder adds to them.
    pub(super) fn of_process(home: &HermesHome) -> Self {
        let file = home.path().join(".env");
        let added = OnceCell::new();
        Self(Box::new(move |name| {
            let value = std::env::var(name)
                .ok()
                .filter(|value| !value.trim().is_empty());
            value.or_else(|| {
                let added = added.get_or_init(|| read(&file));
                added
                    .iter()
                    .rev()
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value.clone())
            })
        }))
    }

    #[cfg(test)]
    pub(super) fn of(pairs: &'a [(&'a str, &'a str)]) -> Self {
        Self(Box::new(move |name| {
            let pair = pairs.iter().find(|(key, _)| *key == name)?;
            Some(pair.1.to_owned())
        }))
    }

    /// A variable, without blanks around it; an empty one counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let value = (self.0)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Replaces every `${NAME}`.
    ///
    /// # Errors
    /// The first name that is not set.
    pub(super) fn expand<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, String> {
        if !text.contains("${") {
            return Ok(Cow::Borrowed(text.trim()));
        }
        let mut out = String::new();
        let mut rest = text.trim();
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else {
                break;
            };
            let name = rest[start + 2..start + length].trim();
            out.push_str(&rest[..start]);
            out.push_str(&self.get(name).ok_or_else(|| name.to_owned())?);
            rest = &rest[start + length + 1..];
        }
        out.push_str(rest);
        Ok(Cow::Owned(out))
    }
}

/// The lines `NAME=value` of a file, with or without `export` and quotes; none if it cannot be read.
fn read(file: &Path) -> Vec<(String, String)> {
    let mut text = String::new();
    let regular = std::fs::metadata(file).is_ok_and(|data| data.is_file());
    if let (true, Ok(file)) = (regular, std::fs::File::open(file)) {
        let mut bytes = Vec::new();
        let _ = file.take(MOST).read_to_end(&mut bytes);
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    text.lines().filter_map(pair).collect()
}

fn pair(line: &str) -> Option<(String, String)> {
    let line = line.trim_start_matches('\u{feff}').trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote)
            && let Some(end) = inner.find(quote)
        {
            return Some((name.to_owned(), inner[..end].to_owned()));
        }
    }
    // A comment begins behind a blank.
    let value = value.split(" #").next().unwrap_or(value).trim_end();
    Some((name.to_owned(), value.to_owned()))
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_adds_what_the_process_does_not_have() {
        let home = tempfile::tempdir().expect("a folder");
        let text = "# keys\nexport HERMES_T_A = 'a b' # x\nHERMES_T_B=b # x\nPATH=wrong\nHERMES_T_C=\"c#1\"\n=x\nno\n";
        std::fs::write(home.path().join(".env"), text).expect("written");
        let env = Environment::of_process(&HermesHome::at(home.path()));
        assert_eq!(env.get("HERMES_T_A").as_deref(), Some("a b"));
        assert_eq!(env.get("HERMES_T_B").as_deref(), Some("b"));
        assert_eq!(env.get("HERMES_T_C").as_deref(), Some("c#1"));
        assert_ne!(env.get("PATH").as_deref(), Some("wrong"));
        assert_eq!(env.get("# keys"), None);
        let none = Environment::of_process(&HermesHome::at("/nowhere"));
        assert_eq!(none.get("HERMES_T_A"), None);
    }

    #[test]
    fn names_are_replaced_and_missing_ones_are_named() {
        let env = Environment::of(&[("A", " x "), ("B", "y"), ("E", " ")]);
        let ok = |text| env.expand(text).expect("all set").into_owned();
        assert_eq!(ok("plain"), "plain");
        assert_eq!(ok("${A}-${B}/${ A }"), "x-y/x");
        assert_eq!(ok("${A"), "${A");
        assert_eq!(ok("$A"), "$A");
        assert_eq!(env.expand("${A}${E}"), Err("E".into()));
        assert_eq!(env.expand("${}"), Err(String::new()));
    }
}
