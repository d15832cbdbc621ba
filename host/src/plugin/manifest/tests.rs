//! Manifests as they are found, and as they go wrong.

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(text.as_bytes(), "plugin.yaml")
}

// contract: DISC-1
#[test]
fn texts_are_taken_as_they_are_spelled() {
    let manifest = parse(
        "\u{feff}name: lcm\nversion: 1.10\ndisplay_name: \"Tameru (貯める)\"\ndescription: >\n  two\n  lines\nengine: yes\n",
    )
    .expect("a manifest");
    assert_eq!(manifest.name.as_deref(), Some("lcm"));
    assert_eq!(manifest.version.as_deref(), Some("1.10"));
    assert_eq!(manifest.display_name.as_deref(), Some("Tameru (貯める)"));
    assert_eq!(manifest.description.as_deref(), Some("two lines\n"));
    assert_eq!(manifest.engine.as_deref(), Some("yes"));
    assert!(manifest.notes.is_empty(), "{:?}", manifest.notes);
}

// contract: DISC-4
#[test]
fn odd_keys_are_noted_and_never_refused() {
    let manifest = parse(
        "name: a\nname: b\nmanifest_version: 3\nwidgets: [1, {x: y}]\nkind: standalone\nrequires_env:\n  - KEY\n3: c\n",
    )
    .expect("a manifest");
    assert_eq!(manifest.name.as_deref(), Some("b"));
    let notes = manifest.notes.join("\n");
    for wanted in ["`name` twice", "manifest_version 3", "widgets, 3"] {
        assert!(notes.contains(wanted), "{wanted:?} in {notes}");
    }
    assert!(!notes.contains("kind"));
    assert!(parse("").expect("empty").notes[0].contains("no `name`"));
}

// contract: DISC-5
// case: 42
#[test]
fn names_and_libraries_cannot_leave_the_folder() {
    for bad in [
        "library: ../../../tmp/evil.so",
        "library: /tmp/evil.so",
        "library: a\\b.dll",
        "library: ''",
        "library: {linux: ../x.so, macos: y.dylib}",
        "name: ../x",
        "engine: a/b",
        "name: \"a\\0b\"",
    ] {
        let error = parse(bad).expect_err(bad);
        assert!(
            matches!(error, ManifestError::BadName { .. }),
            "{bad}: {error}"
        );
        assert!(!error.to_string().contains('\0'));
    }
}

#[test]
fn a_library_is_found_for_this_platform() {
    let name = |text: &str| {
        parse(text)
            .expect("a manifest")
            .library
            .and_then(|library| library.for_this_platform().map(str::to_owned))
    };
    assert_eq!(name("library: libx.so").as_deref(), Some("libx.so"));
    let os = std::env::consts::OS;
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    assert_eq!(
        name(&format!("library: {{{os}: a.so, {os}_{arch}: b.so}}")).as_deref(),
        Some("b.so")
    );
    assert_eq!(
        name(&format!("library: {{{os}: a.so}}")).as_deref(),
        Some("a.so")
    );
    assert_eq!(name("library: {plan9: a.so}"), None);
}

// contract: DISC-4
#[test]
fn what_is_no_manifest_says_where() {
    for (text, wanted) in [
        ("name: [unclosed", "line"),
        ("- a\n- b\n", "keys with values"),
        ("just text", "keys with values"),
        ("name: {a: b}\n", "line 1"),
        ("name: x\n---\nname: y\n", "document"),
        ("library: [a]\n", "file name"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text:?}: {error}");
        assert!(error.starts_with("plugin.yaml"), "{error}");
    }
    let error = Manifest::parse(b"name: \xff\n", "plugin.yml").expect_err("bytes");
    assert_eq!(
        error,
        ManifestError::NotText {
            file: "plugin.yml",
            at: 6
        }
    );
}

// contract: DISC-4
#[test]
fn files_that_cannot_be_read_are_refused_without_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("plugin.yaml");
    assert_eq!(Manifest::read(folder.path()), Err(ManifestError::Missing));
    std::fs::create_dir(&at).expect("a folder");
    assert!(matches!(
        Manifest::read(folder.path()),
        Err(ManifestError::NotAFile { .. })
    ));
    std::fs::remove_dir(&at).expect("removed");
    std::fs::write(&at, vec![b'#'; 64 * 1024 + 1]).expect("written");
    assert!(matches!(
        Manifest::read(folder.path()),
        Err(ManifestError::TooLarge { .. })
    ));
    std::fs::write(&at, vec![b'#'; 64 * 1024]).expect("written");
    assert!(Manifest::read(folder.path()).is_ok());
    std::fs::remove_file(&at).expect("removed");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", &at).expect("a link");
        assert!(matches!(
            Manifest::read(folder.path()),
            Err(ManifestError::Unreadable { .. })
        ));
        std::fs::remove_file(&at).expect("removed");
    }
    std::fs::write(folder.path().join("plugin.yml"), "name: second\n").expect("written");
    let manifest = Manifest::read(folder.path()).expect("the other spelling");
    assert_eq!(manifest.name.as_deref(), Some("second"));
}

proptest! {
    // contract: DISC-4
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::parse(&bytes, "plugin.yaml");
    }

    // contract: DISC-5
    #[test]
    fn an_accepted_library_stays_in_its_folder(name in "[ -~]{0,12}") {
        let quoted = format!("library: '{}'", name.replace('\'', "''"));
        if let Ok(Manifest { library: Some(library), .. }) = parse(&quoted) {
            let file = library.for_this_platform().expect("one name for all");
            let path = Path::new("/d").join(file);
            prop_assert_eq!(path.parent(), Some(Path::new("/d")));
        }
    }
}
