//! The layout check sees what it is there to see: a library that was built against a changed copy of this
//! crate. The copies here are this crate's own sources, compiled once more with one module exchanged.

#![cfg(feature = "layout")]
// The same sources several times: that is the point.
#![allow(clippy::duplicate_mod)]
#![allow(dead_code, missing_docs, unreachable_pub, unused_imports)]

use hermes_engine_abi::layout::compare;

#[path = "layout/other_argument.rs"]
mod other_argument;
#[path = "layout/other_field.rs"]
mod other_field;
#[path = "layout/same.rs"]
mod same;

#[test]
fn an_unchanged_copy_is_compatible() {
    let theirs = same::layout::LayoutExport::OURS;
    assert!(theirs.header.is_valid());
    if let Err(report) = compare(theirs.layout) {
        panic!("{report}");
    }
}

// contract: SAFE-1
#[test]
fn a_changed_field_is_caught() {
    let theirs = other_field::layout::LayoutExport::OURS;
    let report = compare(theirs.layout)
        .expect_err("must be refused")
        .to_string();
    assert!(report.contains("tokens"), "{report}");
}

// contract: SAFE-1
#[test]
fn a_changed_argument_of_a_callback_is_caught() {
    let theirs = other_argument::layout::LayoutExport::OURS;
    let report = compare(theirs.layout)
        .expect_err("must be refused")
        .to_string();
    assert!(report.contains("progress"), "{report}");
}
