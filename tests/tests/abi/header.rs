//! Reads `hermes_engine.h` as text: its structs with their fields and types, its constants, its functions.
//! It understands the plain style that the header is written in, and no more.

use std::collections::BTreeMap;

/// A field and its type, written as Rust would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: String,
}

/// What the header declares. Struct names have no `hermes_` in front, constants no `HERMES_`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) structs: BTreeMap<String, Vec<Field>>,
    pub(crate) constants: BTreeMap<String, String>,
    pub(crate) functions: Vec<String>,
}

impl Header {
    pub(crate) fn parse(text: &str) -> Self {
        let text = without_comments(text);
        let mut header = Self::default();
        for line in text.lines() {
            if let Some((name, value)) = line
                .strip_prefix("#define HERMES_")
                .and_then(|rest| rest.split_once(' '))
                .filter(|(name, _)| !name.contains('('))
            {
                let value = value.trim().trim_matches(['(', ')']).trim_end_matches('u');
                if value == "UINT32_MAX" || value.parse::<i64>().is_ok() {
                    header.constants.insert(name.into(), value.into());
                }
            } else if line.starts_with("HERMES_EXPORT ") {
                header.functions.push(line.trim().into());
            }
        }
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once("struct hermes_") {
            rest = after;
            let name: String = after.chars().take_while(|c| is_word(*c)).collect();
            let Some(body) = after[name.len()..].trim_start().strip_prefix('{') else {
                continue;
            };
            let (body, after) = body.split_once('}').expect("a struct has an end");
            let fields = body.split(';').map(str::trim).filter(|d| !d.is_empty());
            header
                .structs
                .insert(name, fields.flat_map(fields_of).collect());
            rest = after;
        }
        header
    }

    /// What of `self` is gone or different in a later header, one line each.
    pub(crate) fn lost_in(&self, later: &Self) -> Vec<String> {
        let mut lost = Vec::new();
        for (name, fields) in &self.structs {
            let now = later.structs.get(name).map_or(&[][..], Vec::as_slice);
            for (at, field) in fields.iter().enumerate() {
                if now.get(at) != Some(field) {
                    lost.push(format!(
                        "{name}: field {at} was {field:?}, is {:?}",
                        now.get(at)
                    ));
                }
            }
        }
        for (name, value) in self.constants.iter().filter(|(n, _)| *n != "ABI_MINOR") {
            if later.constants.get(name) != Some(value) {
                let now = later.constants.get(name);
                lost.push(format!("HERMES_{name} was {value}, is {now:?}"));
            }
        }
        for function in &self.functions {
            if !later.functions.contains(function) {
                lost.push(format!("not there any more: {function}"));
            }
        }
        lost
    }
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = after.split_once("*/").expect("a comment has an end").1;
    }
    plain + rest
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// One declaration: a function pointer, or one or more variables.
fn fields_of(declaration: &str) -> Vec<Field> {
    if let Some((result, rest)) = declaration.split_once("(*") {
        let (name, parameters) = rest.split_once(')').expect("a name in parentheses");
        let parameters: Vec<String> = parameters
            .trim()
            .trim_start_matches('(')
            .trim_end_matches(')')
            .split(',')
            .map(|parameter| variable(parameter).ty)
            .collect();
        let result = match result.trim() {
            "void" => String::new(),
            result => format!(" -> {}", variable(&format!("{result} _")).ty),
        };
        return vec![Field {
            name: name.into(),
            ty: format!(
                "Option<unsafe extern \"C\" fn({}){result}>",
                parameters.join(", ")
            ),
        }];
    }
    let mut base = "";
    let mut fields = Vec::new();
    for (at, part) in declaration.split(',').enumerate() {
        if at == 0 {
            base = part.trim_end_matches(is_word).trim_end_matches(['*', ' ']);
            fields.push(variable(part));
        } else {
            fields.push(variable(&format!("{base} {part}")));
        }
    }
    fields
}

/// `const hermes_host *host` as a name and a Rust type.
fn variable(text: &str) -> Field {
    let text = text.trim();
    let ty = text.trim_end_matches(is_word);
    let name = &text[ty.len()..];
    let stars = ty.matches('*').count();
    let ty = ty.replace('*', " ");
    let (constant, base) = match ty.trim().strip_prefix("const ") {
        Some(base) => (true, base.trim()),
        None => (false, ty.trim()),
    };
    let mut rust = match base {
        "void" => "c_void".into(),
        "char" => std::any::type_name::<std::ffi::c_char>().into(),
        "uint8_t" => "u8".into(),
        "uint16_t" => "u16".into(),
        "uint32_t" => "u32".into(),
        "uint64_t" => "u64".into(),
        "int64_t" => "i64".into(),
        "hermes_status" => "i32".into(),
        "size_t" => "usize".into(),
        "double" => "f64".into(),
        other => camel(other.strip_prefix("hermes_").expect("a type of the border")),
    };
    for star in 0..stars {
        let kind = if constant && star == 0 {
            "*const"
        } else {
            "*mut"
        };
        rust = format!("{kind} {rust}");
    }
    Field {
        name: name.into(),
        ty: rust,
    }
}

/// `engine_vtable` as `EngineVtable`.
pub(crate) fn camel(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let (first, rest) = word.split_at(1);
            [first.to_ascii_uppercase(), rest.into()]
        })
        .collect()
}
