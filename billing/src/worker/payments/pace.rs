//! How fast, and for how long, a run may act.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// At most so many a second, with one second's worth to begin with. A service that asks for a pause stops everybody.
pub(crate) struct Pace {
    gap: Duration,
    burst: u32,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    pub(crate) fn per_second(rate: u32) -> Self {
        let rate = rate.max(1);
        Self { gap: Duration::from_secs(1) / rate, burst: rate, next: Mutex::new(None) }
    }

    /// Waits for the caller's turn.
    pub(crate) async fn turn(&self) {
        let wait = {
            let mut next = self.next.lock().await;
            let now = Instant::now();
            // Turns that were not taken are kept for one second.
            let kept = now.checked_sub(self.gap * self.burst).unwrap_or(now);
            let turn = next.map_or(kept, |next| next.max(kept));
            *next = Some(turn + self.gap);
            turn.saturating_duration_since(now)
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    pub(crate) async fn pause(&self, pause: Duration) {
        let mut next = self.next.lock().await;
        let until = Instant::now() + pause;
        *next = Some(next.map_or(until, |next| next.max(until)));
    }
}

/// Time since the machine started, sleep included: a process that was put to sleep must not believe in a lease that ran out meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BootInstant {
    booted: Option<Duration>,
    running: Instant,
}

impl BootInstant {
    pub(crate) fn now() -> Self {
        Self { booted: uptime(), running: Instant::now() }
    }

    /// The longer of both clocks: the one that stands still during sleep is all there is where the other cannot be read.
    pub(crate) fn elapsed(&self) -> Duration {
        let running = self.running.elapsed();
        match (self.booted, uptime()) {
            (Some(then), Some(now)) => running.max(now.saturating_sub(then)),
            _ => running,
        }
    }
}

fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let seconds = Duration::from_secs(seconds.parse().ok()?);
    seconds.checked_add(Duration::from_millis(hundredths.parse::<u64>().ok()?.checked_mul(10)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_second_is_free_and_then_each_waits_its_turn() {
        let pace = Pace::per_second(50);
        let begun = Instant::now();
        for _ in 0..50 {
            pace.turn().await;
        }
        assert!(begun.elapsed() < Duration::from_millis(900), "a burst of one second's worth does not wait");
        for _ in 0..10 {
            pace.turn().await;
        }
        // Ten more at 20 ms each, less what the burst itself took.
        assert!(begun.elapsed() >= Duration::from_millis(180), "{:?}", begun.elapsed());
    }

    #[test]
    fn the_boot_clock_goes_forward() {
        let begun = BootInstant::now();
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(begun.booted.is_some(), "this machine tells its uptime");
    }
}
