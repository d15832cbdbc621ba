//! What a call can answer.

/// The answer of a slot or of a host function. [`OK`] and the other values that the slot names are
/// success; every other value, known or not, is failure.
pub type Status = i32;

/// Done.
pub const OK: Status = 0;
/// `compress`, `select_context`: leave the list as it is; anything emitted is dropped.
pub const UNCHANGED: Status = 1;
/// `idle`: there is more to do, call again.
pub const MORE: Status = 2;
/// It did not work; the text given to `Call::error` says why.
pub const ERR_FAILED: Status = -1;
/// A panic or an exception was caught inside the engine. The instance is dead; the host replaces it.
pub const ERR_PANIC: Status = -2;
/// The call was cancelled.
pub const ERR_CANCELLED: Status = -3;
/// An argument breaks the rules of the border.
pub const ERR_INVALID: Status = -4;
/// The callee does not do this.
pub const ERR_UNSUPPORTED: Status = -5;
/// A limit was reached.
pub const ERR_LIMIT: Status = -6;
/// `create`: nothing is broken, but not here (no key, no database). The text is shown as the reason.
pub const ERR_UNAVAILABLE: Status = -7;
