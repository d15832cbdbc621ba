//! Variables of the environment, and `${NAME}` in values of the configuration.

use std::borrow::Cow;
use std::fmt;

type LookUp<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Where variables are looked up. Tests bring their own.
pub(super) struct Environment<'a>(Box<LookUp<'a>>);

impl<'a> Environment<'a> {
    /// The variables of this process.
    pub(super) fn of_process() -> Self {
        Self(Box::new(|name| std::env::var(name).ok()))
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

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
