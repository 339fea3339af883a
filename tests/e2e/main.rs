//! The pipeline as its users meet it: real processes, the real engine, both ledgers, the Stripe sandbox.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod commands;
mod demo;
mod durability;

use contextmeter_tests::World;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_contextmeter"))
}

/// An hour that ended well before now, so that it can be sealed.
fn past_hour(minute: i64) -> String {
    let now = jiff::Timestamp::now().as_second();
    let hour = now - now.rem_euclid(3_600) - 3 * 3_600;
    jiff::Timestamp::from_second(hour + minute * 60).expect("a time of today").to_string()
}
