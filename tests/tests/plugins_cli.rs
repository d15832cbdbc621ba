//! `hermes plugins`, as a person and as a script see it.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use hermes_tests::{Compile, Home, has_compiler, workspace};

fn engine(name: &str, defines: &[&str]) -> std::path::PathBuf {
    let start = Compile::source(workspace().join("tests/misfit/misfit.c"))
        .define(&format!("NAME=\"{name}\""));
    defines
        .iter()
        .fold(start, |run, define| run.define(define))
        .library()
}

fn install(home: &Home, name: &str, defines: &[&str]) {
    let _ = home
        .plugin(name)
        .manifest(&format!(
            "name: {name}\nversion: 1.10\ndescription: Engine {name}\n"
        ))
        .library(&format!("lib{name}.so"), &engine(name, defines));
}

// contract: SEL-1, SEL-6, CLI-1
#[test]
fn an_empty_home_has_the_built_in_engine_and_stays_empty() {
    let home = Home::new();
    let (list, exit) = home.json(&["plugins", "list"]);
    assert_eq!(exit, 0);
    let list = list.as_array().expect("an array");
    assert_eq!(list.len(), 1);
    let keys = [
        "name",
        "directory",
        "kind",
        "source",
        "status",
        "version",
        "description",
        "engine",
        "library",
        "abi",
        "step",
        "reason",
    ];
    for key in keys {
        assert!(list[0].get(key).is_some(), "{key}");
    }
    assert_eq!(
        (&list[0]["engine"], &list[0]["status"]),
        (&"compressor".into(), &"active".into())
    );
    assert_eq!(list[0]["source"], "built-in");
    let (why, exit) = home.json(&["plugins", "why", "compressor"]);
    assert_eq!((why["serves"].as_bool(), exit), (Some(true), 0));
    let left: Vec<_> = fs::read_dir(home.path())
        .expect("read")
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name != "logs" && name != "plugins")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

