#![doc = include_str!("../README.md")]

mod host;
mod provider;

mod audit;
mod compose;
mod fan_out;
mod note;

mod serve;
mod stdio;
mod wire;

mod meter;
pub mod providers;

pub use audit::Reason;
pub use compose::{Admitted, Composition, Omitted};
pub use contextgraph_types as protocol;
pub use fan_out::{FanOut, LegRecord, RejectedFrame, Served};
pub use host::{Host, HostBuilder, HostError};
pub use meter::{Delivery, FlushSummary, Meter, MeterError, MeterOptions, Recorded};
pub use provider::{Provider, ProviderError, question};
#[cfg(unix)]
pub use serve::serve_standard_streams;
pub use serve::serve_stdio;
pub use stdio::{StdioOptions, StdioProvider};
