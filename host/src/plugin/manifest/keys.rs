//! The keys of a manifest, read in one pass.
//!
//! Texts are taken as they are spelled (`version: 1.10` is `1.10`, not a number), and keys that we only know by name
//! are skipped unread.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{LibraryKey, Manifest, ManifestError};
use crate::plugin::name;

/// Keys of manifests written for other hosts, or for later ones. They mean nothing to an engine here.
const OTHER_KNOWN: &[&str] = &[
    "api_version",
    "author",
    "capabilities",
    "config_schema",
    "depends",
    "emits",
    "external_dependencies",
    "hermes",
    "homepage",
    "hooks",
    "kind",
    "label",
    "license",
    "listens",
    "optional_env",
    "pip_dependencies",
    "platforms",
    "provides_browser_providers",
    "provides_hooks",
    "provides_tools",
    "provides_web_providers",
    "python_dependencies",
    "repository",
    "requires_env",
    "requires_hermes",
    "requires_plugins",
    "tags",
    "update_url",
];

/// A manifest before its values are checked.
#[derive(Default)]
pub(super) struct Raw {
    name: Option<String>,
    display_name: Option<String>,
    description: Option<String>,
    version: Option<String>,
    engine: Option<String>,
    manifest_version: Option<String>,
    library: Option<LibraryKey>,
    notes: Vec<String>,
}

impl Raw {
    pub(super) fn into_manifest(mut self, file: &'static str) -> Result<Manifest, ManifestError> {
        for (key, value) in [("name", &self.name), ("engine", &self.engine)] {
            if let Some(value) = value
                && let Err(problem) = name::check(value)
            {
                return Err(ManifestError::BadName {
                    file,
                    key,
                    value: value.escape_debug().to_string(),
                    problem,
                });
            }
        }
        if let Some(library) = &self.library
            && let Err((value, problem)) = library.check()
        {
            return Err(ManifestError::BadName {
                file,
                key: "library",
                value,
                problem,
            });
        }
        if let Some(version) = &self.manifest_version
            && version.parse().is_ok_and(|v: f64| v > super::MAX_VERSION)
        {
            self.notes.push(format!(
                "{file} has manifest_version {version}; this host knows up to {}",
                super::MAX_VERSION
            ));
        }
        if self.name.is_none() {
            self.notes.push(format!("{file} has no `name`"));
        }
        Ok(Manifest {
            name: self.name,
            display_name: self.display_name,
            description: self.description,
            version: self.version,
            engine: self.engine,
            library: self.library,
            notes: self.notes,
        })
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys with values, such as `name: my-plugin`")
    }

    /// An empty file.
    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::default())
    }

    /// An empty file, too.
    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut raw = Raw::default();
        let mut seen = BTreeSet::new();
        let mut unknown = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => raw.name = map.next_value()?,
                "display_name" => raw.display_name = map.next_value()?,
                "description" => raw.description = map.next_value()?,
                "version" => raw.version = map.next_value()?,
                "engine" => raw.engine = map.next_value()?,
                "manifest_version" => raw.manifest_version = map.next_value()?,
                "library" => raw.library = map.next_value()?,
                known if OTHER_KNOWN.contains(&known) => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    unknown.push(key.escape_debug().to_string());
                }
            }
            if !seen.insert(key.clone()) {
                raw.notes.push(format!(
                    "the manifest has the key `{}` twice; the last one counts",
                    key.escape_debug()
                ));
            }
        }
        if !unknown.is_empty() {
            raw.notes.push(format!(
                "the manifest has keys that this host does not know: {}",
                unknown.join(", ")
            ));
        }
        Ok(raw)
    }
}
