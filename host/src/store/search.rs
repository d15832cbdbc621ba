//! Finding messages.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Statement};
use serde::Serialize;

use super::Store;
use super::error::StoreError;
use super::fts::{bigram_query, has_cjk, indexed_text, unspaced};

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct Query<'a> {
    /// Words, all of which a hit has; `"several words"` in quotes is a phrase, `word*` a beginning.
    pub text: &'a str,
    /// At most so many hits; 0 means 20.
    pub limit: usize,
    /// Best first among the newest 10,000 hits, instead of newest first.
    pub rank: bool,
    /// Only in this session.
    pub session: Option<&'a str>,
    /// Also rows that a rewind has hidden.
    pub hidden: bool,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// The session.
    pub session: String,
    /// The session's title.
    pub title: Option<String>,
    /// The message's row.
    pub row_id: i64,
    /// The message's uid.
    pub uid: Option<String>,
    /// Who said it.
    pub role: String,
    /// When, in seconds since 1970.
    pub timestamp: f64,
    /// Whether a compaction has archived it.
    pub archived: bool,
    /// The words around the first match.
    pub snippet: String,
}

/// At most so many hits are ranked.
const RANKED: usize = 10_000;
/// How long a search may wait for the index.
const PATIENCE: Duration = Duration::from_secs(5);

/// One full-text table and what it has to match.
struct Source {
    table: &'static str,
    expression: String,
}

struct Plan {
    sources: Vec<Source>,
    /// Terms whose table finds more than the term: a hit has to hold them as they are.
    confirm: Vec<String>,
    /// Where a snippet looks.
    terms: Vec<String>,
}

impl Store {
    /// Finds messages, archived ones too. What was written just now is indexed first.
    ///
    /// # Errors
    /// When there is nothing to look for, or the file cannot be read.
    pub fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, StoreError> {
        const DOING: &str = "search the messages";
        let plan = plan(query.text)?;
        if self.writer.is_some() {
            // A store that cannot be written can still be searched, without its last messages.
            if let Err(error) = self.catch_up(PATIENCE) {
                tracing::warn!(%error, "the newest messages are not searchable yet");
            }
        }
        let failed = self.failed(DOING);
        self.read(DOING, |tx| run(tx, &plan, query).map_err(&failed))
    }
}

/// Cuts the text into terms and sends each to the table that can find it.
fn plan(text: &str) -> Result<Plan, StoreError> {
    let terms = terms(text);
    if terms.is_empty() {
        return Err(StoreError::Invalid(
            "there is nothing to search for".to_owned(),
        ));
    }
    let (mut words, mut grams, mut pairs, mut confirm) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (term, prefix) in &terms {
        let quoted = format!("\"{}\"", term.replace('"', "\"\""));
        if has_cjk(term) {
            pairs.push(bigram_query(term));
            confirm.push(term.to_lowercase());
        } else if unspaced(term) && term.chars().count() >= 3 {
            grams.push(quoted);
            confirm.push(term.to_lowercase());
        } else if term.chars().any(char::is_alphanumeric) {
            words.push(if *prefix {
                format!("{quoted}*")
            } else {
                quoted
            });
        } else if term.chars().count() >= 3 {
            grams.push(quoted);
        } else {
            confirm.push(term.to_lowercase());
        }
    }
    let mut sources = Vec::new();
    for (table, parts) in [
        ("messages_fts", words),
        ("messages_fts_bigram", pairs),
        ("messages_fts_trigram", grams),
    ] {
        if !parts.is_empty() {
            sources.push(Source {
                table,
                expression: parts.join(" AND "),
            });
        }
    }
    Ok(Plan {
        sources,
        confirm,
        terms: terms
            .into_iter()
            .map(|(term, _)| term.to_lowercase())
            .collect(),
    })
}

