#![doc = include_str!("../README.md")]

mod engine;
mod error;
mod http;
mod library;
mod memory;
mod sql;
mod tcp;
pub mod test_support;

pub use engine::{Engine, EngineOptions};
pub use error::{EngineError, Exception};
pub use library::locate_library;
pub use memory::{MemConnection, MemConnector};
pub use tcp::{TcpAccess, TcpServer};
