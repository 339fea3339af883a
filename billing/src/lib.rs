#![doc = include_str!("../README.md")]

mod billing;

pub mod http;
pub mod provider;

mod rules;
mod worker;

mod count;
mod disputes;
mod verify;

mod error;

pub use billing::{Billing, BillingDeps};
pub use error::BillingError;
pub use verify::{Difference, Verification};
pub use worker::payments;
pub use worker::seal::{HourReason, SealRequest, SealStatus, SealedHour};