/// Words and quoted phrases; whether a word is only a beginning.
fn terms(text: &str) -> Vec<(String, bool)> {
    let text: String = text
        .chars()
        .take(2000)
        .map(|c| if c == '\0' { ' ' } else { c })
        .collect();
    let mut out = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        if at % 2 == 1 {
            out.push((part.trim().to_owned(), false));
        } else {
            out.extend(
                part.split_whitespace()
                    .map(|word| match word.trim_end_matches('*') {
                        "" => (word.to_owned(), false),
                        stem => (stem.to_owned(), stem.len() < word.len()),
                    }),
            );
        }
    }
    out.retain(|(term, _)| !term.is_empty());
    out
}

fn run(conn: &Connection, plan: &Plan, query: &Query<'_>) -> rusqlite::Result<Vec<Hit>> {
    let limit = if query.limit == 0 { 20 } else { query.limit };
    let mut statements: Vec<Statement<'_>> = plan
        .sources
        .iter()
        .map(|source| {
            let table = source.table;
            conn.prepare(&format!(
                "SELECT rowid FROM {table} WHERE {table} MATCH ?1 ORDER BY rowid DESC"
            ))
        })
        .collect::<Result<_, _>>()?;
    // Nothing but signs that no table can find: the messages themselves are looked through.
    let mut everything = conn.prepare("SELECT id FROM messages ORDER BY id DESC")?;
    let mut cursors = Vec::with_capacity(plan.sources.len());
    for (statement, source) in statements.iter_mut().zip(&plan.sources) {
        cursors.push(statement.query([&source.expression])?);
    }
    if cursors.is_empty() {
        cursors.push(everything.query([])?);
    }
    let mut fetch = Fetch::new(conn, plan, query)?;
    let mut hits = Vec::new();
    let mut heads: Vec<Option<i64>> = Vec::with_capacity(cursors.len());
    for cursor in &mut cursors {
        heads.push(cursor.next()?.map(|row| row.get(0)).transpose()?);
    }
    let wanted = if query.rank { RANKED } else { limit };
    // All cursors run down the rows; where they meet, all terms are in one message.
    while let Some(lowest) = heads
        .iter()
        .copied()
        .collect::<Option<Vec<i64>>>()
        .and_then(|all| all.into_iter().min())
    {
        let mut all_there = true;
        for (head, cursor) in heads.iter_mut().zip(&mut cursors) {
            while head.is_some_and(|at| at > lowest) {
                *head = cursor.next()?.map(|row| row.get(0)).transpose()?;
            }
            all_there &= *head == Some(lowest);
        }
        if !all_there {
            continue;
        }
        if let Some(hit) = fetch.hit(lowest)? {
            hits.push(hit);
            if hits.len() >= wanted {
                break;
            }
        }
        heads[0] = cursors[0].next()?.map(|row| row.get(0)).transpose()?;
    }
    if query.rank {
        rank(conn, plan, &mut hits)?;
        hits.truncate(limit);
    }
    for hit in &mut hits {
        hit.snippet = fetch.snippet(hit.row_id)?;
    }
    Ok(hits)
}

/// Orders hits by the sum of their tables' scores, the newer first among equals.
fn rank(conn: &Connection, plan: &Plan, hits: &mut [Hit]) -> rusqlite::Result<()> {
    let oldest = hits.iter().map(|hit| hit.row_id).min().unwrap_or(0);
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for source in &plan.sources {
        let table = source.table;
        let mut statement = conn.prepare(&format!(
            "SELECT rowid, bm25({table}) FROM {table} WHERE {table} MATCH ?1 AND rowid >= ?2"
        ))?;
        let mut rows = statement.query(rusqlite::params![source.expression, oldest])?;
        while let Some(row) = rows.next()? {
            *scores.entry(row.get(0)?).or_default() += row.get::<_, f64>(1)?;
        }
    }
    let score = |hit: &Hit| scores.get(&hit.row_id).copied().unwrap_or(0.0);
    hits.sort_by(|a, b| score(a).total_cmp(&score(b)).then(b.row_id.cmp(&a.row_id)));
    Ok(())
}

