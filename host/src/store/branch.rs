//! A second conversation that begins as a copy of the first.

use rusqlite::params;

use super::error::StoreError;
use super::resume::Resumed;
use super::session::{self, NewSession};
use super::{Store, compact, identity, rows};

impl Store {
    /// Begins a session with copies of the live messages of another. The copies keep their uids (`UID-3`);
    /// the parent stays as it is and can go on.
    ///
    /// # Errors
    /// When there is no such session, the new id is taken, or the file cannot be written.
    pub fn branch(&self, id: &str, new: &NewSession<'_>) -> Result<Resumed, StoreError> {
        const DOING: &str = "branch a session";
        let failed = self.failed(DOING);
        let now = self.options.now();
        let child = new.id.map_or_else(|| session::new_id(now), str::to_owned);
        self.write(DOING, |tx| {
            session::require(tx, id, &failed)?;
            if session::get(tx, &child).map_err(&failed)?.is_some() {
                return Err(StoreError::SessionExists { id: child.clone() });
            }
            let work = || -> rusqlite::Result<()> {
                let parent = session::tip(tx, id)?;
                let Some(parent) = session::get(tx, &parent)? else { return Ok(()) };
                let title = parent.title.as_deref().map(|title| compact::next_title(tx, title)).transpose()?;
                let config = marked_config(new.model_config.or(parent.model_config.as_deref()), &parent.id);
                let row = NewSession {
                    id: Some(&child),
                    source: if new.source.is_empty() { &parent.source } else { new.source },
                    model: new.model.or(parent.model.as_deref()),
                    model_config: Some(&config),
                    system_prompt: new.system_prompt.or(parent.system_prompt.as_deref()),
                    parent: Some(&parent.id),
                    cwd: new.cwd.or(parent.cwd.as_deref()),
                    title: new.title.or(title.as_deref()),
                };
                session::insert(tx, &child, &row, now)?;
                tx.execute("UPDATE sessions SET last_pass_id = ?2 WHERE id = ?1", params![child, parent.last_pass_id])?;
                let columns = rows::copied_columns(tx)?;
                for row in rows::live_ids(tx, &parent.id, i64::MAX)? {
                    // A message that the back-fill has not reached gets its one id now, on both sides.
                    tx.prepare_cached(
                        "UPDATE messages SET message_uid = ?2 WHERE id = ?1 AND (message_uid IS NULL OR message_uid = '')",
                    )?
                    .execute(params![row, identity::mint()])?;
                    rows::copy(tx, &columns, row, &child)?;
                }
                rows::recount(tx, &child)
            };
            work().map_err(&failed)
        })?;
        self.resume(&child)
    }
}

/// Hermes knows a branch by this member of the model's settings.
fn marked_config(config: Option<&str>, parent: &str) -> String {
    let mut config = config
        .and_then(|text| {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok()
        })
        .unwrap_or_default();
    config.insert("_branched_from".to_owned(), parent.into());
    // A branch of a sub-agent's run is a conversation of its own.
    config.shift_remove("_delegate_from");
    serde_json::Value::Object(config).to_string()
}
