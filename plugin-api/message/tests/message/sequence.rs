//! What belongs together in a list, and which rules it breaks.

use hermes_message::build::{assistant, calling, system, tool, user};
use hermes_message::format::read;
use hermes_message::sequence::{
    Group, GroupKind, Policy, Rule, Violation, callers, check, groups, introduced, result_uids,
    turns,
};
use hermes_message::{Identity, Message};

use crate::inputs::named;
use crate::texts::msg;

fn rules(messages: &[Message]) -> Vec<(usize, Rule)> {
    check(messages, Policy::Request)
        .into_iter()
        .map(|v| (v.message, v.rule))
        .collect()
}

fn call(id: &str) -> Message {
    calling(None, &[(id, "f", "{}")])
}

#[test]
fn groups_have_no_gaps_and_hold_results_with_their_calls() {
    let list = [
        system("s"),
        user("u"),
        call("a"),
        tool("a", "1"),
        tool("b", "2"),
        assistant("t"),
        tool("a", "3"),
        msg("{}"),
    ];
    let kinds: Vec<_> = groups(&list)
        .into_iter()
        .map(|Group { kind, range }| (kind, range))
        .collect();
    use GroupKind::{Assistant, Calls, Other, Results, System, User};
    assert_eq!(
        kinds,
        [
            (System, 0..1),
            (User, 1..2),
            (Calls, 2..5),
            (Assistant, 5..6),
            (Results, 6..7),
            (Other, 7..8)
        ]
    );
}

#[test]
fn turns_begin_with_users_and_reach_to_the_next() {
    let list = [
        system("s"),
        user("a"),
        user("b"),
        assistant("c"),
        call("x"),
        tool("x", ""),
        user("d"),
    ];
    assert_eq!(turns(&list), [1..6, 6..7]);
    assert!(turns(&[assistant("a")]).is_empty());
}