// contract: CLI-2, SEL-3, SEL-5
#[test]
fn use_writes_only_what_would_serve_and_changes_nothing_else() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    install(&home, "mine", &[]);
    install(&home, "bad", &["NULL_SLOT=compress"]);
    let before =
        "# my settings\ncontext:\n  engine: 'compressor'   # the default\nother: [1,  2]\n";
    home.config(before);
    let text = || fs::read_to_string(home.path().join("config.yaml")).expect("read");

    let output = home.run(&["plugins", "use", "bad"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        error.starts_with("error: ") && error.contains("`compress`"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
    assert_eq!(text(), before);
    for name in ["missing", "MINE", ""] {
        let (error, exit) = home.json(&["plugins", "use", name]);
        assert_eq!(exit, if name.is_empty() { 2 } else { 1 }, "{name:?}");
        assert!(
            error["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains(name))
        );
        assert_eq!(text(), before);
    }

    home.config(before);
    let (done, exit) = home.json(&["plugins", "use", "mine"]);
    assert_eq!((done["changed"].as_bool(), exit), (Some(true), 0), "{done}");
    assert_eq!(text(), before.replace("'compressor'", "'mine'"));
    let (again, _) = home.json(&["plugins", "use", "mine"]);
    assert_eq!(again["changed"], false);

    let (list, _) = home.json(&["plugins", "list"]);
    let status = |engine: &str| {
        let row = list
            .as_array()
            .expect("an array")
            .iter()
            .find(|row| row["engine"] == engine);
        row.expect(engine)["status"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(
        (status("mine"), status("compressor")),
        ("active".to_owned(), "available".to_owned())
    );

    let forced = home.run(&["plugins", "use", "bad", "--force"]);
    assert!(forced.status.success());
    assert!(String::from_utf8_lossy(&forced.stderr).starts_with("warning: "));
    assert!(!String::from_utf8_lossy(&forced.stdout).contains("from the next conversation on"));
    assert!(text().contains("'bad'"));
    let (list, _) = home.json(&["plugins", "list"]);
    assert_eq!(
        list[0]["status"], "active",
        "the built-in serves instead: {}",
        list[0]
    );
}

// contract: DISC-3
#[test]
fn listing_runs_no_plugin_and_why_runs_it_elsewhere() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let trace = home.outside().join("it-ran");
    let constructor = format!(
        "CONSTRUCTOR=fprintf(fopen(\"{}\",\"a\"),\"%d\\n\",(int)getpid())",
        trace.display()
    );
    install(&home, "noisy", &[&constructor]);
    for arguments in [&["plugins", "list"][..], &["plugins", "show", "noisy"]] {
        assert!(home.run(arguments).status.success());
        assert!(!trace.exists(), "{arguments:?}");
    }
    let mut child = home
        .command()
        .args(["plugins", "why", "noisy"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let ours = child.id();
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut text)
        .expect("text");
    assert!(child.wait().expect("ended").success(), "{text}");
    let theirs = fs::read_to_string(&trace).expect("it ran");
    assert!(
        theirs.lines().all(|line| line != ours.to_string()),
        "in other processes: {theirs}"
    );
    assert_eq!(
        theirs.lines().count(),
        2,
        "the trial, and one with settings"
    );
    // A good verdict is kept: only the settings are tried again.
    assert!(home.run(&["plugins", "why", "noisy"]).status.success());
    let theirs = fs::read_to_string(&trace).expect("it ran");
    assert_eq!(theirs.lines().count(), 3, "{theirs}");
}

/// The step of a `why`, and all of it.
fn why(home: &Home, name: &str, step: &str) -> (serde_json::Value, serde_json::Value, i32) {
    let (why, exit) = home.json(&["plugins", "why", name]);
    let steps = why["steps"].as_array().expect("steps");
    let found = steps.iter().find(|found| found["step"] == step);
    let found = found.unwrap_or_else(|| panic!("no {step}: {why}")).clone();
    (found, why, exit)
}

// contract: CFG-4, SEL-5, DISC-3
#[test]
fn why_gives_the_engine_its_settings_and_says_what_it_does_not_take() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let library = Compile::source(workspace().join("tests/misfit/slots.c")).library();
    let _ = home
        .plugin("misfit")
        .manifest(
            "name: misfit
library: libmisfit.so
",
        )
        .library("libmisfit.so", &library);
    let none = "context:
  engine: compressor
";
    home.config(none);
    let (step, all, exit) = why(&home, "misfit", "settings");
    assert_eq!((&step["ok"], exit), (&true.into(), 0), "{all}");
    assert!(
        step["detail"]
            .as_str()
            .is_some_and(|text| text.contains("no settings"))
    );

    // Its trial is fine and its settings are not: nothing but a conversation would have told.
    let bad = format!(
        "{none}misfit:
  slot: create
  does: fail
"
    );
    home.config(&bad);
    let (step, all, exit) = why(&home, "misfit", "settings");
    assert_eq!((&step["ok"], exit), (&false.into(), 1), "{all}");
    assert_eq!(all["serves"], false);
    let text = step["detail"].as_str().expect("text");
    assert!(
        text.contains("boom") && text.contains("config.yaml"),
        "{text}"
    );
    assert!(
        step["fix"]
            .as_str()
            .is_some_and(|fix| fix.contains("'misfit'")),
        "{step}"
    );
    for good in [
        "discover", "manifest", "trust", "inspect", "probe", "load", "select",
    ] {
        let found = all["steps"].as_array().expect("steps");
        let found = found.iter().find(|step| step["step"] == good);
        assert_eq!(found.expect(good)["ok"], true, "{good}: {all}");
    }
    let text = String::from_utf8(home.run(&["plugins", "why", "misfit"]).stdout).expect("text");
    assert!(text.contains("NO  settings"), "{text}");

    // Choosing it is refused with that reason, and nothing is written.
    let (error, exit) = home.json(&["plugins", "use", "misfit"]);
    assert_eq!(exit, 1);
    assert!(
        error["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("boom")),
        "{error}"
    );
    assert_eq!(
        fs::read_to_string(home.path().join("config.yaml")).expect("read"),
        bad
    );

    // Settings that take the process down cost no more than that.
    for (does, what) in [("exit", "ended"), ("sleep for ever", "did not finish")] {
        home.config(&format!(
            "{none}misfit:
  slot: create
  does: {does}
"
        ));
        let (step, all, exit) = why(&home, "misfit", "settings");
        assert_eq!((&step["ok"], exit), (&false.into(), 1), "{all}");
        assert!(
            step["detail"]
                .as_str()
                .is_some_and(|text| text.contains(what)),
            "{step}"
        );
    }
    home.config(&format!(
        "{none}misfit:
  slot: state
  does: nothing
"
    ));
    assert_eq!(why(&home, "misfit", "settings").0["ok"], true);
}

// contract: DISC-4
#[test]
fn a_thousand_plugins_are_listed_at_once_and_a_closed_pipe_is_no_panic() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let library = engine("many", &[]);
    for number in 0..1000 {
        let _ = home
            .plugin(&format!("p{number:04}"))
            .manifest(&format!("name: p{number}\nengine: many-{number}\n"))
            .library("libx.so", &library);
    }
    let started = Instant::now();
    let (list, exit) = home.json(&["plugins", "list"]);
    let took = started.elapsed();
    assert_eq!((list.as_array().map(Vec::len), exit), (Some(1001), 0));
    println!("1,000 plugin directories listed in {took:?} (with the start of the program)");

    let mut child = home
        .command()
        .args(["plugins", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let mut error = String::new();
    child
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut error)
        .expect("text");
    assert!(!error.contains("panicked"), "{error}");
    assert!(child.wait().expect("ended").code().is_some());
}
