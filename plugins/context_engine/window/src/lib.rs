//! System prompt, first task and the newest turns that fit.
