#![doc = include_str!("../README.md")]

mod page;
mod views;

pub use page::routes;
