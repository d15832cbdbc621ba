//! Three names for one plugin, links, shadows, and which value selects what.

use std::os::unix::fs::symlink;

use hermes::plugin::SelectError;
use hermes_tests::{Compile, Home, has_compiler};

use super::engines::{catalog, compile, install, misfit};

// contract: SEL-1, SEL-3, SEL-4, DISC-6
// case: 40
#[test]
fn only_the_engines_own_name_selects_it_and_near_misses_are_named() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let _ = home
        .plugin("my_dir")
        .manifest("name: my-plugin\n")
        .library("libfoo.so", &misfit("lcm", &[]));
    let catalog = catalog(&home);
    let found = catalog.select("lcm").expect("its own name");
    assert_eq!(catalog.load(&found).expect("loads").name(), "lcm");

    for (asked, words) in [
        (
            "my-plugin",
            ["plugin my-plugin", "provides the engine \"lcm\""],
        ),
        ("my_dir", ["folder my_dir", "provides the engine \"lcm\""]),
        ("LCM", ["no engine is called \"LCM\"", "there is \"lcm\""]),
        ("lcm ", ["no engine is called \"lcm \"", "there is \"lcm\""]),
    ] {
        let error = catalog.select(asked).expect_err(asked);
        assert!(
            matches!(error, SelectError::NearMiss { .. }),
            "{asked}: {error}"
        );
        let text = error.to_string();
        for word in words.iter().chain(&["`context.engine: lcm`"]) {
            assert!(text.contains(word), "{asked}: {word:?} in {text}");
        }
        let (why, exit) = home.json(&["plugins", "why", asked]);
        assert_eq!((why["serves"].as_bool(), exit), (Some(false), 1), "{asked}");
    }
    let error = catalog
        .select("nothing")
        .expect_err("nothing has that name");
    assert_eq!(
        error.to_string(),
        "no engine is called \"nothing\"; there are: compressor, lcm"
    );

    // All three names stand in one row.
    let (list, _) = home.json(&["plugins", "list"]);
    let row = &list[1];
    assert_eq!(
        (&row["engine"], &row["name"], &row["kind"]),
        (&"lcm".into(), &"my-plugin".into(), &"engine".into())
    );
    assert!(
        row["directory"]
            .as_str()
            .expect("a path")
            .ends_with("/my_dir")
    );
    assert!(
        row["library"]
            .as_str()
            .expect("a path")
            .ends_with("/my_dir/libfoo.so")
    );
}

