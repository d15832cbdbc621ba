//! Which keys of a message a provider sees.

/// Keys that are for the store and the screen only (`UID-9`). Membership is the contract, not the
/// underscore: strict providers refuse a request for any key they do not know.
pub const PERSISTENCE_ONLY_MESSAGE_FIELDS: &[&str] = &[
    "timestamp",
    "display_kind",
    "display_metadata",
    "_row_id",
    "_submit_row_session_id",
    "_merged_turn_prefix",
    "message_uid",
    "_absorbed_message_uids",
    "_tool_call_uids",
    "_tool_call_uid",
    "_db_row_snapshot",
    "_canonical_row",
];

/// Which keys may go out, depending on the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WirePolicy {
    /// The keys of the plain chat format.
    #[default]
    Plain,
    /// Also `reasoning`, `reasoning_content` and `reasoning_details`, for providers that want a
    /// model's thoughts back.
    Reasoning,
}

impl WirePolicy {
    /// Whether a key may go out.
    #[must_use]
    pub fn allows(self, key: &str) -> bool {
        match key {
            "role" | "content" | "name" | "tool_calls" | "tool_call_id" | "refusal" | "audio"
            | "function_call" => true,
            "reasoning" | "reasoning_content" | "reasoning_details" => self == Self::Reasoning,
            _ => false,
        }
    }
}
