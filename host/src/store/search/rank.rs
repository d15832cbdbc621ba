//! The best of the newest hits.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::{Fetch, Hit, Matches, Plan, Query};
use crate::store::rows;

/// At most so many hits are ranked.
const RANKED: usize = 10_000;

/// The best hits, the newer first among equals.
///
/// Scores come from the index alone. Only rows that are good enough to be shown are read, one after the other;
/// when some of them turn out to be no hits, older rows are ranked in their place.
pub(super) fn best(
    conn: &Connection,
    plan: &Plan,
    query: &Query<'_>,
    matches: &mut Matches<'_>,
    fetch: &mut Fetch<'_>,
    limit: usize,
) -> rusqlite::Result<Vec<Hit>> {
    let session: Option<HashSet<i64>> = match query.session {
        Some(session) => Some(rows::all_ids(conn, session)?.into_iter().collect()),
        None => None,
    };
    let mut hits: Vec<(f64, Hit)> = Vec::new();
    while hits.len() < limit.min(RANKED) {
        let mut candidates = Vec::new();
        while hits.len() + candidates.len() < RANKED
            && let Some(id) = matches.next()?
        {
            if session.as_ref().is_none_or(|rows| rows.contains(&id)) {
                candidates.push(id);
            }
        }
        if candidates.is_empty() {
            break;
        }
        candidates.reverse();
        let mut ranked = scores(conn, plan, &candidates)?;
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        for (score, id) in ranked {
            if let Some(hit) = fetch.hit(id)?
                && !stands_elsewhere(conn, fetch, &candidates, &hits, &hit)?
            {
                hits.push((score, hit));
                if hits.len() >= limit {
                    break;
                }
            }
        }
    }
    hits.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.row_id.cmp(&a.1.row_id)));
    Ok(hits.into_iter().map(|(_, hit)| hit).collect())
}

/// The sum of the tables' scores for each of these rows, which rise.
fn scores(conn: &Connection, plan: &Plan, candidates: &[i64]) -> rusqlite::Result<Vec<(f64, i64)>> {
    let mut scores: Vec<(f64, i64)> = candidates.iter().map(|id| (0.0, *id)).collect();
    let (Some(oldest), Some(newest)) = (candidates.first(), candidates.last()) else {
        return Ok(scores);
    };
    let span = newest.saturating_sub(*oldest) / 4;
    let sparse = (usize::try_from(span).is_ok_and(|span| span > candidates.len()))
        .then(|| serde_json::to_string(candidates).unwrap_or_default());
    for source in &plan.sources {
        let table = source.table;
        // A word that also stands in many other rows between them is not to be scored there.
        let only = match &sparse {
            Some(_) => "AND +rowid IN (SELECT value FROM json_each(?4))",
            None => "AND ?4 IS NULL",
        };
        let mut statement = conn.prepare(&format!(
            "SELECT rowid, bm25({table}) FROM {table} WHERE {table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 {only}
             ORDER BY rowid"
        ))?;
        let mut rows = statement.query(params![source.expression, oldest, newest, sparse])?;
        // Rows and candidates rise alike.
        let mut next = 0;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            while scores.get(next).is_some_and(|(_, at)| *at < id) {
                next += 1;
            }
            match scores.get_mut(next) {
                Some((score, at)) if *at == id => *score += row.get::<_, f64>(1)?,
                _ => {}
            }
        }
    }
    Ok(scores)
}

/// Whether a newer row that is a hit as well holds the same message: a compaction made a copy, and the newest one
/// stands for all.
fn stands_elsewhere(
    conn: &Connection,
    fetch: &mut Fetch<'_>,
    candidates: &[i64],
    hits: &[(f64, Hit)],
    hit: &Hit,
) -> rusqlite::Result<bool> {
    let Some(uid) = &hit.uid else {
        return Ok(false);
    };
    if hits
        .iter()
        .any(|(_, other)| other.uid.as_ref() == Some(uid) && other.session == hit.session)
    {
        return Ok(true);
    }
    let newer: Vec<i64> = conn
        .prepare_cached(
            "SELECT id FROM messages INDEXED BY idx_messages_session_uid
             WHERE session_id = ?1 AND message_uid = ?2 AND id > ?3",
        )?
        .query_map(params![hit.session, uid, hit.row_id], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    for id in newer {
        if candidates.binary_search(&id).is_ok() && fetch.hit(id)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
