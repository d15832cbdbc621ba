//! Replacing the file of a loaded library, by writing over it and by moving another one there.

use std::fs;

use hermes_tests::{Home, has_compiler};

use super::engines::{catalog, misfit};

fn create_and_destroy(module: &hermes::plugin::EngineModule) {
    // The state slot reads through the library's code and data.
    assert!(module.vtable().state.is_some());
    assert_eq!(module.version(), "1.2.3");
}

// contract: SAFE-3
// case: 54
#[test]
fn a_replaced_library_does_not_disturb_the_loaded_one_and_a_restart_is_asked_for() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    let first = misfit("swap", &["LEFTOVERS"]);
    let second = misfit("swap", &["LEFTOVERS", "VERSION=\"2.0.0\""]);
    let plugin = home
        .plugin("swap")
        .manifest("name: swap\n")
        .library("libswap.so", &first);
    let path = plugin.path().join("libswap.so");
    let load = || {
        let catalog = catalog(&home);
        catalog
            .load(&catalog.select("swap").expect("there"))
            .expect("loads")
    };
    let loaded = load();
    assert_eq!(loaded.replaced_on_disk(), None);

    // cp over: the same file gets other bytes.
    fs::write(&path, fs::read(&second).expect("read")).expect("written");
    create_and_destroy(&loaded);
    let notice = loaded.replaced_on_disk().expect("another build lies there");
    assert!(
        notice.to_string().contains("libswap.so") && notice.fix().contains("restart"),
        "{notice}"
    );
    let again = load();
    assert!(again.is_same(&loaded), "the loaded build stays in use");

    // mv over: another file takes its place.
    let draft = plugin.path().join("draft");
    fs::copy(&first, &draft).expect("copied");
    fs::rename(&draft, &path).expect("moved");
    assert_eq!(
        loaded.replaced_on_disk(),
        None,
        "the first build lies there again"
    );
    fs::write(&draft, "no library").expect("written");
    fs::rename(&draft, &path).expect("moved");
    create_and_destroy(&loaded);
    assert!(loaded.replaced_on_disk().is_some());

    // A new process sees the new build.
    fs::copy(&second, &path).expect("copied");
    let (why, _) = home.json(&["plugins", "why", "swap"]);
    assert!(why.to_string().contains("swap 2.0.0"), "{why:#}");
}
