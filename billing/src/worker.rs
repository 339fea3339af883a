//! What runs without being asked: idempotent tasks that compare what is intended with what is.

pub mod payments;
pub(crate) mod seal;
