//! Finding messages.

mod rank;

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Rows, Statement};
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
    let mut matches = Matches::new(cursors)?;
    let mut fetch = Fetch::new(conn, plan, query)?;
    let mut hits = if query.rank {
        rank::best(conn, plan, query, &mut matches, &mut fetch, limit)?
    } else {
        let mut hits = Vec::new();
        while hits.len() < limit
            && let Some(id) = matches.next()?
        {
            hits.extend(fetch.newest(id)?);
        }
        hits
    };
    for hit in &mut hits {
        hit.snippet = fetch.snippet(hit.row_id)?;
    }
    Ok(hits)
}

/// The rows that every term is in, the newest first.
struct Matches<'s> {
    cursors: Vec<Rows<'s>>,
    heads: Vec<Option<i64>>,
    begun: bool,
}

impl<'s> Matches<'s> {
    fn new(mut cursors: Vec<Rows<'s>>) -> rusqlite::Result<Self> {
        let heads = cursors.iter_mut().map(step).collect::<Result<_, _>>()?;
        Ok(Self {
            cursors,
            heads,
            begun: false,
        })
    }

    fn next(&mut self) -> rusqlite::Result<Option<i64>> {
        if self.begun {
            self.heads[0] = step(&mut self.cursors[0])?;
        }
        self.begun = true;
        // All cursors run down the rows; where they meet, all terms are in one message.
        loop {
            let mut lowest = i64::MAX;
            for head in &self.heads {
                let Some(at) = head else { return Ok(None) };
                lowest = lowest.min(*at);
            }
            let mut all_there = true;
            for (head, cursor) in self.heads.iter_mut().zip(&mut self.cursors) {
                while head.is_some_and(|at| at > lowest) {
                    *head = step(cursor)?;
                }
                all_there &= *head == Some(lowest);
            }
            if all_there {
                return Ok(Some(lowest));
            }
        }
    }
}

fn step(cursor: &mut Rows<'_>) -> rusqlite::Result<Option<i64>> {
    cursor.next()?.map(|row| row.get(0)).transpose()
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

    /// The hit that a row is, if it is one that is looked for.
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
        Ok(Some(hit))
    }

    /// [`Self::hit`] for rows that come the newest first. The copies that a compaction makes are one message;
    /// its newest row stands for it.
    fn newest(&mut self, id: i64) -> rusqlite::Result<Option<Hit>> {
        Ok(self.hit(id)?.filter(|hit| {
            hit.uid
                .as_ref()
                .is_none_or(|uid| self.seen.insert((hit.session.clone(), uid.clone())))
        }))
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
