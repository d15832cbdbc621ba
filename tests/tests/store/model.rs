//! Random histories against a model that is nothing but lists.

use std::collections::HashSet;
use std::time::Duration;

use hermes::store::{Mark, NewSession, Store};
use hermes_message::{Message, Role};
use proptest::prelude::*;

use crate::support::*;

#[derive(Debug, Clone)]
enum Op {
    /// A turn of this shape.
    Append(u8),
    /// Another handle writes a turn that the caller has not seen.
    Foreign(u8),
    /// A message gets another text.
    Rewrite(u8),
    /// A message is folded into the one before it.
    Fold(u8),
    /// Save without a change.
    SaveAgain,
    /// Drop one message and write all rows anew.
    Replace(u8),
    /// Keep head and tail, put a summary between; while it works, somebody else may write.
    Compact {
        head: u8,
        tail: u8,
        engine_uid: bool,
        foreign: bool,
        rotate: bool,
    },
    /// A pass whose result comes too late.
    LatePass,
    Branch,
    Rewind(u8),
    Reopen,
    ExportImport,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u8..6).prop_map(Op::Append),
        1 => (0u8..6).prop_map(Op::Foreign),
        2 => any::<u8>().prop_map(Op::Rewrite),
        1 => any::<u8>().prop_map(Op::Fold),
        1 => Just(Op::SaveAgain),
        1 => any::<u8>().prop_map(Op::Replace),
        4 => (0u8..4, 0u8..6, any::<bool>(), any::<bool>(), prop::bool::weighted(0.3)).prop_map(
            |(head, tail, engine_uid, foreign, rotate)| Op::Compact { head, tail, engine_uid, foreign, rotate }
        ),
        1 => Just(Op::LatePass),
        1 => Just(Op::Branch),
        3 => (1u8..4).prop_map(Op::Rewind),
        1 => Just(Op::Reopen),
        1 => Just(Op::ExportImport),
    ]
}

/// A committed pass: what an undo over it brings back, and how many live messages it wrote.
#[derive(Clone, Debug)]
struct Pass {
    session: String,
    before: Vec<Message>,
    written: usize,
    id: String,
}

struct World {
    home: Home,
    store: Store,
    session: String,
    live: Vec<Message>,
    /// Messages at the end of `live` that the caller has not seen.
    unseen: usize,
    mark: Mark,
    passes: Vec<Pass>,
    /// The pass that a branch's transcript rests on.
    base_pass: Option<String>,
    minted: HashSet<String>,
    /// Every version that was ever live and never overwritten.
    versions: HashSet<(String, String)>,
    counter: usize,
}

impl World {
    fn new() -> Self {
        let home = Home::new();
        let store = home.open();
        let session = session(&store);
        Self {
            home,
            store,
            session,
            live: Vec::new(),
            unseen: 0,
            mark: Mark::default(),
            passes: Vec::new(),
            base_pass: None,
            minted: HashSet::new(),
            versions: HashSet::new(),
            counter: 0,
        }
    }

    fn turn(&mut self, shape: u8) -> Vec<Message> {
        self.counter += 1;
        let n = self.counter;
        match shape {
            0 => vec![user("same"), assistant("same")],
            1 => vec![
                user(&format!("q{n}")),
                calls(&["c"]),
                result("c", &format!("r{n}")),
                assistant(&format!("a{n}")),
            ],
            2 => vec![
                user(&format!("q{n}")),
                calls(&["x", "x"]),
                result("x", "1"),
                result("x", "2"),
            ],
            3 => vec![message(&format!(
                r#"{{"content":[{{"type":"text","text":"list {n}"}}],"role":"user","k":1.50}}"#
            ))],
            4 => vec![
                user("漢字\u{2028} \u{1F468}\u{200D}\u{1F469}"),
                assistant(""),
            ],
            _ => vec![user(&format!("q{n}")), calls(&["late"])],
        }
    }

    fn learn(&mut self, fresh: &[Message]) {
        for message in fresh {
            assert!(is_uid(&uid(message)));
            assert!(self.minted.insert(uid(message)), "a uid was minted twice");
        }
        self.remember(fresh);
    }

