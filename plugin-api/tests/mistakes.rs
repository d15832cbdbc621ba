//! What an author reads for the likeliest mistakes: the compiler's own words are part of the product.

// contract: ENG-18
#[test]
fn mistakes_are_explained_by_the_compiler() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/mistakes/*.rs");
}
