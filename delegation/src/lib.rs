#![doc = include_str!("../README.md")]

mod delegation;

pub mod rules;

mod http;

mod store;

pub use delegation::Delegation;