    fn remember(&mut self, messages: &[Message]) {
        self.versions
            .extend(messages.iter().map(|m| (uid(m), m.stored().to_string())));
    }

    /// The caller reads what it has not seen.
    fn refresh(&mut self) {
        let back = self.store.resume(&self.session).unwrap();
        self.mark = back.mark;
        self.unseen = 0;
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Append(shape) => {
                let mut turn = self.turn(*shape);
                let foreign = self
                    .store
                    .append(&self.session, &mut turn, &mut self.mark)
                    .unwrap()
                    .foreign;
                assert_eq!(foreign, self.unseen_behind());
                self.learn(&turn);
                self.live.extend(turn);
                if self.unseen > 0 {
                    // Unseen messages are not at the end any more; the model does not follow that further.
                    self.refresh();
                }
            }
            Op::Foreign(shape) => {
                let mut turn = self.turn(*shape);
                let other = self.home.open();
                let mut mark = other.resume(&self.session).unwrap().mark;
                other.append(&self.session, &mut turn, &mut mark).unwrap();
                self.learn(&turn);
                self.unseen += turn.len();
                self.live.extend(turn);
            }
            Op::Rewrite(at) => {
                let seen = self.live.len() - self.unseen;
                if seen == 0 {
                    return;
                }
                let at = usize::from(*at) % seen;
                self.counter += 1;
                let old = self.live[at].clone();
                // A rewrite is of the text; calls and the id that a result answers stay.
                let mut value: serde_json::Value = serde_json::from_str(old.stored()).unwrap();
                value["content"] = format!("version {}", self.counter).into();
                let mut list = self.live[..seen].to_vec();
                list[at] = old.rewritten(&value.to_string()).unwrap();
                let saved = self
                    .store
                    .save(&self.session, &mut list, &self.mark)
                    .unwrap();
                assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 1, 0));
                self.mark = saved.mark;
                self.overwritten(&old);
                self.remember(&list[at..=at]);
                self.live[..seen].clone_from_slice(&list);
            }
            Op::Fold(at) => {
                let seen = self.live.len() - self.unseen;
                let pairs: Vec<usize> = (1..seen)
                    .filter(|i| {
                        [i - 1, *i].iter().all(|j| {
                            self.live[*j].role() == Role::User
                                && self.live[*j]
                                    .raw_content()
                                    .is_some_and(|c| c.starts_with('"'))
                        })
                    })
                    .collect();
                if pairs.is_empty() {
                    return;
                }
                let at = pairs[usize::from(*at) % pairs.len()];
                let (first, second) = (self.live[at - 1].clone(), self.live[at].clone());
                let mut identity = first.identity().clone();
                identity.absorb(second.identity());
                let text = format!("{}\n\n{}", first.text(), second.text());
                let folded = user(&text).replaced_identity(identity);
                let mut list = self.live[..seen].to_vec();
                list[at - 1] = folded.clone();
                list.remove(at);
                let saved = self
                    .store
                    .save(&self.session, &mut list, &self.mark)
                    .unwrap();
                assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 1, 1));
                self.mark = saved.mark;
                self.overwritten(&first);
                self.remember(std::slice::from_ref(&folded));
                self.live[at - 1] = folded;
                self.live.remove(at);
                self.shrink_border(at);
            }
            Op::SaveAgain => {
                let seen = self.live.len() - self.unseen;
                let mut list = self.live[..seen].to_vec();
                let saved = self
                    .store
                    .save(&self.session, &mut list, &self.mark)
                    .unwrap();
                assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 0, 0));
                assert_eq!(saved.mark, self.mark);
            }
            Op::Replace(at) => {
                let seen = self.live.len() - self.unseen;
                if seen < 2 {
                    return;
                }
                let at = usize::from(*at) % seen;
                let mut list = self.live[..seen].to_vec();
                list.remove(at);
                self.mark = self
                    .store
                    .replace_messages(&self.session, &mut list, &self.mark)
                    .unwrap()
                    .mark;
                self.live.remove(at);
                self.shrink_border(at);
            }
            Op::Compact {
                head,
                tail,
                engine_uid,
                foreign,
                rotate,
            } => {
                self.compact(
                    usize::from(*head),
                    usize::from(*tail),
                    *engine_uid,
                    *foreign,
                    *rotate,
                );
            }
            Op::LatePass => {
                if self.live.len() == self.unseen {
                    return;
                }
                let lock = self
                    .store
                    .begin_pass(&self.session, &self.mark, "slow", Duration::from_secs(60))
                    .unwrap();
                let seen = self.live.len() - self.unseen;
                let mut list = self.live[..seen].to_vec();
                self.counter += 1;
                list[0] = list[0]
                    .rewritten(user(&format!("changed under pass {}", self.counter)).stored())
                    .unwrap();
                let old = self.live[0].clone();
                self.mark = self
                    .store
                    .save(&self.session, &mut list, &self.mark)
                    .unwrap()
                    .mark;
                self.overwritten(&old);
                self.live[0] = list[0].clone();
                self.remember(&list[..1]);
                let late = self
                    .store
                    .commit_in_place(&lock, "late", &[summary("late")]);
                assert!(matches!(
                    late,
                    Err(hermes::store::StoreError::PassSuperseded { .. })
                ));
                self.store.end_pass(&lock).unwrap();
            }
            Op::Branch => {
                let branch = self
                    .store
                    .branch(&self.session, &NewSession::default())
                    .unwrap();
                assert_eq!(branch.messages, self.live);
                self.session = branch.session.id;
                self.mark = branch.mark;
                self.unseen = 0;
                self.base_pass = self.last_pass();
                self.passes.clear();
            }
            Op::Rewind(turns) => self.rewind(usize::from(*turns)),
            Op::Reopen => self.store = self.home.open(),
            Op::ExportImport => self.export_import(),
        }
    }

    fn last_pass(&self) -> Option<String> {
        self.passes
            .last()
            .map(|pass| pass.id.clone())
            .or_else(|| self.base_pass.clone())
    }

    /// How many of the caller's unseen messages the store meets now.
    fn unseen_behind(&self) -> usize {
        self.unseen
    }

    fn overwritten(&mut self, old: &Message) {
        self.versions.remove(&(uid(old), old.stored().to_string()));
    }

    fn shrink_border(&mut self, removed: usize) {
        if let Some(pass) = self.passes.last_mut()
            && removed < pass.written
        {
            pass.written -= 1;
        }
    }

    fn compact(&mut self, head: usize, tail: usize, engine_uid: bool, foreign: bool, rotate: bool) {
        let seen = self.live.len() - self.unseen;
        if seen == 0 {
            return;
        }
        self.counter += 1;
        let pass_id = format!("pass-{}", self.counter);
        let head = head.min(seen);
        let tail = tail.min(seen - head);
        let mut note = summary(&format!("summary {}", self.counter));
        if engine_uid {
            note = note.replaced_identity(hermes_message::Identity::of_uid(&format!(
                "engine-{}",
                self.counter
            )));
        }
        let mut result = self.live[..head].to_vec();
        result.push(note);
        result.extend_from_slice(&self.live[seen - tail..seen]);
        let lock = self
            .store
            .begin_pass(&self.session, &self.mark, "t", Duration::from_secs(60))
            .unwrap();
        assert_eq!(lock.watermark, self.mark.last_row);
        if foreign {
            self.apply(&Op::Foreign(1));
        }
        let arrived = self.live[seen..].to_vec();
        let done = if rotate {
            self.store
                .commit_rotation(&lock, &pass_id, &NewSession::default(), &result)
                .unwrap()
        } else {
            self.store
                .commit_in_place(&lock, &pass_id, &result)
                .unwrap()
        };
        self.store.end_pass(&lock).unwrap();
        assert_eq!((done.tail, done.archived), (arrived.len(), seen));
        assert_eq!(done.messages.len(), result.len() + arrived.len());
        let written = &done.messages[..result.len()];
        for (new, wanted) in written.iter().zip(&result) {
            assert_eq!(new.stored(), wanted.stored());
            match &wanted.identity().uid {
                Some(_) => assert_eq!(new.identity(), wanted.identity()),
                None => self.learn(std::slice::from_ref(new)),
            }
        }
        self.remember(written);
        assert_eq!(done.messages[result.len()..], arrived[..]);
        self.passes.push(Pass {
            session: self.session.clone(),
            before: self.live[..seen].to_vec(),
            written: result.len(),
            id: pass_id,
        });
        if rotate {
            // The border belongs to the child; older passes are behind the rotation.
            assert_ne!(done.session, self.session);
        }
        self.session = done.session;
        self.live = done.messages;
        self.mark = done.mark;
        self.unseen = 0;
    }

    fn rewind(&mut self, turns: usize) {
        let (mut live, mut passes, mut session) =
            (self.live.clone(), self.passes.clone(), self.session.clone());
        let mut left = turns;
        let possible = loop {
            let border = passes.last().map_or(0, |pass| pass.written);
            let here: Vec<usize> = (border.min(live.len())..live.len())
                .filter(|i| is_turn(&live[*i]))
                .collect();
            if here.len() >= left {
                live.truncate(here[here.len() - left]);
                break true;
            }
            left -= here.len();
            let Some(pass) = passes.pop() else {
                break false;
            };
            live = pass.before;
            session = pass.session;
        };
        match self.store.rewind(&self.session, turns) {
            Ok(done) => {
                assert!(possible);
                assert_eq!(done.messages, live);
                assert_eq!(done.session, session);
                self.live = live;
                self.passes = passes;
                self.session = done.session;
                self.mark = done.mark;
                self.unseen = 0;
            }
            Err(error) => assert!(!possible, "{error}"),
        }
    }

    fn export_import(&mut self) {
        let ids = self.store.lineage(&self.session).unwrap();
        let lines: Vec<String> = ids
            .iter()
            .map(|id| self.store.export(id).unwrap())
            .collect();
        let other = Home::new();
        let store = other.open();
        // Whatever the first session came from (a branch's parent) is not in this file.
        let file = lines.join("\n");
        let report = store.import(file.as_bytes(), &mut |_, _, _| {}).unwrap();
        assert_eq!(report.imported.len(), ids.len());
        assert_eq!(store.resume(&self.session).unwrap().messages, self.live);
        for (id, line) in ids.iter().zip(&lines) {
            let again = store.export(id).unwrap();
            if report.detached.contains(id) {
                assert!(line.len() >= again.len());
            } else {
                assert_eq!(&again, line);
            }
        }
        assert!(
            store
                .import(file.as_bytes(), &mut |_, _, _| {})
                .unwrap()
                .imported
                .is_empty()
        );
    }

    fn look(&self) {
        let back = self.store.resume(&self.session).unwrap();
        assert_eq!(back.messages, self.live);
        assert_eq!(
            back.session.message_count,
            i64::try_from(self.live.len()).unwrap()
        );
        assert_eq!(back.session.last_pass_id, self.last_pass(), "PASS-11");
        // Nothing that was ever live is lost: it is in some row of some session.
        let mut there = HashSet::new();
        for session in self.store.sessions(0).unwrap() {
            for row in self.store.messages(&session.id, true).unwrap() {
                there.insert((uid(&row.message), row.message.stored().to_string()));
            }
        }
        for version in &self.versions {
            assert!(there.contains(version), "lost: {version:?}");
        }
    }
}

fn is_turn(message: &Message) -> bool {
    message.role() == Role::User && !message.has(hermes_message::flags::SUMMARY)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // contract: UID-1, UID-2, UID-3, UID-4, UID-5, UID-6, UID-7, UID-8, UID-12, UID-14, UID-15, UID-19, PASS-7, PASS-11
    #[test]
    fn every_history_agrees_with_the_model(ops in prop::collection::vec(op(), 1..16)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
            world.look();
        }
        assert_clean(&world.store);
    }
}
