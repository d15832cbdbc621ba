//! A provider's own list of its models.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::provider::names;

/// A longer list is not read.
pub(in crate::provider) const LONGEST_LIST: usize = 16 << 20;
/// How long a provider may take to say it.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long its word is good.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);
/// No window is larger.
const LARGEST: u64 = 1_000_000_000;

/// Where the fields of all kinds of servers are: the window as it is served before the one the model was trained for.
const FIELDS: &[&[&str]] = &[
    &["loaded_context_length"],
    &["meta", "n_ctx"],
    &["max_model_len"],
    &["context_length"],
    &["top_provider", "context_length"],
    &["context_window"],
    &["max_context_length"],
    &["max_context_window"],
    &["max_input_tokens"],
    &["inputTokenLimit"],
    &["limits", "max_input_tokens"],
    &["capabilities", "limits", "max_context_window_tokens"],
    &["max_sequence_length"],
    &["n_ctx"],
    &["meta", "n_ctx_train"],
];

/// The list of one address: asked for at most once, and kept.
#[derive(Debug)]
pub(in crate::provider) struct List {
    base: String,
    /// Not for a server on this machine, which may be started again with another window.
    file: Option<PathBuf>,
    windows: OnceLock<BTreeMap<String, u64>>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    base_url: String,
    asked: u64,
    windows: BTreeMap<String, u64>,
}

impl List {
    pub(in crate::provider) fn new(base: &str, folder: Option<PathBuf>) -> Self {
        let file = folder.filter(|_| !names::is_local(base)).map(|folder| {
            let hash = Sha256::digest(base.as_bytes());
            let name: String = hash
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            folder.join("models").join(format!("{name}.json"))
        });
        Self {
            base: base.to_owned(),
            file,
            windows: OnceLock::new(),
        }
    }

    /// The window of a model. `ask` fetches a JSON document within a time.
    pub(in crate::provider) fn context_length(
        &self,
        model: &str,
        ask: &mut dyn FnMut(&str, Duration) -> Option<Value>,
    ) -> Option<u64> {
        let windows = self.windows.get_or_init(|| {
            self.file
                .as_deref()
                .and_then(|file| read(file, &self.base))
                .unwrap_or_else(|| {
                    let asked = self.ask(ask);
                    if let (Some(windows), Some(file)) = (&asked, &self.file) {
                        keep(file, &self.base, windows);
                    }
                    asked.unwrap_or_default()
                })
        });
        let by_name = windows.get(model).copied().or_else(|| {
            let short = |name: &str| name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
            let mut same = windows
                .iter()
                .filter(|(name, _)| short(name) == short(model));
            same.next().map(|(_, tokens)| *tokens)
        });
        // A server on this machine that has one model answers with it whatever it is called.
        by_name.or_else(|| {
            let only = (windows.len() == 1 && names::is_local(&self.base)).then_some(windows)?;
            only.values().next().copied()
        })
    }

    fn ask(
        &self,
        ask: &mut dyn FnMut(&str, Duration) -> Option<Value>,
    ) -> Option<BTreeMap<String, u64>> {
        let end = Instant::now() + PATIENCE;
        let mut get = |url: &str| {
            let left = end.saturating_duration_since(Instant::now());
            (!left.is_zero()).then(|| ask(url, left)).flatten()
        };
        let list = get(&format!("{}/models", self.base))?;
        let mut windows = windows_of(&list);
        let root = self.base.trim_end_matches("/v1");
        if is_llama_cpp(&list)
            && let Some(served) = get(&format!("{root}/props"))
                .as_ref()
                .and_then(props_window)
        {
            // What the server was started with counts, not what the model was trained for.
            for tokens in windows.values_mut() {
                *tokens = served;
            }
        } else if windows.is_empty() && names::is_local(&self.base) {
            // LM Studio, then Ollama: they say it in interfaces of their own.
            for path in ["/api/v0/models", "/api/ps"] {
                windows = get(&format!("{root}{path}"))
                    .as_ref()
                    .map(windows_of)
                    .unwrap_or_default();
                if !windows.is_empty() {
                    break;
                }
            }
        }
        Some(windows)
    }
}

fn windows_of(list: &Value) -> BTreeMap<String, u64> {
    let entries = ["data", "models"]
        .iter()
        .find_map(|key| list.get(key))
        .unwrap_or(list)
        .as_array();
    let mut windows = BTreeMap::new();
    for entry in entries.into_iter().flatten() {
        let name = ["id", "name", "model"]
            .iter()
            .find_map(|key| entry.get(key)?.as_str());
        if let (Some(name), Some(tokens)) = (name, FIELDS.iter().find_map(|path| at(entry, path))) {
            windows.insert(name.to_owned(), tokens);
        }
    }
    windows
}

fn at(entry: &Value, path: &[&str]) -> Option<u64> {
    let value = path.iter().try_fold(entry, |value, key| value.get(key))?;
    let number = value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())?;
    (1..=LARGEST).contains(&number).then_some(number)
}

