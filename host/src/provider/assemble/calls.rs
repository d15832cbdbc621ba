//! Tool calls, put together from pieces.
//!
//! The protocol says: each piece carries the `index` of its call, the first one its id and name. Servers leave out the
//! index, send the same index for every call, repeat id and name with each piece, or send whole calls without an id.

use serde_json::{Map, Value};

use super::Delta;
use super::halves::{self, Text};

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Text,
    announced: bool,
    /// Members that the protocol does not know and the provider may want back, such as signatures.
    more: Map<String, Value>,
    more_of_function: Map<String, Value>,
}

/// What could be made of the calls.
pub(super) struct Made {
    /// The value of `tool_calls`.
    pub(super) list: Vec<Value>,
    /// Calls without a name: nobody can carry those out.
    pub(super) nameless: usize,
    /// The last call's arguments are cut off.
    pub(super) torn: bool,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the value of `tool_calls` of a piece or of a whole message.
    pub(super) fn take(&mut self, list: Value, halves: bool, on: &mut dyn FnMut(Delta<'_>)) {
        match list {
            Value::Array(pieces) => pieces
                .into_iter()
                .for_each(|piece| self.piece(piece, halves, on)),
            // One call without its list.
            piece @ Value::Object(_) => self.piece(piece, halves, on),
            _ => {}
        }
    }

    /// Takes the older `function_call`, of which a message has one at most.
    pub(super) fn take_function(
        &mut self,
        function: Value,
        halves: bool,
        on: &mut dyn FnMut(Delta<'_>),
    ) {
        if function.is_object() {
            let mut piece = Map::new();
            piece.insert("index".into(), 0.into());
            piece.insert("function".into(), function);
            self.piece(Value::Object(piece), halves, on);
        }
    }

    fn piece(&mut self, piece: Value, halves: bool, on: &mut dyn FnMut(Delta<'_>)) {
        let Value::Object(mut piece) = piece else {
            return;
        };
        let index = piece.remove("index").and_then(|index| index.as_u64());
        let id = text(piece.remove("id"));
        piece.remove("type");
        let mut function = match piece.remove("function") {
            Some(Value::Object(function)) => function,
            _ => Map::new(),
        };
        let name = text(function.remove("name").or_else(|| piece.remove("name")));
        let arguments = match function
            .remove("arguments")
            .or_else(|| piece.remove("arguments"))
        {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            // Some servers send the object itself.
            Some(mut value) => {
                if halves {
                    halves::clean(&mut value);
                }
                value.to_string()
            }
        };

        let at = match self.belongs_to(index, &id, &name) {
            Some(at) => at,
            None => {
                self.0.push(Call {
                    index,
                    ..Call::default()
                });
                self.0.len() - 1
            }
        };
        let call = &mut self.0[at];
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        } else if call.name != name && call.arguments.so_far().is_empty() {
            call.name.push_str(&name);
        }
        call.arguments.push(&arguments, halves);
        merge(&mut call.more, piece, halves);
        merge(&mut call.more_of_function, function, halves);
        if !call.announced && !call.name.is_empty() {
            call.announced = true;
            on(Delta::ToolCall(&call.name));
        }
    }

    /// The call that a piece goes on with; `None` if it begins a new one.
    fn belongs_to(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index)?,
            None if id.is_empty() => self.0.len().checked_sub(1)?,
            None => self.0.iter().rposition(|call| call.id == id)?,
        };
        let call = &self.0[at];
        let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
        if other_id {
            return None;
        }
        // A name again, without an index: a repetition as long as the arguments are not whole, else the next call.
        if index.is_none() && !name.is_empty() && !call.name.is_empty() {
            let whole = is_object(call.arguments.so_far());
            if whole || (call.name != name && !call.arguments.so_far().is_empty()) {
                return None;
            }
        }
        Some(at)
    }

    /// The calls as a message has them. `only_complete` leaves out those whose arguments are no JSON object.
    pub(super) fn make(self, only_complete: bool) -> Made {
        let mut made = Made {
            list: Vec::new(),
            nameless: 0,
            torn: false,
        };
        for mut call in self.0 {
            if call.name.is_empty() {
                made.nameless += 1;
                continue;
            }
            let mut arguments = call.arguments.end();
            if arguments.trim().is_empty() && !only_complete {
                // No arguments at all; an empty text is refused when it is sent back.
                arguments = "{}".to_owned();
            }
            made.torn = !is_object(&arguments);
            if only_complete && made.torn {
                continue;
            }
            if call.id.is_empty() {
                let position = made.list.len();
                call.id = hermes_message::made_call_id(&call.name, &arguments, position);
            }
            let mut function = Map::new();
            function.insert("name".into(), call.name.into());
            function.insert("arguments".into(), arguments.into());
            function.extend(call.more_of_function);
            let mut entry = Map::new();
            entry.insert("id".into(), call.id.into());
            entry.insert("type".into(), "function".into());
            entry.insert("function".into(), function.into());
            entry.extend(call.more);
            made.list.push(entry.into());
        }
        made
    }
}

