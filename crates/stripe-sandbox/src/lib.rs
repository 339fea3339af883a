// Stripe's larger objects are one `json!` each.
#![recursion_limit = "512"]
#![doc = include_str!("../README.md")]

mod sandbox;
mod server;

mod exchange;

mod api;
mod control;
mod faults;
mod idempotency;
mod journal;
mod params;
mod routes;

mod state;
mod webhooks;

mod clock;
mod decimal;
mod error;
mod pricing;

pub use faults::{ConcurrencyMode, EventWindowClock, Fault, FaultKind, Settings, UnknownCustomer};
pub use pricing::LineQuantity;
pub use sandbox::{Sandbox, SandboxOptions};
pub use server::{Server, serve};
pub use webhooks::WebhookTarget;
