//! Waiting for a condition, never for a time.

use std::time::Duration;

/// How long a condition may take before the test fails. Generous: a loaded machine is slow, not wrong.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Asks until `probe` answers `Ok`, and panics with the last `Err` when the limit has passed.
pub async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Result<T, String>) -> T {
    let asked = async {
        let mut last = String::from("never asked");
        let started = tokio::time::Instant::now();
        while started.elapsed() < LIMIT {
            match probe().await {
                Ok(value) => return Ok(value),
                Err(state) => last = state,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(last)
    };
    asked.await.unwrap_or_else(|last| panic!("{what}: not within {LIMIT:?}; last seen: {last}"))
}
