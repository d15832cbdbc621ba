//! Real recordings, if they lie beside the workspace.

use hermes_tests::{Home, inputs};
use serde_json::json;

use super::{path, with_window};

// contract: PASS-6
// case: 7, 62
#[test]
fn every_recording_goes_through_both_engines_at_every_window_without_a_violation() {
    let home = Home::new();
    with_window(&home);
    for input in inputs() {
        let name = path(input);
        for window in ["8192", "32768", "200000"] {
            let arguments = [
                "replay",
                &name,
                "--engine",
                "compressor",
                "--engine",
                "window",
                "--context-length",
                window,
            ];
            let (report, status) = home.json(&arguments);
            for conversation in report
                .as_array()
                .unwrap_or_else(|| panic!("{name}: {report}"))
            {
                for engine in conversation["engines"].as_array().expect("engines") {
                    assert_eq!(engine["violations"], json!([]), "{name} at {window}");
                    assert_eq!(engine["refused"], 0, "{name} at {window}: {engine}");
                }
            }
            assert_eq!(status, 0, "{name} at {window}");
        }
    }
}