/// Reads the messages behind hits, each message once.
struct Fetch<'c> {
    facts: Statement<'c>,
    text: Statement<'c>,
    plan: &'c Plan,
    session: Option<&'c str>,
    hidden: bool,
    seen: HashSet<(String, String)>,
}

impl<'c> Fetch<'c> {
    fn new(conn: &'c Connection, plan: &'c Plan, query: &Query<'c>) -> rusqlite::Result<Self> {
        Ok(Self {
            facts: conn.prepare(
                "SELECT m.session_id, s.title, m.message_uid, m.role, CAST(m.timestamp AS REAL), m.active, m.compacted
                 FROM messages m LEFT JOIN sessions s ON s.id = m.session_id WHERE m.id = ?1",
            )?,
            text: conn.prepare(
                "SELECT COALESCE(content, ''), COALESCE(tool_name, ''), COALESCE(tool_calls, '') FROM messages WHERE id = ?1",
            )?,
            plan,
            session: query.session,
            hidden: query.hidden,
            seen: HashSet::new(),
        })
    }

    fn hit(&mut self, id: i64) -> rusqlite::Result<Option<Hit>> {
        let found = self
            .facts
            .query_row([id], |r| {
                let archived = r.get::<_, Option<i64>>(6)?.unwrap_or(0) != 0;
                let active = r.get::<_, Option<i64>>(5)?.unwrap_or(1) != 0;
                let hit = Hit {
                    session: r.get(0)?,
                    title: r.get(1)?,
                    row_id: id,
                    uid: r.get(2)?,
                    role: r.get(3)?,
                    timestamp: r.get::<_, Option<f64>>(4)?.unwrap_or_default(),
                    archived: !active && archived,
                    snippet: String::new(),
                };
                Ok((hit, active || archived))
            })
            .optional()?;
        let Some((hit, shown)) = found else {
            return Ok(None);
        };
        if (!shown && !self.hidden) || self.session.is_some_and(|session| session != hit.session) {
            return Ok(None);
        }
        if !self.plan.confirm.is_empty() {
            let text = self.read(id)?.to_lowercase();
            if !self
                .plan
                .confirm
                .iter()
                .all(|term| text.contains(term.as_str()))
            {
                return Ok(None);
            }
        }
        // The copies that a compaction makes are one message; its newest row stands for it.
        if let Some(uid) = &hit.uid
            && !self.seen.insert((hit.session.clone(), uid.clone()))
        {
            return Ok(None);
        }
        Ok(Some(hit))
    }

    fn read(&mut self, id: i64) -> rusqlite::Result<String> {
        self.text.query_row([id], |r| {
            let text = |at: usize| -> rusqlite::Result<String> {
                Ok(
                    String::from_utf8_lossy(r.get_ref(at)?.as_bytes().unwrap_or_default())
                        .into_owned(),
                )
            };
            Ok(indexed_text(&text(0)?, &text(1)?, &text(2)?))
        })
    }

    /// Some words around the first term.
    fn snippet(&mut self, id: i64) -> rusqlite::Result<String> {
        let text: Vec<char> = self
            .read(id)?
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .collect();
        let lower: String = text
            .iter()
            .map(|c| c.to_lowercase().next().unwrap_or(*c))
            .collect();
        let at = self
            .plan
            .terms
            .iter()
            .filter_map(|term| lower.find(term.as_str()))
            .min()
            .unwrap_or(0);
        let at = lower[..at].chars().count();
        let (from, to) = (at.saturating_sub(40), (at + 80).min(text.len()));
        let middle: String = text[from..to].iter().collect();
        Ok(format!(
            "{}{middle}{}",
            if from > 0 { "…" } else { "" },
            if to < text.len() { "…" } else { "" }
        ))
    }
}
