//! A home with a model that answers, and the program in it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use hermes_tests::{Behaviour, FakeProvider, Home, compile_c, workspace};
use serde_json::Value;

/// How long anything here may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A home, a provider, and a folder to work in.
pub(crate) struct Chat {
    pub(crate) home: Home,
    pub(crate) provider: FakeProvider,
    variables: Vec<(&'static str, String)>,
}

/// What the program has said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Chat {
    pub(crate) fn new() -> Self {
        let chat = Self {
            home: Home::new(),
            provider: FakeProvider::start(),
            variables: Vec::new(),
        };
        fs::create_dir(chat.folder()).expect("a folder");
        chat.home.config(&chat.provider.config(128_000));
        chat
    }

    /// With an engine that writes down what it is told.
    pub(crate) fn with_diary() -> Self {
        let mut chat = Self::new();
        let library = compile_c(workspace().join("tests/misfit/diary.c"), &[]);
        let _ = chat
            .home
            .plugin("diary")
            .manifest("name: diary\nlibrary: diary.so\n")
            .library("diary.so", &library);
        let config = chat.provider.config(128_000);
        chat.home
            .config(&format!("{config}context:\n  engine: diary\n"));
        let path = chat.diary_file().display().to_string();
        chat.variables.push(("DIARY", path));
        chat
    }

    /// Sets a variable of the program's environment.
    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// The working directory.
    pub(crate) fn folder(&self) -> PathBuf {
        self.home.outside().join("work")
    }

    fn diary_file(&self) -> PathBuf {
        self.home.outside().join("diary.jsonl")
    }

    /// What the engine has written down, without what the registered instance was told.
    pub(crate) fn diary(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.diary_file()).unwrap_or_default();
        text.lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// The events of the diary that are about sessions, as `what:session`, the session by its order of appearance.
    pub(crate) fn story(&self) -> Vec<String> {
        let mut sessions: Vec<String> = Vec::new();
        self.diary()
            .iter()
            .filter(|entry| {
                ["start", "end", "reset", "turn"].contains(&entry["what"].as_str().unwrap_or(""))
            })
            .map(|entry| {
                let what = entry["what"].as_str().unwrap_or("").to_owned();
                if what == "reset" {
                    return what;
                }
                let id = entry["session"].as_str().unwrap_or("").to_owned();
                let at = sessions
                    .iter()
                    .position(|known| *known == id)
                    .unwrap_or_else(|| {
                        sessions.push(id);
                        sessions.len() - 1
                    });
                format!("{what} {at}")
            })
            .collect()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command();
        command
            .arg("chat")
            .args(arguments)
            .current_dir(self.folder())
            .envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// Runs `hermes chat` with arguments and a standard input.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Said {
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().expect("piped");
        // A program that does not read its input is no failure of this.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        finish(child)
    }

    /// Starts it with everything piped.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("hermes runs")
    }

    /// A chat that stays open.
    pub(crate) fn open(&self) -> Open {
        let mut child = self.start(&[]);
        Open {
            stdin: child.stdin.take().expect("piped"),
            stdout: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    /// `hermes chat … --json`, which prints one value.
    pub(crate) fn json(&self, arguments: &[&str]) -> (Value, Said) {
        let mut all = arguments.to_vec();
        all.push("--json");
        let said = self.run(&all, "");
        let value =
            serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        (value, said)
    }

    /// All stored sessions, the newest first.
    pub(crate) fn sessions(&self) -> Vec<Value> {
        let (list, code) = self.home.json(&["sessions", "list"]);
        assert_eq!(code, 0);
        list.as_array().expect("a list").clone()
    }

    /// The texts of a session's live messages, with their roles.
    pub(crate) fn messages(&self, id: &str) -> Vec<(String, String)> {
        let (shown, code) = self.home.json(&["sessions", "show", id]);
        assert_eq!(code, 0, "{shown}");
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        shown["messages"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| {
                (
                    text(&row["message"]["role"]),
                    text(&row["message"]["content"]),
                )
            })
            .collect()
    }

    /// Answers each message with `answer to: ` and the message.
    pub(crate) fn echo(&self) {
        self.provider.default(Behaviour::by(|request| {
            let body = request.json();
            let last = body["messages"]
                .as_array()
                .and_then(|all| all.last().cloned());
            let text = last.unwrap_or_default()["content"]
                .as_str()
                .unwrap_or("")
                .to_owned();
            Behaviour::text(&format!("answer to: {text}"))
        }));
    }
}

/// Waits for the end of a program that needs no more input.
pub(crate) fn finish(mut child: Child) -> Said {
    let began = Instant::now();
    loop {
        match child.try_wait().expect("a child") {
            Some(_) => break,
            None if began.elapsed() > PATIENCE => {
                child.kill().expect("killed");
                let output = child.wait_with_output().expect("output");
                panic!(
                    "it does not end: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    let output = child.wait_with_output().expect("output");
    Said {
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
        code: output.status.code(),
    }
}

/// Waits until something is true.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it never happens: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A chat that stays open until its input ends.
pub(crate) struct Open {
    pub(crate) child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Open {
    pub(crate) fn write(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("written");
    }

    /// The next line of its output; empty at the end.
    pub(crate) fn read(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("output");
        line
    }

    /// Says one line and gives the first line of what comes back.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.write(line);
        self.read()
    }

    /// Ends its input, and waits for it.
    pub(crate) fn close(self) -> Said {
        drop(self.stdin);
        // Its output stays open as long as it may have something to say.
        let said = finish(self.child);
        drop(self.stdout);
        said
    }
}
