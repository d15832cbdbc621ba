//! The session store, through its public surface and through the files it leaves behind.

#[path = "store/call_ids.rs"]
mod call_ids;
#[path = "store/cases.rs"]
mod cases;
#[path = "store/crowd.rs"]
mod crowd;
#[path = "store/durability.rs"]
mod durability;
#[path = "store/faults.rs"]
mod faults;
#[path = "store/identity.rs"]
mod identity;
#[path = "store/kill.rs"]
mod kill;
#[path = "store/model.rs"]
mod model;
#[path = "store/operations.rs"]
mod operations;
#[path = "store/passes.rs"]
mod passes;
#[path = "store/peer.rs"]
mod peer;
#[path = "store/search.rs"]
mod search;
#[path = "store/support.rs"]
mod support;
#[path = "store/transfer.rs"]
mod transfer;
#[path = "store/upgrade.rs"]
mod upgrade;
