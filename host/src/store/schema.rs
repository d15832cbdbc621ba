//! The layout of `state.db`: the tables, indexes and triggers of schema 31.
//!
//! Names, columns and triggers agree with what real Hermes reads and writes, so that both programs can
//! open one file in turn. What only this host needs stands at the end of each list and never changes the
//! meaning of a column that Hermes knows.

/// The schema version that this host writes.
pub const SCHEMA_VERSION: i64 = 31;
/// The oldest schema version that can be opened (`hermes-agent` 0.19.0 writes it).
pub const OLDEST_VERSION: i64 = 22;
/// The version of the parts that only this host adds, kept in `state_meta`.
pub(crate) const HOST_LAYOUT: i64 = 1;
/// The `state_meta` key of [`HOST_LAYOUT`].
pub(crate) const HOST_LAYOUT_KEY: &str = "rust_host_layout";

/// A table: its name, its columns with their declarations, and what follows the columns.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, &'static str)],
    pub(crate) constraints: &'static str,
}

impl Table {
    /// The statement that creates the table where it is missing.
    pub(crate) fn create(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(name, declaration)| format!("{name} {declaration}"))
            .collect();
        let constraints = if self.constraints.is_empty() {
            String::new()
        } else {
            format!(", {}", self.constraints)
        };
        format!(
            "CREATE TABLE IF NOT EXISTS {} ({}{constraints})",
            self.name,
            columns.join(", ")
        )
    }
}

pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "schema_version",
        columns: &[("version", "INTEGER NOT NULL")],
        constraints: "",
    },
    Table {
        name: "sessions",
        columns: &[
            ("id", "TEXT PRIMARY KEY"),
            ("source", "TEXT NOT NULL"),
            ("user_id", "TEXT"),
            ("session_key", "TEXT"),
            ("chat_id", "TEXT"),
            ("chat_type", "TEXT"),
            ("thread_id", "TEXT"),
            ("display_name", "TEXT"),
            ("origin_json", "TEXT"),
            ("expiry_finalized", "INTEGER DEFAULT 0"),
            ("model", "TEXT"),
            ("model_config", "TEXT"),
            ("system_prompt", "TEXT"),
            ("parent_session_id", "TEXT"),
            ("started_at", "REAL NOT NULL"),
            ("ended_at", "REAL"),
            ("end_reason", "TEXT"),
            ("message_count", "INTEGER DEFAULT 0"),
            ("tool_call_count", "INTEGER DEFAULT 0"),
            ("input_tokens", "INTEGER DEFAULT 0"),
            ("output_tokens", "INTEGER DEFAULT 0"),
            ("cache_read_tokens", "INTEGER DEFAULT 0"),
            ("cache_write_tokens", "INTEGER DEFAULT 0"),
            ("reasoning_tokens", "INTEGER DEFAULT 0"),
            ("cwd", "TEXT"),
            ("git_branch", "TEXT"),
            ("git_repo_root", "TEXT"),
            ("billing_provider", "TEXT"),
            ("billing_base_url", "TEXT"),
            ("billing_mode", "TEXT"),
            ("estimated_cost_usd", "REAL"),
            ("actual_cost_usd", "REAL"),
            ("cost_status", "TEXT"),
            ("cost_source", "TEXT"),
            ("pricing_version", "TEXT"),
            ("title", "TEXT"),
            ("api_call_count", "INTEGER DEFAULT 0"),
            ("handoff_state", "TEXT"),
            ("handoff_platform", "TEXT"),
            ("handoff_error", "TEXT"),
            ("compression_failure_cooldown_until", "REAL"),
            ("compression_failure_error", "TEXT"),
            ("compression_fallback_streak", "INTEGER NOT NULL DEFAULT 0"),
            ("profile_name", "TEXT"),
            ("rewind_count", "INTEGER NOT NULL DEFAULT 0"),
            ("archived", "INTEGER NOT NULL DEFAULT 0"),
            // Schema 31.
            (
                "compression_ineffective_count",
                "INTEGER NOT NULL DEFAULT 0",
            ),
            ("compression_recovery_deadline", "REAL"),
            ("compression_overload_streak", "INTEGER NOT NULL DEFAULT 0"),
            // This host: the pass whose result is the transcript, and a counter that every change of
            // older rows raises, so that a pass which started before the change cannot commit.
            ("last_pass_id", "TEXT"),
            ("transcript_generation", "INTEGER NOT NULL DEFAULT 0"),
        ],
        constraints: "FOREIGN KEY (parent_session_id) REFERENCES sessions(id)",
    },
    Table {
        name: "messages",
        columns: &[
            ("id", "INTEGER PRIMARY KEY AUTOINCREMENT"),
            ("session_id", "TEXT NOT NULL REFERENCES sessions(id)"),
            ("role", "TEXT NOT NULL"),
            ("content", "TEXT"),
            ("tool_call_id", "TEXT"),
            ("tool_calls", "TEXT"),
            ("tool_name", "TEXT"),
            ("effect_disposition", "TEXT"),
            ("timestamp", "REAL NOT NULL"),
            ("token_count", "INTEGER"),
            ("finish_reason", "TEXT"),
            ("reasoning", "TEXT"),
            ("reasoning_content", "TEXT"),
            ("reasoning_details", "TEXT"),
            ("codex_reasoning_items", "TEXT"),
            ("codex_message_items", "TEXT"),
            ("platform_message_id", "TEXT"),
            ("observed", "INTEGER DEFAULT 0"),
            ("active", "INTEGER NOT NULL DEFAULT 1"),
            ("compacted", "INTEGER NOT NULL DEFAULT 0"),
            ("api_content", "TEXT"),
            // Schema 31.
            ("_compressed_summary", "INTEGER"),
            ("display_kind", "TEXT"),
            ("display_metadata", "TEXT"),
            ("display_identity", "TEXT"),
            ("display_order", "INTEGER"),
            ("message_uid", "TEXT"),
            ("absorbed_message_uids", "TEXT"),
            ("tool_call_uids", "TEXT"),
            ("tool_call_uid", "TEXT"),
            // This host: the exact text where the columns above do not give it back byte for byte, the
            // bytes that came in where they were not strict UTF-8, and "not indexed yet".
            ("stored_json", "TEXT"),
            ("original_bytes", "BLOB"),
            ("fts_pending", "INTEGER"),
        ],
        constraints: "",
    },
    Table {
        name: "session_model_usage",
        columns: &[
            (
                "session_id",
                "TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE",
            ),
            ("model", "TEXT NOT NULL"),
            ("billing_provider", "TEXT NOT NULL DEFAULT ''"),
            ("billing_base_url", "TEXT NOT NULL DEFAULT ''"),
            ("billing_mode", "TEXT NOT NULL DEFAULT ''"),
            ("task", "TEXT NOT NULL DEFAULT ''"),
            ("api_call_count", "INTEGER NOT NULL DEFAULT 0"),
            ("input_tokens", "INTEGER NOT NULL DEFAULT 0"),
            ("output_tokens", "INTEGER NOT NULL DEFAULT 0"),
            ("cache_read_tokens", "INTEGER NOT NULL DEFAULT 0"),
            ("cache_write_tokens", "INTEGER NOT NULL DEFAULT 0"),
            ("reasoning_tokens", "INTEGER NOT NULL DEFAULT 0"),
            ("estimated_cost_usd", "REAL NOT NULL DEFAULT 0"),
            ("actual_cost_usd", "REAL NOT NULL DEFAULT 0"),
            ("cost_status", "TEXT"),
            ("cost_source", "TEXT"),
            ("first_seen", "REAL"),
            ("last_seen", "REAL"),
        ],
        constraints: "PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)",
    },
    Table {
        name: "state_meta",
        columns: &[("key", "TEXT PRIMARY KEY"), ("value", "TEXT")],
        constraints: "",
    },
    Table {
        name: "gateway_routing",
        columns: &[
            ("scope", "TEXT NOT NULL DEFAULT ''"),
            ("session_key", "TEXT NOT NULL"),
            ("entry_json", "TEXT NOT NULL"),
            ("updated_at", "REAL NOT NULL"),
        ],
        constraints: "PRIMARY KEY (scope, session_key)",
    },
    Table {
        name: "compression_locks",
        columns: &[
            ("session_id", "TEXT PRIMARY KEY"),
            ("holder", "TEXT NOT NULL"),
            ("acquired_at", "REAL NOT NULL"),
            ("expires_at", "REAL NOT NULL"),
        ],
        constraints: "",
    },
    Table {
        name: "async_delegations",
        columns: &[
            ("delegation_id", "TEXT PRIMARY KEY"),
            ("origin_session", "TEXT NOT NULL"),
            ("origin_ui_session_id", "TEXT NOT NULL DEFAULT ''"),
            ("parent_session_id", "TEXT"),
            ("state", "TEXT NOT NULL"),
            ("dispatched_at", "REAL NOT NULL"),
            ("completed_at", "REAL"),
            ("updated_at", "REAL NOT NULL"),
            ("event_json", "TEXT"),
            ("result_json", "TEXT"),
            ("delivery_state", "TEXT NOT NULL DEFAULT 'pending'"),
            ("delivery_attempts", "INTEGER NOT NULL DEFAULT 0"),
            ("delivered_at", "REAL"),
            ("owner_pid", "INTEGER"),
            ("owner_started_at", "INTEGER"),
            ("task_json", "TEXT"),
            ("delivery_claim", "TEXT"),
            ("delivery_claimed_at", "REAL"),
        ],
        constraints: "",
    },
    // This host: one row a committed pass. `archived` names the rows that the pass hid, so that an undo
    // over it brings back exactly those; `first_row..=last_row` are the rows that it wrote.
    Table {
        name: "compaction_passes",
        columns: &[
            (
                "session_id",
                "TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE",
            ),
            ("generation", "INTEGER NOT NULL"),
            ("pass_id", "TEXT NOT NULL"),
            ("mode", "TEXT NOT NULL"),
            ("watermark", "INTEGER NOT NULL"),
            ("archived", "TEXT NOT NULL"),
            ("first_row", "INTEGER NOT NULL"),
            ("last_row", "INTEGER NOT NULL"),
            ("source_session_id", "TEXT"),
            ("previous_pass_id", "TEXT"),
            ("committed_at", "REAL NOT NULL"),
            ("undone_at", "REAL"),
        ],
        constraints: "PRIMARY KEY (session_id, generation)",
    },
];