// case: 12
// contract: UID-8, UID-14
#[test]
fn a_reused_id_answers_the_call_of_its_own_group() {
    let with_uid = |uid: &str| {
        let map = format!(r#"{{"_tool_call_uids":{{"k":"{uid}"}}}}"#);
        call("k").replaced_identity(Identity::from_json(&map).expect("an object"))
    };
    let list = [
        user("go"),
        with_uid("1"),
        tool("k", "A ok"),
        with_uid("2"),
        tool("k", "B ok"),
        with_uid("3"),
        tool("k", "ALPHA BETA"),
        user("join"),
    ];
    assert_eq!(rules(&list), []);
    let expected = [None, None, Some(1), None, Some(3), None, Some(5), None];
    assert_eq!(callers(&list), expected);
    let uids: Vec<_> = result_uids(&list).into_iter().flatten().collect();
    assert_eq!(uids, [Box::from("1"), Box::from("2"), Box::from("3")]);

    // A replay has no open call: it is marked, not paired with an older turn.
    let mut replayed = list.to_vec();
    replayed.insert(7, tool("k", "ALPHA BETA"));
    assert_eq!(callers(&replayed)[7], None);
    assert_eq!(rules(&replayed), [(7, Rule::ResultWithoutCall)]);
}

// contract: UID-12, UID-13
#[test]
fn calls_that_share_an_id_in_one_message_each_take_one_result() {
    let identity =
        Identity::from_json(r#"{"_tool_call_uids":{"k":["1","2"],"m":"3"}}"#).expect("an object");
    let calls = calling(None, &[("k", "f", "1"), ("m", "f", "2"), ("k", "f", "3")])
        .replaced_identity(identity);
    let list = [
        user("u"),
        calls,
        tool("k", "a"),
        tool("k", "b"),
        tool("m", "c"),
        tool("k", "too many"),
    ];
    let uids: Vec<_> = result_uids(&list)
        .into_iter()
        .map(|uid| uid.map(String::from))
        .collect();
    let some = |uid: &str| Some(uid.to_owned());
    assert_eq!(uids[2..], [some("1"), some("2"), some("3"), None]);
    assert_eq!(rules(&list), [(5, Rule::ResultWithoutCall)]);
}

#[test]
fn each_rule_is_seen_where_it_is_broken() {
    let blank = || msg(r#"{"role":"assistant","content":null}"#);
    type Case = (Vec<Message>, Vec<(usize, Rule)>);
    let cases: Vec<Case> = vec![
        (vec![system("s"), user("u")], vec![]),
        (
            vec![
                system("s"),
                user("u"),
                call("a"),
                tool("a", "r"),
                assistant("b"),
            ],
            vec![],
        ),
        (vec![], vec![(0, Rule::NoUser)]),
        (
            vec![user("u"), system("s")],
            vec![(1, Rule::SystemNotFirst)],
        ),
        (
            vec![system("s"), system("t"), user("u")],
            vec![(1, Rule::SystemNotFirst)],
        ),
        (
            vec![system("s"), assistant("a"), user("u")],
            vec![(1, Rule::FirstNotUser)],
        ),
        (vec![user("u"), user("v")], vec![(1, Rule::AdjacentUsers)]),
        (
            vec![user("u"), assistant("a"), call("c"), tool("c", "r")],
            vec![(2, Rule::AdjacentAssistants)],
        ),
        (
            vec![user("u"), call("c"), user("v")],
            vec![(1, Rule::CallWithoutResult)],
        ),
        (
            vec![user("u"), call("c"), tool("d", "r")],
            vec![(1, Rule::CallWithoutResult), (2, Rule::ResultWithoutCall)],
        ),
        (
            vec![
                user("u"),
                call("c"),
                msg(r#"{"role":"tool","content":"r"}"#),
            ],
            vec![(2, Rule::ResultIdDiffers)],
        ),
        (
            vec![user("u"), call("c|x"), tool("c", "r")],
            vec![(2, Rule::ResultIdDiffers)],
        ),
        (vec![user("u"), blank()], vec![(1, Rule::EmptyContent)]),
        (
            vec![user("u"), call("c"), tool("c", " ")],
            vec![(2, Rule::EmptyContent)],
        ),
        (
            vec![msg(r#"{"role":"user","content":{"a":1}}"#)],
            vec![(0, Rule::ContentShape)],
        ),
        (
            vec![
                user("u"),
                msg(r#"{"role":"assistant","content":"a","tool_calls":[]}"#),
            ],
            vec![(1, Rule::EmptyToolCalls)],
        ),
        (
            vec![user("u"), msg(r#"{"role":"critic","content":"a"}"#)],
            vec![(1, Rule::UnknownRole)],
        ),
    ];
    for (list, expected) in cases {
        assert_eq!(rules(&list), expected, "{list:?}");
    }
    let history = [assistant("a"), user("u"), user("v"), blank(), system("s")];
    assert_eq!(check(&history, Policy::Transcript), []);
    assert_eq!(check(&[user("u"), call("c")], Policy::Transcript).len(), 1);
}

// case: 6
#[test]
fn an_engine_answers_only_for_faults_that_are_new() {
    let before = vec![user("u"), user("v"), call("c"), assistant("a")];
    assert_eq!(introduced(&before, &before, Policy::Request), []);
    let fault = |message, rule| Violation { message, rule };
    let after = vec![
        before[1].clone(),
        before[0].clone(),
        before[2].clone(),
        before[3].clone(),
    ];
    assert_eq!(
        introduced(&before, &after, Policy::Request),
        [fault(1, Rule::AdjacentUsers)]
    );
    let after = vec![before[0].clone(), assistant("new"), before[3].clone()];
    assert_eq!(
        introduced(&before, &after, Policy::Request),
        [fault(2, Rule::AdjacentAssistants)]
    );
    assert_eq!(
        introduced(&before, &[], Policy::Request),
        [fault(0, Rule::NoUser)]
    );

    let identity = Identity::of_uid("m");
    let good = calling(
        None,
        &[
            ("c", "write", r#"{"path":"n.md"}"#),
            ("d", "write", "{not json"),
        ],
    );
    let good = good.replaced_identity(identity);
    let cut = hermes_message::build::with_tool_arguments(&good, 0, r#"{"path":"n"#);
    let list = |call: &Message| vec![user("u"), call.clone(), tool("c", "1"), tool("d", "2")];
    assert_eq!(
        introduced(&list(&good), &list(&cut), Policy::Request),
        [fault(1, Rule::ArgumentsBroken)]
    );
    let other = hermes_message::build::with_tool_arguments(&good, 1, "{still none");
    assert_eq!(introduced(&list(&good), &list(&other), Policy::Request), []);
}

// case: 12
#[test]
fn every_result_of_the_recorded_dialogues_with_reused_ids_has_its_own_caller() {
    for prefix in ["01", "04"] {
        let Some(bytes) = named(prefix) else { return };
        let mut reused = 0;
        for conversation in read(&bytes).expect("readable").conversations {
            let messages = &conversation.messages;
            let mut ids = std::collections::HashMap::new();
            for (at, caller) in callers(messages).into_iter().enumerate() {
                let Some(id) = messages[at].tool_call_id() else {
                    continue;
                };
                let caller = caller.expect("a recorded result answers a call");
                assert!(
                    messages[caller]
                        .tool_calls()
                        .iter()
                        .any(|call| &*call.id == id)
                );
                assert!(
                    messages[caller + 1..at]
                        .iter()
                        .all(|m| m.tool_call_id().is_some())
                );
                let is_new = ids
                    .insert(id, caller)
                    .is_none_or(|earlier| earlier == caller);
                reused += usize::from(!is_new);
            }
        }
        assert!(reused > 0, "the file has ids that come again");
    }
}
