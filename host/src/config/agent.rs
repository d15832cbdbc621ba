//! The `agent` section.

use super::read::Reader;

/// How a turn runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSection {
    /// The system message of new sessions; none: the host's own.
    pub system_prompt: Option<String>,
    /// How many requests one turn may take, tools called in between. Default 90.
    pub max_turns: u64,
}

impl AgentSection {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        reader.section(&["agent"]);
        Self {
            system_prompt: reader
                .text(&["agent", "system_prompt"])
                .filter(|prompt| !prompt.trim().is_empty()),
            max_turns: reader.whole(&["agent", "max_turns"], 90, 1..=100_000),
        }
    }
}
