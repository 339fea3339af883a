//! The rules of a budget, pure: nothing here reads a clock, a ledger or a request.

mod budget;
mod command;
mod decide;
mod event;
mod ids;

pub use budget::{Attempt, Budget, Corrupt, Hold, Outcome, Phase, State, Totals, fold};
pub use command::{Command, Open, Release, Reserve, Resolve, Settle, Unknown};
pub use decide::{ATTEMPTS_MAX, Refusal, decide};
pub use event::{Ending, Event, Evidence, Resolution};
pub use ids::{AttemptId, DelegationId, Digest, HoldId, InvalidText, Note, Reference};
