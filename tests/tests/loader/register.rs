//! `register(ctx)`: by an engine's own folder, and by general plugins.

use hermes::plugin::SelectError;
use hermes_tests::{Home, has_compiler};

use super::engines::{catalog, misfit};

// contract: REG-1, SEL-3
#[test]
fn an_engine_folder_may_register_its_engine_without_being_enabled() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    for (name, defines) in [
        ("plain", &["REGISTER"][..]),
        ("made", &["REGISTER", "REGISTER_INSTANCE"]),
        (
            "twice",
            &["REGISTER", "REGISTER_TWICE", "REGISTER_INSTANCE"],
        ),
    ] {
        let manifest = format!("name: {name}-plugin\nengine: {name}\n");
        let _ = home
            .plugin(name)
            .manifest(&manifest)
            .library("libx.so", &misfit(name, defines));
    }
    let catalog = catalog(&home);
    let load = |name: &str| {
        catalog
            .load(&catalog.select(name).expect(name))
            .expect(name)
    };
    assert!(!load("plain").registers_instance());
    assert!(load("plain").registered().is_none());

    let made = load("made");
    assert!(made.registers_instance());
    let instance = made.registered().expect("handed over");
    assert!(!instance.instance().is_null());
    assert!(made.registered().is_none(), "it is taken once");
    assert!(load("made").registers_instance(), "and loaded once");

    // REG-3: the second of one plugin is refused, and the first stays.
    assert_eq!(load("twice").name(), "twice");
    let (why, _) = home.json(&["plugins", "why", "twice"]);
    let probe = why["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .find(|step| step["step"] == "probe")
        .expect("a step");
    assert!(
        probe["detail"]
            .as_str()
            .expect("text")
            .contains("second engine \"second\" is refused"),
        "{probe}"
    );
}

// contract: REG-2, REG-3, SEL-2
#[test]
fn of_general_plugins_the_first_that_registers_stays() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    for name in ["one", "two"] {
        let manifest = format!("name: {name}-plugin\n");
        let _ = home
            .plugin(name)
            .manifest(&manifest)
            .library("libx.so", &misfit(name, &["REGISTER"]));
    }
    let _ = home.plugin("zero").manifest("name: zero-plugin\n").library(
        "libx.so",
        &misfit("zero", &["REGISTER", "REGISTER_NOTHING"]),
    );

    // Not enabled: not one of them runs.
    let disabled = catalog(&home);
    assert!(matches!(
        disabled.select("one"),
        Err(SelectError::Unusable { .. })
    ));
    assert!(
        disabled
            .entries()
            .iter()
            .skip(1)
            .all(|entry| entry.kind.as_str() == "general")
    );
    let reason = disabled.entries()[1].reason.clone().unwrap_or_default();
    assert!(reason.contains("plugins.enabled"), "{reason}");

    home.config("plugins:\n  enabled: [zero-plugin, one-plugin, two-plugin]\n");
    let enabled = catalog(&home);
    // Enabled, but not named: nothing serves by itself.
    assert!(enabled.select("").expect("always").is_built_in());
    let second = enabled.select("two").expect_err("refused").to_string();
    for word in ["\"two\"", "two-plugin", "one-plugin", "\"one\""] {
        assert!(second.contains(word), "{word} in {second}");
    }
    let first = enabled.select("one").expect("the first");
    let warnings = first.warnings().join("\n");
    assert!(
        warnings.contains("two-plugin") && warnings.contains("one-plugin"),
        "{warnings}"
    );
    assert_eq!(enabled.load(&first).expect("loads").name(), "one");
    assert!(matches!(
        enabled.select("one-plugin"),
        Err(SelectError::NearMiss { .. })
    ));

    // Another one cannot take its place in this process any more.
    home.config("plugins:\n  enabled: [two-plugin]\n");
    let later = catalog(&home);
    let candidate = later.select("two").expect("it is the first one now");
    let error = later
        .load(&candidate)
        .expect_err("the first stays")
        .to_string();
    assert!(
        error.contains("\"one\"") && error.contains("\"two\""),
        "{error}"
    );
}