// contract: DISC-2, DISC-4, SEL-6
#[test]
fn the_first_engine_of_a_name_counts_and_a_bad_plugin_hides_no_other() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let library = misfit("lcm", &[]);
    for folder in ["b-user", "a-user"] {
        let _ = home
            .plugin(folder)
            .manifest("name: x\n")
            .library("libx.so", &library);
    }
    let _ = home
        .plugin("0-bad")
        .manifest("name: [x\n")
        .library("libx.so", &library);
    install(&home, "thief", &misfit("compressor", &[]));
    let status = |list: &serde_json::Value, folder: &str| {
        let ends = format!("/{folder}");
        let row = list.as_array().expect("a list").iter();
        let row = row.clone().find(|row| {
            row["directory"]
                .as_str()
                .is_some_and(|path| path.ends_with(&ends))
        });
        let row = row.unwrap_or_else(|| panic!("{folder} is not listed"));
        (
            row["status"].as_str().unwrap_or_default().to_owned(),
            row["reason"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let (list, _) = home.json(&["plugins", "list"]);
    assert_eq!(status(&list, "a-user").0, "not checked");
    let (shadowed, reason) = status(&list, "b-user");
    assert_eq!(shadowed, "shadowed");
    assert!(
        reason.contains("/a-user") && reason.contains("\"lcm\""),
        "{reason}"
    );
    assert_eq!(status(&list, "0-bad").0, "broken");
    let (stolen, reason) = status(&list, "thief");
    assert_eq!(stolen, "shadowed");
    assert!(reason.contains("always means the built-in"), "{reason}");

    let _ = home
        .bundled_plugin("mine")
        .manifest("name: lcm\n")
        .library("liblcm.so", &library);
    let (list, _) = home.json(&["plugins", "list"]);
    assert_eq!(status(&list, "mine").0, "available");
    assert_eq!(status(&list, "a-user").0, "shadowed");
    let catalog = catalog(&home);
    let module = catalog
        .load(&catalog.select("lcm").expect("there"))
        .expect("loads");
    assert!(
        module
            .loaded_from()
            .contains("/bundled/context_engine/mine/"),
        "{}",
        module.loaded_from()
    );
    assert!(catalog.select("compressor").expect("always").is_built_in());
    assert!(catalog.select("").expect("always").is_built_in());
}

// contract: DISC-5, DISC-1
// case: 42
#[test]
fn what_the_owner_linked_is_followed_and_shown_by_its_real_path() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let plugins = home.path().join("plugins");
    let outside = home.outside().canonicalize().expect("real");
    let (checkout, shared) = (outside.join("src-a"), outside.join("shared"));
    for folder in [&checkout, &shared] {
        std::fs::create_dir(folder).expect("a folder");
    }
    std::fs::write(checkout.join("plugin.yaml"), "name: a\n").expect("written");
    std::fs::copy(misfit("a", &[]), checkout.join("liba.so")).expect("copied");
    std::fs::copy(misfit("e", &[]), shared.join("libe.so")).expect("copied");
    symlink(&checkout, plugins.join("a")).expect("a link");
    symlink("missing", plugins.join("b")).expect("a link");
    symlink("/etc/passwd", plugins.join("c")).expect("a link");
    symlink("..", plugins.join("d")).expect("a link");
    let linked = home.plugin("e").manifest("name: e\n");
    symlink("../../../shared/libe.so", linked.path().join("libe.so")).expect("a link");

    let catalog = catalog(&home);
    for (name, folder) in [("a", &checkout), ("e", &shared)] {
        let module = catalog
            .load(&catalog.select(name).expect(name))
            .expect(name);
        assert_eq!(
            module.loaded_from(),
            folder.join(format!("lib{name}.so")).display().to_string()
        );
    }
    for (name, words) in [
        ("b", "does not exist"),
        ("c", "not a folder"),
        ("d", "leads back"),
    ] {
        let entry = catalog
            .entries()
            .iter()
            .find(|entry| entry.folder_name() == name)
            .expect(name);
        let reason = entry.reason.as_deref().unwrap_or_default();
        assert!(reason.contains(words), "{name}: {reason}");
        assert_eq!(home.run(&["plugins", "why", name]).status.code(), Some(1));
    }
}

// contract: DISC-1, DISC-6
#[test]
fn what_lies_beside_the_library_is_not_taken_for_it() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let helper = misfit("helper", &["NO_ENTRY", "NO_NAME"]);
    let _ = home
        .plugin("odd")
        .manifest("name: odd\ndescription: two libraries\n")
        .library("aaa.so", &helper)
        .library("libodd.so", &helper)
        .library("zzz.so", &misfit("odd-engine", &[]))
        .file("data.bin", "x");
    let twice = misfit("one", &[]);
    let _ = home
        .plugin("two")
        .manifest("name: two\n")
        .library("x.so", &twice)
        .library("y.so", &twice);
    let _ = home
        .plugin("python")
        .manifest("name: google_meet\nkind: standalone\n")
        .file("__init__.py", "");
    let catalog = catalog(&home);
    let module = catalog
        .load(&catalog.select("odd-engine").expect("there"))
        .expect("loads");
    assert!(module.loaded_from().ends_with("/odd/zzz.so"));
    let entry = |name: &str| {
        catalog
            .entries()
            .iter()
            .find(|entry| entry.folder_name() == name)
            .expect("listed")
    };
    assert!(
        entry("two")
            .reason
            .as_deref()
            .unwrap_or_default()
            .contains("x.so, y.so")
    );
    assert_eq!(entry("python").kind.as_str(), "general");
    assert_eq!(entry("python").status.as_str(), "incompatible");
}

// contract: DISC-1, SAFE-3
#[test]
fn a_library_that_the_plugin_brings_along_is_loaded_from_the_private_copy_too() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let plugin = home.plugin("brings").manifest("name: brings\n");
    let code = home.outside().join("two.c");
    std::fs::write(&code, "int two(void) { return 2; }\n").expect("written");
    let two = Compile::source(&code)
        .flag("-Wl,-soname,libbrought.so")
        .library();
    let plugin = plugin.library("libbrought.so", &two);
    let main = compile("brings", &["SIBLING=two"])
        .flag(format!("-L{}", plugin.path().display()))
        .flag("-lbrought")
        .flag("-Wl,-rpath,$ORIGIN")
        .library();
    let plugin = plugin.library("libbrings.so", &main);
    let catalog = catalog(&home);
    let module = catalog
        .load(&catalog.select("brings").expect("there"))
        .expect("loads");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let mapped: Vec<&str> = maps
        .lines()
        .filter(|line| line.ends_with("/libbrought.so"))
        .collect();
    assert!(!mapped.is_empty());
    assert!(
        mapped.iter().all(|line| line.contains("/cache/engines/")),
        "{mapped:?}"
    );
    assert!(module.loaded_from().ends_with("/brings/libbrings.so"));

    // Without it the system's own sentence is shown, with what to do.
    std::fs::remove_file(plugin.path().join("libbrought.so")).expect("removed");
    let (why, _) = home.json(&["plugins", "why", "brings"]);
    let text = why.to_string();
    assert!(
        text.contains("libbrought.so: cannot open shared object") && text.contains("rpath"),
        "{why:#}"
    );
}
