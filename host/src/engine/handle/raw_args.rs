//! Owned arguments as the border's structs. Every pointer leads into the owned value, which the lane keeps until the
//! slot has returned.

use std::ptr;

use hermes_engine_abi as abi;

use crate::engine::args::{ModelInfo, SessionInfo, StartReason, Trigger, TurnOutcome, Usage};
use crate::engine::messages::bytes;

pub(super) fn or_null<T>(value: Option<&T>) -> *const T {
    value.map_or(ptr::null(), ptr::from_ref)
}

pub(super) fn optional(text: Option<&str>) -> abi::Bytes {
    text.map_or(abi::Bytes::EMPTY, bytes)
}

pub(super) fn index(index: Option<usize>) -> u32 {
    index
        .and_then(|index| u32::try_from(index).ok())
        .unwrap_or(abi::NONE)
}

pub(super) fn raw_usage(usage: &Usage) -> abi::Usage {
    let known = |count: Option<i64>| count.unwrap_or(-1);
    abi::Usage {
        prompt_tokens: known(usage.prompt_tokens),
        completion_tokens: known(usage.completion_tokens),
        total_tokens: known(usage.total_tokens),
        input_tokens: known(usage.input_tokens),
        output_tokens: known(usage.output_tokens),
        cache_read_tokens: known(usage.cache_read_tokens),
        cache_write_tokens: known(usage.cache_write_tokens),
        reasoning_tokens: known(usage.reasoning_tokens),
        json: bytes(&usage.json),
        ..abi::Usage::UNKNOWN
    }
}

pub(super) fn raw_session(session: &SessionInfo) -> abi::SessionArgs {
    abi::SessionArgs {
        reason: match session.reason {
            StartReason::New => abi::START_NEW,
            StartReason::Resume => abi::START_RESUME,
            StartReason::Branch => abi::START_BRANCH,
            StartReason::Rewind => abi::START_REWIND,
            StartReason::Compression => abi::START_COMPRESSION,
            StartReason::Delegate => abi::START_DELEGATE,
            StartReason::Recover => abi::START_RECOVER,
        },
        flags: if session.carry_over {
            abi::START_CARRY_OVER
        } else {
            0
        },
        old_session_id: bytes(&session.old_session_id),
        parent_session_id: bytes(&session.parent_session_id),
        root_session_id: bytes(&session.root_session_id),
        platform: bytes(&session.platform),
        conversation_id: bytes(&session.conversation_id),
        hermes_home: bytes(&session.hermes_home),
        last_pass_id: bytes(&session.last_pass_id),
        ..abi::SessionArgs::EMPTY
    }
}

pub(super) fn trigger(trigger: Trigger) -> u32 {
    match trigger {
        Trigger::Preflight => abi::TRIGGER_PREFLIGHT,
        Trigger::Tools => abi::TRIGGER_TOOLS,
        Trigger::Overflow => abi::TRIGGER_OVERFLOW,
        Trigger::Idle => abi::TRIGGER_IDLE,
        Trigger::Manual => abi::TRIGGER_MANUAL,
        Trigger::Prune => abi::TRIGGER_PRUNE,
    }
}

pub(super) fn raw_model(model: &ModelInfo) -> abi::ModelArgs {
    abi::ModelArgs {
        model: bytes(&model.model),
        provider: bytes(&model.provider),
        base_url: bytes(&model.base_url),
        api_mode: bytes(&model.api_mode),
        context_length: model.context_length,
        max_output_tokens: model.max_output_tokens,
        helper_context_length: model.helper_context_length,
        threshold_percent: model.threshold_percent.unwrap_or(0.0),
        model_thresholds: bytes(&model.model_thresholds),
        ..abi::ModelArgs::EMPTY
    }
}

pub(super) fn outcome(outcome: TurnOutcome) -> u32 {
    match outcome {
        TurnOutcome::Completed => abi::TURN_OK,
        TurnOutcome::Interrupted => abi::TURN_INTERRUPTED,
        TurnOutcome::Failed => abi::TURN_FAILED,
        TurnOutcome::Blocked => abi::TURN_BLOCKED,
    }
}
