//! The model provider over real HTTP, against a server that misbehaves on command.

#[path = "provider/answers.rs"]
mod answers;
#[path = "provider/broken.rs"]
mod broken;
#[path = "provider/cancel.rs"]
mod cancel;
#[path = "provider/complete.rs"]
mod complete;
#[path = "provider/errors.rs"]
mod errors;
#[path = "provider/figures.rs"]
mod figures;
#[path = "provider/front.rs"]
mod front;
#[path = "provider/manners.rs"]
mod manners;
#[path = "provider/property.rs"]
mod property;
#[path = "provider/support.rs"]
mod support;
#[path = "provider/tls.rs"]
mod tls;
#[path = "provider/window.rs"]
mod window;