fn is_llama_cpp(list: &Value) -> bool {
    let first = list.get("data").and_then(|data| data.get(0));
    first.is_some_and(|entry| {
        entry["owned_by"] == "llamacpp" || !entry["meta"]["n_ctx_train"].is_null()
    })
}

fn props_window(props: &Value) -> Option<u64> {
    at(props, &["default_generation_settings", "n_ctx"]).or_else(|| at(props, &["n_ctx"]))
}

fn seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

fn read(file: &Path, base: &str) -> Option<BTreeMap<String, u64>> {
    let kept: Kept = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let age = seconds_now().checked_sub(kept.asked)?;
    (kept.base_url == base && age < GOOD_FOR.as_secs()).then_some(kept.windows)
}

/// Keeps the list. A folder that cannot be written costs another question tomorrow, nothing else.
fn keep(file: &Path, base: &str, windows: &BTreeMap<String, u64>) {
    let kept = Kept {
        base_url: base.to_owned(),
        asked: seconds_now(),
        windows: windows.clone(),
    };
    let write = || -> std::io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(serde_json::to_string(&kept)?.as_bytes())?;
        new.persist(file)?;
        Ok(())
    };
    if let Err(error) = write() {
        tracing::debug!(file = %file.display(), %error, "the list of models is not kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask_with<'a>(
        answers: &'a [(&'a str, Value)],
        asked: &'a mut Vec<String>,
    ) -> impl FnMut(&str, Duration) -> Option<Value> + 'a {
        move |url, limit| {
            assert!(limit <= PATIENCE);
            asked.push(url.to_owned());
            let answer = answers.iter().find(|(end, _)| url.ends_with(end))?;
            Some(answer.1.clone())
        }
    }

    fn window(base: &str, model: &str, answers: &[(&str, Value)]) -> Option<u64> {
        let mut asked = Vec::new();
        List::new(base, None).context_length(model, &mut ask_with(answers, &mut asked))
    }

    #[test]
    fn every_server_s_own_field_is_found() {
        let far = "https://h/v1";
        for (entry, want) in [
            (json!({"id":"m","context_length":1000}), Some(1000)),
            (json!({"id":"m","max_model_len":"2000"}), Some(2000)),
            (json!({"id":"m","context_window":3000}), Some(3000)),
            (
                json!({"id":"m","top_provider":{"context_length":4000}}),
                Some(4000),
            ),
            (
                json!({"id":"vendor/M","max_context_length":5000}),
                Some(5000),
            ),
            (json!({"id":"m","context_length":-5}), None),
            (json!({"id":"m"}), None),
            (json!("m"), None),
        ] {
            let list = json!({"data": [json!({"id": "x", "context_length": 1}), entry]});
            assert_eq!(window(far, "m", &[("/models", list)]), want);
        }
        assert_eq!(window(far, "m", &[("/models", json!({"error": 1}))]), None);
        assert_eq!(window(far, "m", &[]), None);
    }

    #[test]
    fn a_local_server_tells_what_it_was_started_with() {
        let near = "http://127.0.0.1:8080/v1";
        let list = json!({"data":[{"id":"/models/x.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":32768}}]});
        let props = json!({"default_generation_settings":{"n_ctx":8192}});
        assert_eq!(
            window(
                near,
                "anything",
                &[("/v1/models", list.clone()), ("8080/props", props)]
            ),
            Some(8192)
        );
        assert_eq!(
            window(near, "anything", &[("/v1/models", list)]),
            Some(32768)
        );
        let bare = json!({"data":[{"id":"q"}]});
        let ollama = json!({"models":[{"name":"q","context_length":4096}]});
        assert_eq!(
            window(near, "q", &[("/v1/models", bare), ("/api/ps", ollama)]),
            Some(4096)
        );
    }

    #[test]
    fn it_is_asked_once_a_day() {
        let folder = tempfile::tempdir().expect("a folder");
        let answers = [("/models", json!({"data":[{"id":"m","context_length":77}]}))];
        let mut asked = Vec::new();
        let cached = || List::new("https://h/v1", Some(folder.path().to_owned()));
        let list = cached();
        for _ in 0..3 {
            let found = list.context_length("m", &mut ask_with(&answers, &mut asked));
            assert_eq!(found, Some(77));
        }
        assert_eq!(asked.len(), 1);
        // Another process.
        let found = cached().context_length("m", &mut ask_with(&[], &mut asked));
        assert_eq!((found, asked.len()), (Some(77), 1));
        // A day later.
        let file = cached().file.expect("a file");
        let mut kept: Kept = serde_json::from_slice(&fs::read(&file).expect("kept")).expect("JSON");
        kept.asked -= 24 * 3600;
        fs::write(&file, serde_json::to_string(&kept).expect("JSON")).expect("written");
        let found = cached().context_length("m", &mut ask_with(&[], &mut asked));
        assert_eq!((found, asked.len()), (None, 2));
        fs::write(&file, "{").expect("written");
        assert_eq!(
            cached().context_length("m", &mut ask_with(&answers, &mut asked)),
            Some(77)
        );
        // Of a server on this machine nothing is kept.
        assert_eq!(
            List::new("http://localhost:1/v1", Some(folder.path().into())).file,
            None
        );
    }
}
