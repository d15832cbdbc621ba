//! The report for people: one line an engine.

use std::fmt::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::replay::report::ConversationReport;

/// So many violations are spelled out below the table.
const SPELLED_OUT: usize = 20;

const HEADER: [&str; 13] = [
    "conversation",
    "messages",
    "engine",
    "requests",
    "prompt tokens",
    "peak",
    "passes",
    "refused",
    "prefix reuse",
    "violations",
    "left",
    "host p50/p99",
    "engine p50/p99",
];

/// The table, the violations, and what the recordings themselves needed.
pub(super) fn render(reports: &[ConversationReport]) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADER);
    for report in reports {
        let name = std::path::Path::new(&report.file).file_name().map_or_else(
            || report.file.clone(),
            |name| name.to_string_lossy().into_owned(),
        );
        for engine in &report.engines {
            table.add_row([
                format!("{name} #{}", report.conversation),
                report.messages.to_string(),
                engine.engine.clone(),
                engine.requests.to_string(),
                engine.prompt_tokens.to_string(),
                engine.peak_tokens.to_string(),
                engine.compressions.to_string(),
                engine.refused.to_string(),
                format!("{:.1} %", engine.prefix_reuse * 100.0),
                engine.violations.len().to_string(),
                engine.final_messages.to_string(),
                format!("{:.0}/{:.0} us", engine.host_us.p50, engine.host_us.p99),
                format!("{:.0}/{:.0} us", engine.engine_us.p50, engine.engine_us.p99),
            ]);
        }
    }
    for column in (3..13).chain([1]) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.to_string();
    notes(reports, &mut text);
    text
}

fn notes(reports: &[ConversationReport], text: &mut String) {
    let mut left = SPELLED_OUT;
    let mut hidden = 0;
    for report in reports {
        for engine in &report.engines {
            for violation in &engine.violations {
                if left == 0 {
                    hidden += 1;
                    continue;
                }
                left -= 1;
                // Writing to a String cannot fail.
                let _ = write!(
                    text,
                    "\n{} #{} {}: {} of request {} breaks {}: {}",
                    report.file,
                    report.conversation,
                    engine.engine,
                    violation.at,
                    violation.request,
                    violation.rule,
                    violation.detail,
                );
            }
        }
    }
    if hidden > 0 {
        let _ = write!(
            text,
            "\n... and {hidden} more violations; --json has them all"
        );
    }
    let repairs: usize = reports.iter().map(|report| report.repairs.len()).sum();
    if repairs > 0 {
        let _ = write!(
            text,
            "\n{repairs} faults of the recordings themselves are mended in every request; --json lists them"
        );
    }
}
