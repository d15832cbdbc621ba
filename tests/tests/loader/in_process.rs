//! Many threads, pins, copies that were tampered with, and programs without a helper.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use hermes::config::{Config, HermesHome};
use hermes::plugin::discover::BundledRoot;
use hermes::plugin::{Catalog, EngineModule, Origin, ScanOptions};
use hermes_tests::{Home, has_compiler};

use super::engines::{catalog, install, misfit};

fn library(module: &EngineModule) -> hermes::plugin::LibraryOrigin {
    match module.origin() {
        Origin::Library(library) => library.clone(),
        Origin::BuiltIn => panic!("not from a library"),
    }
}

// contract: DISC-3, SAFE-3
#[test]
fn a_library_is_loaded_once_by_many_threads_from_a_private_copy() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    install(&home, "shared", &misfit("shared", &["LEFTOVERS"]));
    let modules: Vec<EngineModule> = std::thread::scope(|scope| {
        let load = || {
            let catalog = catalog(&home);
            catalog
                .load(&catalog.select("shared").expect("there"))
                .expect("loads")
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(load)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert!(modules.iter().all(|module| module.is_same(&modules[0])));
    let origin = library(&modules[0]);
    assert!(
        origin
            .loaded_copy
            .starts_with(home.path().join("cache/engines").join(&origin.sha256))
    );
    assert_eq!(
        origin.library,
        home.path().join("plugins/shared/libshared.so")
    );
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    assert!(maps.contains(&origin.loaded_copy.display().to_string()));
    assert!(
        !maps.contains(&origin.library.display().to_string()),
        "the user's file is not mapped"
    );
}

// contract: SAFE-3
#[test]
fn a_pin_allows_one_content_only() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let path = misfit("pinned", &[]);
    install(&home, "pinned", &path);
    let right = hermes::plugin::copies::sha256_of_file(&path).expect("read");
    for (pin, serves) in [
        ("0".repeat(64), false),
        (right.clone(), true),
        ("nonsense".to_owned(), false),
    ] {
        home.config(&format!(
            "plugins:\n  entries:\n    pinned:\n      sha256: {pin}\n"
        ));
        let catalog = catalog(&home);
        let loaded = catalog.load(&catalog.select("pinned").expect("there"));
        assert_eq!(loaded.is_ok(), serves, "{pin}: {loaded:?}");
        if let Err(error) = loaded {
            let text = error.to_string();
            assert!(text.contains(&right) && text.contains(&pin), "{text}");
        }
    }
}

// contract: SAFE-3
#[test]
fn a_copy_that_was_changed_is_made_again_and_an_open_cache_is_refused() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    install(&home, "copied", &misfit("copied", &[]));
    assert!(home.run(&["plugins", "why", "copied"]).status.success());
    let cache = home.path().join("cache/engines");
    let folder: PathBuf = fs::read_dir(&cache)
        .expect("read")
        .next()
        .expect("one")
        .expect("entry")
        .path();
    let copy = folder.join("libcopied.so");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).expect("chmod");
    fs::copy(misfit("copied", &["ON_CREATE=abort()"]), &copy).expect("copied");
    let catalog = catalog(&home);
    let module = catalog
        .load(&catalog.select("copied").expect("there"))
        .expect("loads");
    assert_eq!(
        fs::read(library(&module).loaded_copy).expect("read"),
        fs::read(home.path().join("plugins/copied/libcopied.so")).expect("read")
    );

    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).expect("chmod");
    let (why, _) = home.json(&["plugins", "why", "copied"]);
    assert!(
        why.to_string().contains("can be changed by anybody"),
        "{why:#}"
    );
}

// contract: DISC-3
#[test]
fn without_a_helper_a_users_library_is_refused_with_that_sentence() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    install(&home, "third", &misfit("third", &[]));
    let at = HermesHome::at(home.path());
    let with = |helper: PathBuf| {
        Catalog::scan(ScanOptions {
            config: Config::load(&at),
            home: at.clone(),
            bundled: BundledRoot::default(),
            helper: Some(helper),
        })
    };
    for helper in ["/nowhere/hermes", "/bin/true", "/bin/false"] {
        let catalog = with(helper.into());
        let error = catalog
            .load(&catalog.select("third").expect("there"))
            .expect_err(helper);
        let text = error.to_string();
        assert!(
            text.contains("helper program") && text.contains(helper),
            "{text}"
        );
        assert!(error.fix().contains("HERMES_HELPER"), "{}", error.fix());
    }
}

const CHILD_HOME: &str = "HERMES_TEST_CRASH_HOME";

/// Not a test of its own: the process that [`an_engine_the_host_died_in_is_set_aside`] lets die.
#[test]
fn child_that_dies_inside_a_call() {
    let Some(home) = std::env::var_os(CHILD_HOME) else {
        return;
    };
    let at = HermesHome::at(&home);
    let catalog = Catalog::scan(ScanOptions {
        config: Config::load(&at),
        home: at,
        bundled: BundledRoot::default(),
        helper: Some(hermes_tests::built().hermes().to_owned()),
    });
    let module = catalog
        .load(&catalog.select("fatal").expect("there"))
        .expect("loads");
    let markers = catalog.markers();
    drop(markers.enter(&module, "state"));
    let _inside = markers.enter(&module, "compress");
    std::process::abort();
}

// contract: SAFE-4, SEL-5
#[test]
fn an_engine_the_host_died_in_is_set_aside() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    install(&home, "fatal", &misfit("fatal", &[]));
    let load = || {
        let catalog = catalog(&home);
        let candidate = catalog.select("fatal").expect("there");
        catalog
            .load(&candidate)
            .map(|module| module.name().to_owned())
    };
    let died = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "in_process::child_that_dies_inside_a_call"])
        .env(CHILD_HOME, home.path())
        .output()
        .expect("started");
    assert!(!died.status.success());

    let error = load().expect_err("set aside");
    let text = error.to_string();
    assert!(
        text.contains("set aside") && text.contains("`compress`"),
        "{text}"
    );
    assert!(error.fix().contains("plugins use"));
    let (list, _) = home.json(&["plugins", "list"]);
    assert!(
        list[1]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("`compress`")),
        "{list}"
    );
    // Choosing it by hand is another chance.
    assert!(home.run(&["plugins", "use", "fatal"]).status.success());
    assert_eq!(load().expect("serves again"), "fatal");
}