pub(crate) const INDEXES: &[&str] = &[
    "CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_source_id ON sessions(source, id)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_session_key ON sessions(session_key, started_at DESC)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_gateway_peer
       ON sessions(source, user_id, chat_id, chat_type, thread_id, started_at DESC)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_handoff_state ON sessions(handoff_state, started_at)",
    "CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp)",
    "CREATE INDEX IF NOT EXISTS idx_messages_session_active ON messages(session_id, active, timestamp)",
    "CREATE INDEX IF NOT EXISTS idx_messages_active_null ON messages(active) WHERE active IS NULL",
    "CREATE INDEX IF NOT EXISTS idx_messages_platform_msg_id
       ON messages(session_id, platform_message_id) WHERE platform_message_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_messages_session_uid ON messages(session_id, message_uid)",
    "CREATE INDEX IF NOT EXISTS idx_messages_fts_pending ON messages(id) WHERE fts_pending IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_compression_locks_expires ON compression_locks(expires_at)",
    "CREATE INDEX IF NOT EXISTS idx_session_model_usage_session ON session_model_usage(session_id)",
    "CREATE INDEX IF NOT EXISTS idx_session_model_usage_model ON session_model_usage(model)",
    "CREATE INDEX IF NOT EXISTS idx_async_delegations_delivery
       ON async_delegations(delivery_state, completed_at)",
];

/// Made apart from the others: an old store may hold duplicate titles, and an index must not keep it shut.
pub(crate) const TITLE_INDEX: &str = "CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL";

