//! Finding messages.

use std::time::Duration;

use hermes::store::{Query, Store};

use crate::support::*;

fn find(store: &Store, text: &str) -> Vec<String> {
    let hits = store
        .search(&Query {
            text,
            limit: 100,
            ..Query::default()
        })
        .unwrap();
    hits.into_iter().map(|hit| hit.snippet).collect()
}

#[test]
fn words_phrases_beginnings_and_calls_are_found() {
    let home = Home::new();
    let store = home.open();
    let call = message(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"grep_files","arguments":"{\"pattern\":\"caf\\u00e9 olé\",\"深\":[\"東京\"]}"}}]}"#,
    );
    let list = message(
        r#"{"role":"user","content":[{"type":"text","text":"a picture of a zebra"},{"type":"image_url","image_url":{"url":"data:image/png;base64,zebraQQ"}}]}"#,
    );
    let named = message(r#"{"role":"tool","content":"ok","tool_call_id":"c","name":"weather"}"#);
    filled(
        &store,
        vec![
            user("The quick brown fox"),
            call,
            list,
            named,
            assistant("brown quick; don't \"panic\" (it's chat-send v2.2)"),
        ],
    );
    assert_eq!(find(&store, "quick brown").len(), 2);
    assert_eq!(find(&store, "\"quick brown\"").len(), 1);
    assert_eq!(find(&store, "qui*").len(), 2);
    assert_eq!(find(&store, "qui").len(), 0);
    for text in [
        "grep_files",
        "café",
        "zebra",
        "weather",
        "chat-send",
        "v2.2",
        "don't",
        "FOX",
        "panic\"",
    ] {
        assert_eq!(find(&store, text).len(), 1, "{text}");
    }
    assert_eq!(find(&store, "zebraQQ").len(), 0, "a picture is no text");
    assert!(
        find(&store, "AND").is_empty() && find(&store, "quick OR fox").is_empty(),
        "words, not operators"
    );
    assert!(
        store
            .search(&Query {
                text: " \" ",
                ..Query::default()
            })
            .is_err()
    );
    assert!(find(&store, "fox")[0].contains("brown fox"));
}

#[test]
fn cjk_words_of_any_length_are_found() {
    let home = Home::new();
    let store = home.open();
    filled(
        &store,
        vec![
            user("東京都の天気"),
            assistant("大阪と京都"),
            user("서울 날씨 어때"),
            assistant("iPhone電話をください"),
            user("ประเทศไทยสวย"),
        ],
    );
    for (text, hits) in [
        ("東京", 1),
        ("京都", 2),
        ("京", 2),
        ("都の天", 1),
        ("東京都の天気", 1),
        ("날씨", 1),
        ("電話", 1),
        ("iphone電話", 1),
        ("東京 天気", 1),
        ("東京 大阪", 0),
        ("京東", 0),
        ("ไทย", 1),
    ] {
        assert_eq!(find(&store, text).len(), hits, "{text}");
    }
    assert_clean(&store);
}

#[test]
fn newest_first_unless_ranked() {
    let home = Home::new();
    let store = home.open();
    let (_, list, _) = filled(
        &store,
        vec![
            user("apple apple apple"),
            user("one apple in a long sentence about other things"),
            user("nothing"),
        ],
    );
    let newest = store
        .search(&Query {
            text: "apple",
            ..Query::default()
        })
        .unwrap();
    assert_eq!(
        newest[0].uid,
        list[1].identity().uid.as_deref().map(str::to_owned)
    );
    let best = store
        .search(&Query {
            text: "apple",
            rank: true,
            ..Query::default()
        })
        .unwrap();
    assert_eq!(
        best[0].uid,
        list[0].identity().uid.as_deref().map(str::to_owned)
    );
    let (other, _, _) = filled(&store, vec![user("apple elsewhere")]);
    let here = store
        .search(&Query {
            text: "apple",
            session: Some(&other),
            ..Query::default()
        })
        .unwrap();
    assert_eq!(here.len(), 1);
}

#[test]
fn the_index_lags_behind_a_turn_and_catches_up() {
    let home = Home::new();
    let store = home.open();
    let (id, list, mark) = filled(&store, turns(300));
    let lag = |store: &Store| store.check(false, &mut |_, _, _| {}).unwrap().index_lag;
    assert_eq!(lag(&store), 600, "a commit does not wait for the index");
    let done = store.catch_up(Duration::ZERO).unwrap();
    assert_eq!((done.indexed, done.pending), (0, 600));
    let done = store.catch_up(Duration::from_secs(30)).unwrap();
    assert_eq!((done.indexed, done.pending, lag(&store)), (600, 0, 0));
    assert_eq!(store.catch_up(Duration::from_secs(30)).unwrap().indexed, 0);
    // A rewrite is found by its new words only, a taken-back turn not at all.
    let mut edited = list.clone();
    edited[0] = list[0].rewritten(user("rewritten").stored()).unwrap();
    store.save(&id, &mut edited, &mark).unwrap();
    assert_eq!(find(&store, "rewritten").len(), 1);
    assert_eq!(find(&store, "\"question 0\"").len(), 0);
    store.rewind(&id, 1).unwrap();
    assert_eq!(find(&store, "\"question 299\"").len(), 0);
    let hidden = store
        .search(&Query {
            text: "\"question 299\"",
            hidden: true,
            ..Query::default()
        })
        .unwrap();
    assert_eq!(hidden.len(), 1);
    assert_clean(&store);
}
