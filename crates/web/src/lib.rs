#![doc = include_str!("../README.md")]

mod app;
mod auth;
mod extract;
mod key;
mod keyring;
mod ops;
mod page;
mod problem;
mod serve;

pub mod admin;

pub use app::{Routes, WebOptions, app, openapi};
pub use auth::{Auth, Caller, OperatorAuth, scope};
pub use extract::{StrictJson, StrictPath, StrictQuery, read_body};
pub use key::{ApiKey, Scope, Scopes, operator_hash};
pub use keyring::KeyRing;
pub use ops::{Readiness, record_metrics};
pub use page::{Page, PageQuery, limit};
pub use problem::{Code, Problem, Retry, codes};
pub use serve::serve;
