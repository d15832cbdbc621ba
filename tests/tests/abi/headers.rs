//! The headers compile wherever they promise to, without a warning.

use crate::toolchain::Compiler;

const LANGUAGES: [&str; 4] = ["c99", "c11", "c++11", "c++17"];

#[test]
fn headers_compile_alone_and_twice_without_a_warning() {
    for language in LANGUAGES {
        for header in ["hermes_engine.h", "hermes_helpers.h", "hermes_engine.hpp"] {
            if header.ends_with("pp") && !language.contains("++") {
                continue;
            }
            for times in [1, 2] {
                let text = format!("#include \"{header}\"\n").repeat(times);
                let done = Compiler::new(language)
                    .flag("-c")
                    .flag("-Wconversion")
                    .text(&text)
                    .build();
                assert!(done.is_ok(), "{language} {header}: {:?}", done.err());
            }
        }
    }
}

/// A class for `hermes_engine.hpp` with these members besides `compress` and `should_compress`.
fn engine_in_cpp(members: &str) -> String {
    format!(
        "#include \"hermes_engine.hpp\"
        struct Mine : hermes::Engine {{
          Mine(const hermes_host *, const hermes_create_args &args) : hermes::Engine(args) {{}}
          hermes_status compress(const hermes_call *, const hermes_compress_args &) {{ return HERMES_UNCHANGED; }}
          {members}
        }};
        HERMES_CXX_ENGINE(Mine, \"mine\", \"1\")
        int main() {{
          const hermes_engine_vtable *table = hermes_context_engine_v1()->engine;
          const void *const *slot = reinterpret_cast<const void *const *>(&table->clone);
          for (int i = 0; i < 12; i++) if (slot[i] != nullptr) return i + 1;
          return table->should_compress == nullptr || table->destroy == nullptr ? 50 : 0;
        }}"
    )
}

const DECIDES: &str =
    "bool should_compress(const hermes_call *, const hermes_decide_args &) { return false; }";

// contract: HOOK-1
#[test]
fn a_cpp_class_without_a_method_has_no_slot_for_it() {
    let program = Compiler::new("c++11").text(&engine_in_cpp(DECIDES)).built();
    assert_eq!(program.run(&[]), "");
}

// contract: ENG-18
#[test]
fn a_cpp_class_without_a_required_method_does_not_compile() {
    let said = Compiler::new("c++11")
        .text(&engine_in_cpp(""))
        .build()
        .err();
    let said = said.expect("must not compile");
    assert!(said.contains("should_compress"), "{said}");
}

// contract: HOOK-1
#[test]
fn a_cpp_method_that_fits_no_slot_does_not_compile() {
    for (slot, member) in [
        (
            "select_context",
            "hermes_status select_context(const hermes_call *, int) { return 0; }",
        ),
        ("clone", "Mine *clone() const { return nullptr; }"),
        ("idle", "hermes_status idle() { return 0; }"),
    ] {
        let text = engine_in_cpp(&format!("{DECIDES}\n{member}"));
        let said = Compiler::new("c++11").text(&text).build().err();
        let said = said.unwrap_or_else(|| panic!("{slot} must not compile"));
        let sentence = format!("the engine has a member named {slot} that cannot be called");
        assert!(said.contains(&sentence), "{said}");
    }
}
