//! The provider against the sandbox, over a real loopback connection.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stripe;

mod calls;
