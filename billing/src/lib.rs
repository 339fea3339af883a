#![doc = include_str!("../README.md")]

pub mod http;
pub mod provider;

mod rules;
mod worker;

pub use worker::payments;
