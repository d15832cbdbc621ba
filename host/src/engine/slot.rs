//! The slots of an engine, by name.

use std::fmt;

use hermes_engine_abi::EngineVtable;

/// One slot of the engine's table. Which of them an engine has is decided by its table alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(
    missing_docs,
    reason = "the names are those of the header, which describes each"
)]
pub enum Slot {
    Create,
    Clone,
    State,
    UpdateModel,
    UpdateFromResponse,
    SessionReset,
    ShouldCompress,
    Compress,
    SessionStart,
    SessionEnd,
    PassResult,
    Preflight,
    SelectContext,
    TurnComplete,
    ToolSchemas,
    ToolCall,
    Status,
    Command,
    Idle,
    Destroy,
}

impl Slot {
    /// Every slot, in the order of the enum.
    pub const ALL: [Self; 20] = [
        Self::Create,
        Self::Clone,
        Self::State,
        Self::UpdateModel,
        Self::UpdateFromResponse,
        Self::SessionReset,
        Self::ShouldCompress,
        Self::Compress,
        Self::SessionStart,
        Self::SessionEnd,
        Self::PassResult,
        Self::Preflight,
        Self::SelectContext,
        Self::TurnComplete,
        Self::ToolSchemas,
        Self::ToolCall,
        Self::Status,
        Self::Command,
        Self::Idle,
        Self::Destroy,
    ];

    /// The slot's name in the header.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Clone => "clone",
            Self::State => "state",
            Self::UpdateModel => "update_model",
            Self::UpdateFromResponse => "update_from_response",
            Self::SessionReset => "session_reset",
            Self::ShouldCompress => "should_compress",
            Self::Compress => "compress",
            Self::SessionStart => "session_start",
            Self::SessionEnd => "session_end",
            Self::PassResult => "pass_result",
            Self::Preflight => "preflight",
            Self::SelectContext => "select_context",
            Self::TurnComplete => "turn_complete",
            Self::ToolSchemas => "tool_schemas",
            Self::ToolCall => "tool_call",
            Self::Status => "status",
            Self::Command => "command",
            Self::Idle => "idle",
            Self::Destroy => "destroy",
        }
    }

    /// Whether an engine cannot be used without it.
    #[must_use]
    pub const fn required(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Destroy
                | Self::State
                | Self::UpdateModel
                | Self::UpdateFromResponse
                | Self::SessionReset
                | Self::ShouldCompress
                | Self::Compress
        )
    }

    /// Whether it has a text result. Of the two that emit messages it is the reason for leaving a list
    /// unchanged, where the engine does not give it as the call's error text.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::ShouldCompress
                | Self::Preflight
                | Self::ToolSchemas
                | Self::ToolCall
                | Self::Status
                | Self::Command
                | Self::Compress
                | Self::SelectContext
        )
    }

    /// Whether the table, as the host has copied it, holds this slot.
    #[must_use]
    pub const fn is_in(self, table: &EngineVtable) -> bool {
        match self {
            Self::Create => table.create.is_some(),
            Self::Clone => table.clone.is_some(),
            Self::State => table.state.is_some(),
            Self::UpdateModel => table.update_model.is_some(),
            Self::UpdateFromResponse => table.update_from_response.is_some(),
            Self::SessionReset => table.session_reset.is_some(),
            Self::ShouldCompress => table.should_compress.is_some(),
            Self::Compress => table.compress.is_some(),
            Self::SessionStart => table.session_start.is_some(),
            Self::SessionEnd => table.session_end.is_some(),
            Self::PassResult => table.pass_result.is_some(),
            Self::Preflight => table.preflight.is_some(),
            Self::SelectContext => table.select_context.is_some(),
            Self::TurnComplete => table.turn_complete.is_some(),
            Self::ToolSchemas => table.tool_schemas.is_some(),
            Self::ToolCall => table.tool_call.is_some(),
            Self::Status => table.status.is_some(),
            Self::Command => table.command.is_some(),
            Self::Idle => table.idle.is_some(),
            Self::Destroy => table.destroy.is_some(),
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
