use hermes_engine_abi as abi;
use hermes_message::Message;
use proptest::prelude::*;

use super::{Collector, Emitted, Order};
use crate::engine::MessageList;

fn list(texts: &[&str]) -> MessageList {
    let messages: Vec<_> = texts
        .iter()
        .map(|text| Message::parse(&message(text)).unwrap())
        .collect();
    MessageList::stored(&messages)
}

fn message(text: &str) -> String {
    serde_json::json!({"role": "user", "content": text}).to_string()
}

fn indexes(items: &[Emitted]) -> Vec<Option<(usize, usize)>> {
    items
        .iter()
        .map(|item| match item {
            Emitted::Kept { list, index } => Some((*list, *index)),
            Emitted::Pushed(_) => None,
        })
        .collect()
}

proptest! {
    /// Whatever an engine keeps: it gets exactly that, or nothing and a reason.
    #[test]
    fn keeps_follow_the_rule_of_the_slot_or_all_is_refused(
        keeps in prop::collection::vec((0u32..3, 0usize..12, 0usize..6), 0..8),
        increasing in any::<bool>(),
    ) {
        // contract: HOOK-4, PASS-6
        let order = if increasing { Order::Increasing } else { Order::Any };
        let lists = if increasing { vec![list(&["a"; 10])] } else { vec![list(&["a"; 10]), list(&["b"; 4])] };
        let lengths: Vec<usize> = lists.iter().map(MessageList::len).collect();
        let mut collector = Collector::new(order, lists);
        let mut expected = Vec::new();
        let mut sound = true;
        for (list, first, count) in keeps {
            let at = list as usize;
            let range: Vec<_> = (first..first + count).map(|index| (at, index)).collect();
            let fits = at < lengths.len() && first + count <= lengths[at];
            let ordered = match order {
                Order::Increasing => {
                    let next = expected.last().map_or(0, |(_, index)| index + 1);
                    count == 0 || first >= next
                }
                Order::Any => range.iter().all(|kept| !expected.contains(kept)),
            };
            let right = sound && fits && ordered;
            sound = right;
            let answer = collector.keep(list, first, count);
            prop_assert_eq!(answer == abi::OK, right);
            expected.extend(range);
        }
        match collector.finish() {
            Ok(items) => {
                prop_assert!(sound);
                let expected: Vec<_> = expected.into_iter().map(Some).collect();
                prop_assert_eq!(indexes(&items), expected);
            }
            Err(_) => prop_assert!(!sound),
        }
    }

    /// Bytes of any kind: a message, or a refusal; never a panic.
    #[test]
    fn any_bytes_may_be_pushed(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut collector = Collector::new(Order::Any, vec![list(&["a"])]);
        let status = collector.push(Some(&bytes));
        let result = collector.finish();
        prop_assert_eq!(status == abi::OK, result.is_ok());
    }

    /// Copies of the host's messages, in any subset that keeps the order, are the host's messages.
    #[test]
    fn copies_become_the_hosts_messages(chosen in prop::collection::vec(any::<(bool, bool)>(), 9)) {
        // contract: HOOK-9
        let texts = ["a", "b", "a", "c", "a", "d", "b", "e", "f"];
        let mut collector = Collector::new(Order::Increasing, vec![list(&texts)]);
        let mut emitted = 0;
        for (index, (take, copy)) in chosen.iter().enumerate() {
            if *take && *copy {
                let spaced = message(texts[index]).replace(':', " : ");
                prop_assert_eq!(collector.push(Some(spaced.as_bytes())), abi::OK);
            } else if *take {
                prop_assert_eq!(collector.keep(0, index, 1), abi::OK);
            }
            emitted += usize::from(*take);
        }
        let items = collector.finish().unwrap();
        prop_assert_eq!(items.len(), emitted);
        let mut last = None;
        let wanted = chosen.iter().enumerate().filter(|(_, (take, _))| *take);
        for (item, (index, _)) in items.iter().zip(wanted) {
            let Emitted::Kept { list: 0, index: found } = item else {
                panic!("{item:?} is no message of the host's");
            };
            // The same text, and never behind what comes next.
            prop_assert_eq!(texts[*found], texts[index]);
            prop_assert!(last.is_none_or(|last| last < *found));
            last = Some(*found);
        }
    }
}

#[test]
fn a_repetition_has_the_hosts_bytes_and_no_identity_of_the_hosts() {
    // contract: HOOK-9, UID-7
    let host = Message::parse(r#"{"role":"user","content":"yes","message_uid":"u1"}"#).unwrap();
    let list = MessageList::stored(std::slice::from_ref(&host));
    let mut collector = Collector::new(Order::Any, vec![list]);
    for _ in 0..2 {
        collector.push(Some(br#"{"content":"yes","role":"user"}"#));
    }
    let items = collector.finish().unwrap();
    assert_eq!(items[0], Emitted::Kept { list: 0, index: 0 });
    let Emitted::Pushed(second) = &items[1] else {
        panic!("there is only one of it");
    };
    assert_eq!(second.stored(), host.stored());
    assert!(second.identity().is_empty());
}

#[test]
fn another_uid_makes_it_another_message() {
    // contract: UID-6
    let list = MessageList::stored(&[Message::parse(
        r#"{"role":"user","content":"yes","message_uid":"u1"}"#,
    )
    .unwrap()]);
    let mut collector = Collector::new(Order::Any, vec![list]);
    collector.push(Some(
        br#"{"role":"user","content":"yes","message_uid":"mine"}"#,
    ));
    collector.push(Some(
        br#"{"role":"user","content":"yes","message_uid":"u1"}"#,
    ));
    let items = collector.finish().unwrap();
    assert_eq!(indexes(&items), [None, Some((0, 0))]);
    let Emitted::Pushed(mine) = &items[0] else {
        panic!("it names another uid");
    };
    assert_eq!(mine.identity().uid.as_deref(), Some("mine"));
}
