use super::*;

fn opened(yaml: &str, variables: &[(&str, &str)]) -> Result<Opened, String> {
    let config = Config::from_text(yaml.as_bytes(), Path::new("/nowhere/config.yaml"));
    open_with(
        &config,
        &HermesHome::at("/nowhere"),
        &Wishes::default(),
        &Environment::of(variables),
    )
    .map_err(|no| no.to_string())
}

fn place(yaml: &str, variables: &[(&str, &str)]) -> (String, String) {
    let opened = opened(yaml, variables).expect("opened");
    (opened.provider_name, opened.base_url)
}

#[test]
fn the_model_s_place_is_found() {
    let pair = |name: &str, url: &str| (name.to_owned(), url.to_owned());
    let local = "model:\n  default: m\n  base_url: http://127.0.0.1:9/v1\n";
    assert_eq!(place(local, &[]), pair("custom", "http://127.0.0.1:9/v1"));
    let router = pair("openrouter", "https://openrouter.ai/api/v1");
    assert_eq!(place("model: a/b", &[("OPENROUTER_API_KEY", "k")]), router);
    let both = [("OPENROUTER_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    assert_eq!(
        place("model: claude-x", &both),
        pair("anthropic", "https://api.anthropic.com/v1")
    );
    assert_eq!(place("model: gpt-x", &both), router);
    assert_eq!(
        place("model: m", &[("OPENAI_BASE_URL", "http://h:1/v1")]),
        pair("openai", "http://h:1/v1")
    );
    assert_eq!(
        place("model:\n  default: m\n  provider: Ollama\n", &[]),
        pair("ollama", "http://127.0.0.1:11434/v1")
    );
    let by_name = "model:\n  default: m\n  base_url: ${WHERE}/v1\n  provider: custom\n";
    assert_eq!(
        place(by_name, &[("WHERE", "http://h")]),
        pair("custom", "http://h/v1")
    );
}

// Two providers at one host, as a real configuration has them.
#[test]
fn a_named_provider_keeps_its_own_key() {
    let yaml = "model:\n  default: deepseek-v4-pro\n  provider: opencode-go\n  base_url: https://opencode.ai/zen/go/v1\n  api_mode: chat_completions\n";
    let zen = [("OPENCODE_ZEN_API_KEY", "z")];
    let no = opened(yaml, &zen).expect_err("the other one's key");
    assert!(no.contains("OPENCODE_GO_API_KEY"), "{no}");
    let both = [("OPENCODE_ZEN_API_KEY", "z"), ("OPENCODE_GO_API_KEY", "g")];
    assert_eq!(place(yaml, &both).0, "opencode-go");
}

#[test]
fn a_place_may_have_a_name_of_the_user_s() {
    let list = "custom_providers:\n  - name: Lab\n    base_url: http://lab:1/v1\n    api_key: k\n    model: big\n";
    for name in ["lab", "custom:Lab"] {
        let opened =
            opened(&format!("model:\n  provider: \"{name}\"\n{list}"), &[]).expect("opened");
        assert_eq!(
            (&*opened.base_url, &*opened.model),
            ("http://lab:1/v1", "big")
        );
        assert!(format!("{:?}", opened.provider).contains("has_key: true"));
    }
    assert!(
        opened(
            &format!("model:\n  default: m\n  provider: other\n{list}"),
            &[]
        )
        .is_err()
    );
}

#[test]
fn what_is_missing_is_named() {
    let no = |yaml, variables: &[(&str, &str)]| opened(yaml, variables).expect_err("no model");
    let unset = no("", &[("OPENAI_API_KEY", "k")]);
    assert_eq!(unset.lines().count(), 2);
    assert!(unset.contains("hermes config set model.default") && unset.contains("scripted"));
    assert!(no("model: gpt-4o", &[]).contains("OPENAI_API_KEY"));
    let groq = no("model:\n  default: m\n  provider: groq\n", &[]);
    assert!(
        groq.starts_with("groq wants a key: set GROQ_API_KEY"),
        "{groq}"
    );
    let env = "model:\n  default: m\n  base_url: http://h/v1\n  api_key_env: MY_KEY\n";
    assert!(no(env, &[]).contains("MY_KEY"));
    let key = "model:\n  default: m\n  base_url: http://h/v1\n  api_key: ${MY_KEY}\n";
    assert!(no(key, &[]).contains("MY_KEY"));
    assert!(opened(key, &[("MY_KEY", "k")]).is_ok());
    assert!(no("model:\n  default: m\n  provider: opnrouter\n", &[]).contains("`openrouter`"));
    assert!(no("model:\n  default: m\n  provider: wholly-new\n", &[]).contains("model.base_url"));
    assert!(no("model:\n  default: m\n  base_url: h/v1\n", &[]).contains("`h/v1`"));
    let mode = "model:\n  default: m\n  base_url: http://h\n  api_mode: codex_responses\n";
    assert!(no(mode, &[]).contains("codex_responses"));
    let odd = "model:\n  default: m\n  base_url: http://h\n  api_key: \"a\\nb\"\n";
    assert!(!no(odd, &[]).contains("a\nb"));
}

// A key must not go to a host that it was not made for.
#[test]
fn a_key_goes_only_to_its_own_host() {
    let shown = |yaml| {
        let variables = [("OPENAI_API_KEY", "sk-of-openai")];
        let opened = opened(yaml, &variables).expect("opened");
        format!("{:?}", opened.provider)
    };
    assert!(
        shown("model:\n  default: m\n  base_url: http://else.example/v1\n")
            .contains("has_key: false")
    );
    let own = shown("model:\n  default: m\n  base_url: https://api.openai.com/v1\n");
    assert!(own.contains("has_key: true"));
    assert!(!own.contains("sk-of-openai"), "{own}");
}

#[test]
fn a_dry_run_needs_nothing() {
    let open_it = opened;
    let opened = opened("model:\n  provider: scripted\n", &[]).expect("opened");
    assert_eq!((&*opened.model, &*opened.base_url), ("scripted", ""));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "{\"content\":\"hi\"}\n{").expect("written");
    let yaml = format!(
        "model:\n  provider: \"scripted:{}\"\n",
        file.path().display()
    );
    assert!(
        open_it(&yaml, &[])
            .expect_err("bad line")
            .contains("line 2")
    );
    let yaml = format!(
        "model:\n  provider: scripted\n  base_url: {}\n",
        file.path().display()
    );
    assert!(open_it(&yaml, &[]).is_err());
}

#[test]
fn wishes_win_and_take_no_foreign_key_along() {
    let yaml = "model:\n  default: m\n  provider: openai\n  api_key: k-of-config\n";
    let config = Config::from_text(yaml.as_bytes(), Path::new("config.yaml"));
    let wishes = Wishes {
        model: Some("other".into()),
        base_url: Some("http://127.0.0.1:1/v1".into()),
        ..Wishes::default()
    };
    let opened = open_with(
        &config,
        &HermesHome::at("/nowhere"),
        &wishes,
        &Environment::of(&[]),
    )
    .expect("opened");
    assert_eq!(
        (&*opened.model, &*opened.provider_name),
        ("other", "custom")
    );
    assert!(format!("{:?}", opened.provider).contains("has_key: false"));
}
