//! What decides, without any input or output: each rule is a function of its arguments and is tested by itself.

pub(crate) mod cuts;
pub(crate) mod pieces;
pub(crate) mod sealing;

pub(crate) mod identifier;
pub(crate) mod invoice;
pub(crate) mod minute;
pub(crate) mod period;
pub(crate) mod placement;
