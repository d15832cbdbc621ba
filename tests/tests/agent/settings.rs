//! What of the configuration reaches an engine, and when.

use serde_json::json;

use crate::support::{Setup, World, talk, turn};

const MODELS: [&str; 6] = [
    "test-model",
    "z/glm-5-1m",
    "z/glm-5",
    "other",
    "glm-51",
    "z/GLM-5-1M-turbo",
];

const THRESHOLDS: &str = "threshold: 0.3\nprotect_last_n: 4\nmodel_thresholds:\n  glm-5: 0.7\n  glm-5-1m: 0.25\n  'nearby:glm-5': 0.9";

/// The witness with these settings, among models whose windows the provider tells.
fn world_of_models(witness: &str) -> World {
    let world = Setup::witness(witness)
        .compression(THRESHOLDS)
        .window(None)
        .world();
    for model in MODELS {
        world.script.window(model, 100_000);
    }
    world
}

// contract: CFG-1, CFG-2, LIFE-1
// case: 22
#[test]
fn the_map_of_thresholds_is_there_before_the_first_model_and_a_switch_back_is_exact() {
    let world = world_of_models("threshold_percent: 0.5");
    let (_host, mut agent) = world.agent();
    let diary = world.diary();
    let slots = diary.slots(&diary.instances()[0]);
    assert_eq!(slots[0], "update_model", "before anything else: {slots:?}");
    let first = diary.of("update_model")[0];
    assert_eq!(
        first["thresholds"],
        json!({"glm-5": 0.7, "glm-5-1m": 0.25, "nearby:glm-5": 0.9})
    );
    for (model, threshold) in [
        ("z/glm-5-1m", 25_000),
        ("z/glm-5", 70_000),
        ("other", 50_000),
        ("glm-51", 50_000),
        ("z/GLM-5-1M-turbo", 25_000),
        ("other", 50_000),
    ] {
        agent.switch_model(model);
        assert_eq!(agent.status().state.threshold_tokens, threshold, "{model}");
    }
    turn(&mut agent, "hello");
    world.check(&agent);
}

// contract: CFG-3, ENG-9
// case: 22
#[test]
fn an_engine_that_owns_its_policy_sees_the_map_and_may_ignore_it() {
    let world = world_of_models("own_model: true");
    let (_host, mut agent) = world.agent();
    agent.switch_model("z/glm-5");
    assert_eq!(agent.status().state.threshold_tokens, 10_000);
    let diary = world.diary();
    assert_eq!(diary.of("update_model")[0]["thresholds"]["glm-5"], 0.7);
    assert_eq!(
        diary.of("update_model")[1]["percent"],
        0.7,
        "the host's own answer stands beside it"
    );
}

// contract: CFG-1, CFG-4
#[test]
fn the_compression_block_is_the_built_ins_and_an_engines_section_is_its_own() {
    let own = "odd: [1, {deep: [true, null]}]\n\"a key: with colon\": \"1\"\nthreshold: 7";
    let world = Setup::witness(own)
        .compression("threshold: 0.3\nprotect_last_n: 4\nprotect_first_n: 9")
        .world();
    let (_host, agent) = world.agent();
    let state = agent.status().state;
    assert_eq!(
        (state.protect_first_n, state.protect_last_n),
        (3, 6),
        "the engine's own"
    );
    assert_eq!(state.threshold_tokens, 75_000);
    let diary = world.diary();
    let create = diary.of("create").pop().unwrap().clone();
    assert_eq!(
        create["settings"]["odd"],
        json!([1, {"deep": [true, null]}])
    );
    assert_eq!(create["settings"]["a key: with colon"], "1");
    assert_eq!(create["settings"]["threshold"], 7);
    assert_eq!(
        create["settings"]["protect_last_n"],
        json!(null),
        "nothing of another block"
    );
}

// contract: CFG-1, PASS-9
#[test]
fn what_steers_the_hosts_own_passes_holds_for_every_engine() {
    // `enabled`: no automatic pass, and a forced one all the same.
    let world = Setup::witness("every: 1\ntail: 1")
        .compression("enabled: false")
        .world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 5);
    assert_eq!(world.diary().count("compress"), 0);
    world.script.cut();
    agent.compress(None, &mut |_| {});
    assert_eq!(world.diary().count("compress"), 1);

    // `max_attempts`: passes that may follow each other.
    for (most, expected) in [(1, 1), (2, 2), (3, 2)] {
        let setup =
            Setup::witness("should: 550\ntail: 1").compression(&format!("max_attempts: {most}"));
        let world = setup.world();
        let (_host, mut agent) = world.agent();
        talk(&mut agent, 3, 100);
        assert_eq!(world.diary().count("compress"), 0);
        world.script.cut();
        // The first pass helps, and it is still too long; the second one does not.
        turn(&mut agent, &"word ".repeat(900));
        assert_eq!(world.diary().count("compress"), expected, "{most}");
        world.check(&agent);
    }
}
