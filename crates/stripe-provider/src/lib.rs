#![doc = include_str!("../README.md")]

mod provider;

mod client;
mod objects;
mod outcome;

mod decimal;

pub use client::{Answer, StripeClient, StripeFailure, StripeOptions};
pub use provider::StripeProvider;
