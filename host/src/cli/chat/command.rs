//! What a line of the user's is: a message, or a command that begins with a slash.

/// A line, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Nothing to do.
    Empty,
    /// Something to say to the model.
    Message(String),
    /// A command.
    Command(Command),
    /// A command that does not exist, or not like this: a sentence about it.
    Wrong(String),
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Compress(Option<String>),
    New,
    Resume(Option<String>),
    Branch,
    Rewind(usize),
    Model(Option<String>),
    Status,
    Tools,
    Engine(Vec<String>),
    Export(Option<String>),
    Help,
    Quit,
}

/// Name, arguments, and what it does; the order is that of the help.
const COMMANDS: [(&str, &str, &str); 13] = [
    (
        "compress",
        "[FOCUS]",
        "compress the context now; the summary favours FOCUS",
    ),
    ("new", "", "end this session and begin an empty one"),
    ("reset", "", "the same as /new"),
    (
        "resume",
        "[ID]",
        "go on with a stored session; without ID the newest are listed",
    ),
    ("branch", "", "go on in a copy of this session"),
    ("rewind", "[N]", "take the last N turns back (default 1)"),
    ("model", "[NAME]", "talk to another model from now on"),
    (
        "status",
        "",
        "show the session, the model, and how full the context is",
    ),
    ("tools", "", "list what the model can call"),
    (
        "engine",
        "[WORDS]",
        "show the context engine, or give it a command of its own",
    ),
    (
        "export",
        "[FILE]",
        "write this session to a file, for `hermes sessions import`",
    ),
    ("help", "", "show this list"),
    ("quit", "", "end the session and leave"),
];

/// The names of all commands, with their slash.
pub(super) fn names() -> impl Iterator<Item = String> {
    COMMANDS.iter().map(|(name, ..)| format!("/{name}"))
}

/// The list for `/help`.
pub(super) fn help(engine: &str) -> String {
    let mut text = String::new();
    for (name, arguments, what) in COMMANDS {
        let head = format!("/{name} {arguments}");
        text.push_str(&format!("{head:<18} {what}\n"));
    }
    let own = format!("/{engine} WORDS");
    text.push_str(&format!("{own:<18} the same as /engine WORDS\n"));
    text.push_str("A message that begins with a slash is sent with two.");
    text
}

/// Understands a line. `engine` is the name of the engine that serves: it is the engine's own command, too.
pub(super) fn parse(line: &str, engine: &str) -> Line {
    let text = line.trim();
    if text.is_empty() {
        return Line::Empty;
    }
    let Some(rest) = text.strip_prefix('/') else {
        return Line::Message(text.to_owned());
    };
    if rest.starts_with('/') {
        return Line::Message(rest.to_owned());
    }
    let (word, rest) = rest
        .split_once(char::is_whitespace)
        .map_or((rest, ""), |(word, rest)| (word, rest.trim()));
    // A path at the beginning of a message is no command.
    if word.contains('/') {
        return Line::Message(text.to_owned());
    }
    let rest_or_none = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
    let bare = |command: Command| {
        if rest.is_empty() {
            Line::Command(command)
        } else {
            Line::Wrong(format!("/{word} takes nothing behind it"))
        }
    };
    match word.to_lowercase().as_str() {
        "compress" => Line::Command(Command::Compress(rest_or_none())),
        "new" | "reset" => bare(Command::New),
        "resume" => Line::Command(Command::Resume(rest_or_none())),
        "branch" => bare(Command::Branch),
        "rewind" => match rest {
            "" => Line::Command(Command::Rewind(1)),
            number => match number.parse() {
                Ok(turns) if turns > 0 => Line::Command(Command::Rewind(turns)),
                _ => Line::Wrong(format!(
                    "'{number}' is not a number of turns; /rewind 2 takes the last two back"
                )),
            },
        },
        "model" => Line::Command(Command::Model(rest_or_none())),
        "status" => bare(Command::Status),
        "tools" => bare(Command::Tools),
        "engine" => words(rest),
        "export" => Line::Command(Command::Export(rest_or_none())),
        "help" | "?" => bare(Command::Help),
        "quit" | "exit" => bare(Command::Quit),
        other if other == engine.to_lowercase() => words(rest),
        other => Line::Wrong(unknown(other)),
    }
}

/// The words for an engine, quoted as for a shell.
fn words(text: &str) -> Line {
    match shell_words::split(text) {
        Ok(words) => Line::Command(Command::Engine(words)),
        Err(_) => Line::Wrong("a quotation mark is missing".to_owned()),
    }
}

fn unknown(word: &str) -> String {
    const ALIKE: f64 = 0.75;
    let nearest = COMMANDS
        .iter()
        .map(|(name, ..)| (strsim::jaro_winkler(word, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness >= ALIKE);
    match nearest {
        Some((_, name)) => format!(
            "there is no command /{word}; did you mean /{name}? /help lists them, and a message that begins with a slash is sent with two"
        ),
        None => format!(
            "there is no command /{word}; /help lists them, and a message that begins with a slash is sent with two"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Line {
        Line::Message(text.to_owned())
    }

    #[test]
    fn lines_are_what_they_look_like() {
        let some = |text: &str| Some(text.to_owned());
        let table = [
            ("", Line::Empty),
            (" \t ", Line::Empty),
            (" hello ", message("hello")),
            ("//help", message("/help")),
            ("/etc/passwd is what?", message("/etc/passwd is what?")),
            ("a /help", message("a /help")),
            ("/help", Line::Command(Command::Help)),
            ("/HELP", Line::Command(Command::Help)),
            ("/compress", Line::Command(Command::Compress(None))),
            (
                "/compress  the \"schema\", \u{1f5dc} ",
                Line::Command(Command::Compress(some("the \"schema\", \u{1f5dc}"))),
            ),
            ("/reset", Line::Command(Command::New)),
            ("/new", Line::Command(Command::New)),
            ("/resume", Line::Command(Command::Resume(None))),
            ("/resume abc", Line::Command(Command::Resume(some("abc")))),
            ("/rewind", Line::Command(Command::Rewind(1))),
            ("/rewind 3", Line::Command(Command::Rewind(3))),
            ("/exit", Line::Command(Command::Quit)),
            ("/engine", Line::Command(Command::Engine(Vec::new()))),
            (
                "/lcm grep 'two words'",
                Line::Command(Command::Engine(vec![
                    "grep".to_owned(),
                    "two words".to_owned(),
                ])),
            ),
        ];
        for (line, expected) in table {
            assert_eq!(parse(line, "lcm"), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let table = [
            ("/stauts", "did you mean /status?"),
            ("/compres", "did you mean /compress?"),
            ("/xyzzy", "there is no command /xyzzy"),
            ("/", "there is no command /"),
            ("/rewind 0", "not a number of turns"),
            ("/rewind -1", "not a number of turns"),
            ("/new now", "takes nothing"),
            ("/engine 'open", "quotation mark"),
        ];
        for (line, expected) in table {
            let Line::Wrong(sentence) = parse(line, "lcm") else {
                panic!("{line:?} is taken for right");
            };
            assert!(sentence.contains(expected), "{line:?}: {sentence}");
        }
        let nothing_like_it = parse("/xyzzy", "lcm");
        assert!(!format!("{nothing_like_it:?}").contains("did you mean"));
    }

    #[test]
    fn the_help_has_a_line_for_every_command() {
        let help = help("lcm");
        for name in names() {
            assert!(help.lines().any(|line| line.starts_with(&name)), "{name}");
        }
        assert!(help.contains("/lcm WORDS"));
    }
}