fn merge(into: &mut Map<String, Value>, more: Map<String, Value>, halves: bool) {
    for (key, mut value) in more {
        if halves {
            halves::clean(&mut value);
        }
        if !value.is_null() && !matches!(&*key, "id" | "type" | "function" | "name" | "arguments") {
            into.insert(key, value);
        }
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn calls(pieces: &[Value]) -> (Vec<(String, String, String)>, Vec<String>) {
        let mut calls = Calls::default();
        let mut heard = Vec::new();
        for piece in pieces {
            calls.take(json!([piece]), false, &mut |delta| {
                if let Delta::ToolCall(name) = delta {
                    heard.push(name.to_owned());
                }
            });
        }
        let field = |value: &Value| value.as_str().expect("text").to_owned();
        let list = calls.make(false).list;
        let of = |v: &Value| {
            (
                field(&v["id"]),
                field(&v["function"]["name"]),
                field(&v["function"]["arguments"]),
            )
        };
        (list.iter().map(of).collect(), heard)
    }

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    fn want(list: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        let own = |t: &(&str, &str, &str)| (t.0.to_owned(), t.1.to_owned(), t.2.to_owned());
        list.iter().map(own).collect()
    }

    // contract: UID-8, UID-12
    #[test]
    fn every_way_to_cut_two_calls_gives_two_calls() {
        let two = want(&[("a", "f", "{\"x\":1}"), ("b", "g", "{}")]);
        let by_the_book = [
            piece(Some(0), "a", "f", ""),
            piece(Some(0), "", "", "{\"x\""),
            piece(Some(1), "b", "g", "{}"),
            piece(Some(0), "", "", ":1}"),
        ];
        assert_eq!(calls(&by_the_book).0, two);
        assert_eq!(calls(&by_the_book).1, ["f", "g"]);
        let without_index = [
            piece(None, "a", "f", "{\"x\""),
            piece(None, "", "", ":1}"),
            piece(None, "b", "g", "{}"),
        ];
        assert_eq!(calls(&without_index).0, two);
        let one_index_for_all = [
            piece(Some(0), "a", "f", "{\"x\":1}"),
            piece(Some(0), "b", "g", "{}"),
        ];
        assert_eq!(calls(&one_index_for_all).0, two);
        let everything_repeated = [
            piece(Some(0), "a", "f", "{\"x\""),
            piece(Some(0), "a", "f", ":1}"),
            piece(Some(1), "b", "g", "{"),
            piece(Some(1), "b", "g", "}"),
        ];
        assert_eq!(calls(&everything_repeated).0, two);
        assert_eq!(calls(&everything_repeated).1, ["f", "g"]);
        let repeated_without_index = [
            piece(None, "a", "f", "{\"x\""),
            piece(None, "a", "f", ":1}"),
            piece(None, "b", "g", "{}"),
        ];
        assert_eq!(calls(&repeated_without_index).0, two);
    }

    #[test]
    fn ids_that_repeat_stay_and_missing_ones_are_made() {
        let same = [
            piece(Some(0), "a", "f", "{}"),
            piece(Some(1), "a", "f", "{}"),
        ];
        assert_eq!(calls(&same).0, want(&[("a", "f", "{}"), ("a", "f", "{}")]));
        let same_without_index = [piece(None, "a", "f", "{}"), piece(None, "a", "f", "{}")];
        assert_eq!(calls(&same_without_index).0.len(), 2);
        let none = [piece(None, "", "f", "{}"), piece(None, "", "f", "{}")];
        let (first, second) = (calls(&none).0, calls(&none).0);
        assert_eq!(first, second);
        assert_ne!(first[0].0, first[1].0);
        assert!(first[0].0.starts_with("call_") && first[0].0.len() == 17);
    }

    #[test]
    fn odd_pieces_do_no_harm() {
        let odd = [
            json!(null),
            json!(3),
            json!({"index": -1, "id": 7, "function": {"name": "f", "arguments": {"a": 1}}}),
            json!({"function": "x"}),
        ];
        assert_eq!(calls(&odd).0, want(&[("7", "f", "{\"a\":1}")]));
        let mut nameless = Calls::default();
        nameless.take(
            json!([{"id": "a", "function": {"arguments": "{}"}}]),
            false,
            &mut |_| {},
        );
        assert_eq!(nameless.make(false).nameless, 1);
        let kept =
            json!({"id":"a","function":{"name":"f","arguments":""},"extra_content":{"s":"x"}});
        let mut calls = Calls::default();
        calls.take(json!([kept]), false, &mut |_| {});
        let list = calls.make(false).list;
        assert_eq!(list[0]["extra_content"]["s"], "x");
        assert_eq!(list[0]["function"]["arguments"], "{}");
    }
}