/// The full-text tables: Hermes's two, and ours for words of one or two CJK characters.
///
/// The last one has no positions and no tokenizer of its own: its text is already cut into one- and
/// two-character words, and a hit is confirmed against the message.
pub(crate) const FTS_TABLES: &[(&str, &str)] = &[
    (
        "messages_fts",
        "CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(content)",
    ),
    (
        "messages_fts_trigram",
        "CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts_trigram USING fts5(content, tokenize='trigram')",
    ),
    (
        "messages_fts_bigram",
        "CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts_bigram
           USING fts5(content, detail=none, tokenize=\"unicode61 remove_diacritics 0\")",
    ),
];

/// The text that Hermes's own triggers index for a row, without the NUL with which content that is a list
/// begins (and without what stands behind another one, until the catch-up). Older versions of SQLite end a
/// text at a NUL when they cut it into trigrams and newer ones do not, so that an entry with one, made by
/// the one, is damage to the other. (`replace` and `substr` of texts end there too, hence the casts.)
pub(crate) const INDEXED_TEXT: &str = "CASE instr(CAST(COALESCE(new.content, '') AS BLOB), x'00')
       WHEN 0 THEN COALESCE(new.content, '')
       WHEN 1 THEN CAST(substr(CAST(new.content AS BLOB), 2) AS TEXT)
       ELSE CAST(substr(CAST(new.content AS BLOB), 1, instr(CAST(new.content AS BLOB), x'00') - 1) AS TEXT) END
     || ' ' || COALESCE(new.tool_name, '') || ' ' || COALESCE(new.tool_calls, '')";

/// A version 4 UUID as 32 lowercase hex digits, in plain SQL.
pub(crate) const SQL_UUID4: &str = "lower(hex(randomblob(6))) || '4' || substr(lower(hex(randomblob(2))), 2) || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2) || lower(hex(randomblob(6)))";

/// The columns of a row from which its message can be rebuilt.
const MESSAGE_COLUMNS: &str = "role, content, tool_call_id, tool_calls, tool_name, effect_disposition, finish_reason, reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, platform_message_id, api_content";

/// Names and bodies of all triggers. Hermes creates its own six only where the name is free, so ours,
/// under the same names, stay.
pub(crate) fn triggers() -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for (table, insert, update, delete) in [
        (
            "messages_fts",
            "messages_fts_insert",
            "messages_fts_update",
            "messages_fts_delete",
        ),
        (
            "messages_fts_trigram",
            "messages_fts_trigram_insert",
            "messages_fts_trigram_update",
            "messages_fts_trigram_delete",
        ),
    ] {
        // A row with `fts_pending` set is indexed later, by `fts::catch_up`.
        all.push((
            insert,
            format!(
                "CREATE TRIGGER {insert} AFTER INSERT ON messages WHEN new.fts_pending IS NULL BEGIN
                   INSERT INTO {table}(rowid, content) VALUES (new.id, {INDEXED_TEXT});
                 END"
            ),
        ));
        // Only these columns: an UPDATE of any other (a uid, `active`) must not index the row again.
        all.push((
            update,
            format!(
                "CREATE TRIGGER {update} AFTER UPDATE OF content, tool_name, tool_calls ON messages
                   WHEN new.fts_pending IS NULL BEGIN
                   DELETE FROM {table} WHERE rowid = old.id;
                   INSERT INTO {table}(rowid, content) VALUES (new.id, {INDEXED_TEXT});
                 END"
            ),
        ));
        all.push((
            delete,
            format!(
                "CREATE TRIGGER {delete} AFTER DELETE ON messages BEGIN
                   DELETE FROM {table} WHERE rowid = old.id;
                 END"
            ),
        ));
    }
    all.push((
        "messages_fts_bigram_delete",
        "CREATE TRIGGER messages_fts_bigram_delete AFTER DELETE ON messages BEGIN
           DELETE FROM messages_fts_bigram WHERE rowid = old.id;
         END"
        .to_owned(),
    ));
    // Rows of other writers: Hermes's index has their raw text; ours is added by the next catch-up (2).
    all.push((
        "messages_fts_bigram_insert",
        "CREATE TRIGGER messages_fts_bigram_insert AFTER INSERT ON messages WHEN new.fts_pending IS NULL BEGIN
           UPDATE messages SET fts_pending = 2 WHERE id = new.id;
         END"
        .to_owned(),
    ));
    all.push((
        "messages_fts_bigram_update",
        "CREATE TRIGGER messages_fts_bigram_update AFTER UPDATE OF content, tool_name, tool_calls ON messages
           WHEN new.fts_pending IS NULL BEGIN
           UPDATE messages SET fts_pending = 2 WHERE id = new.id;
         END"
        .to_owned(),
    ));
    all.push((
        "messages_message_uid_insert",
        format!(
            "CREATE TRIGGER messages_message_uid_insert AFTER INSERT ON messages
               WHEN new.message_uid IS NULL OR new.message_uid = '' BEGIN
               UPDATE messages SET message_uid = {SQL_UUID4} WHERE id = new.id;
             END"
        ),
    ));
    // Another program rewrote the row and left our text as it was: the columns are the newer version.
    // The mark keeps the keys that only our text knows; `columns::restore` lays the columns over them.
    all.push((
        "messages_stored_json_update",
        format!(
            "CREATE TRIGGER messages_stored_json_update AFTER UPDATE OF {MESSAGE_COLUMNS} ON messages
               WHEN new.stored_json IS old.stored_json AND substr(new.stored_json, 1, 1) = '{{' BEGIN
               UPDATE messages SET stored_json = '~' || stored_json, original_bytes = NULL WHERE id = new.id;
             END"
        ),
    ));
    all
}
