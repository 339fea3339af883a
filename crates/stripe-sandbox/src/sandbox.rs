//! The sandbox as its owner holds it: options in, a router out.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::clock::BaseClock;
use crate::faults::Settings;
use crate::journal::Journal;
use crate::state::{Accounts, World};
use crate::webhooks::{self, Delivery, WebhookTarget};

/// How a sandbox starts.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// Unix seconds at which a clock stands that moves only by `/_sandbox/clock` or [`Sandbox::set_now`]. None is the real clock.
    pub start: Option<i64>,
    /// A receiver of all events of all accounts, beside the endpoints made through the API.
    pub webhook: Option<WebhookTarget>,
    /// From the end of a period to the invoice's own finalisation.
    pub grace_seconds: i64,
    /// Where the state lives across restarts. None forgets.
    pub state_file: Option<PathBuf>,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self { start: None, webhook: None, grace_seconds: 3_600, state_file: None }
    }
}

/// A running stand-in. Clones share its state.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

struct Inner {
    world: Mutex<World>,
    webhook: Option<WebhookTarget>,
    state_file: Option<PathBuf>,
    deliveries_changed: Notify,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    clock: BaseClock,
    settings: Settings,
    accounts: Accounts,
    deliveries: VecDeque<Delivery>,
}

#[derive(Serialize)]
struct SavedRef<'a> {
    clock: BaseClock,
    settings: &'a Settings,
    accounts: &'a Accounts,
    deliveries: &'a VecDeque<Delivery>,
}

impl Sandbox {
    /// An empty sandbox, or the one that `state_file` holds. A file that cannot be read is an error in the log and starts empty only when there is none:
    /// use [`Sandbox::open`] to see the error.
    pub fn new(options: SandboxOptions) -> Self {
        let fresh = SandboxOptions { state_file: None, ..options.clone() };
        Self::open(options).unwrap_or_else(|error| {
            tracing::error!(%error, "failed to read the sandbox's state file; it runs without one");
            Self::empty(fresh)
        })
    }

    /// As [`Sandbox::new`], refusing a state file that cannot be read.
    pub fn open(options: SandboxOptions) -> io::Result<Self> {
        let path = options.state_file.clone();
        let start = options.start;
        let grace_seconds = options.grace_seconds;
        let sandbox = Self::empty(options);
        let Some(path) = path else { return Ok(sandbox) };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(sandbox),
            Err(error) => return Err(error),
        };
        let mut saved: Saved = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        saved.accounts.revive();
        sandbox.with(|world| {
            world.accounts = saved.accounts;
            world.settings = Settings { grace_seconds, ..saved.settings };
            world.deliveries = saved.deliveries;
            // A standing clock goes on where it stood; what was asked for decides which kind it is.
            world.clock = match (start, saved.clock) {
                (Some(start), BaseClock::Standing(at)) => BaseClock::Standing(start.max(at)),
                (Some(start), BaseClock::Real) => BaseClock::Standing(start),
                (None, _) => BaseClock::Real,
            };
        });
        Ok(sandbox)
    }

    fn empty(options: SandboxOptions) -> Self {
        let world = World {
            clock: options.start.map_or(BaseClock::Real, BaseClock::Standing),
            settings: Settings { grace_seconds: options.grace_seconds, ..Settings::default() },
            faults: Vec::new(),
            accounts: Accounts::default(),
            journal: Journal::default(),
            deliveries: VecDeque::new(),
            in_flight: HashMap::new(),
            rate: None,
        };
        Self {
            inner: Arc::new(Inner {
                world: Mutex::new(world),
                webhook: options.webhook,
                state_file: options.state_file,
                deliveries_changed: Notify::new(),
            }),
        }
    }

    /// All routes. Webhooks and the passing of time without requests need [`crate::serve`]; so does a dropped connection, which is a 500 here.
    pub fn router(&self) -> Router {
        Router::new().fallback(crate::exchange::answer).with_state(self.clone())
    }

    /// Moves a standing clock; what was due meanwhile happens, each at its time. A real clock stays real.
    pub fn set_now(&self, unix_seconds: i64) {
        self.with(|world| {
            if let BaseClock::Standing(at) = &mut world.clock {
                *at = unix_seconds;
            }
        });
        self.tick();
    }

    /// Does what is due at this instant. Each request does so first.
    pub fn tick(&self) {
        self.with(|world| {
            if self.run_due(world) {
                self.save_or_log(world);
            }
        });
    }

    pub(crate) fn run_due(&self, world: &mut World) -> bool {
        let now = world.clock.now();
        let mut any = false;
        for account in world.accounts.all() {
            any |= account.run_due(&world.settings, now);
        }
        if any {
            self.tell(world);
        }
        any
    }

    /// Queues new events for their receivers.
    pub(crate) fn tell(&self, world: &mut World) {
        webhooks::enqueue(world, self.inner.webhook.as_ref());
        self.inner.deliveries_changed.notify_one();
    }

    pub(crate) async fn deliveries_changed(&self) {
        self.inner.deliveries_changed.notified().await;
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        // A panic while the lock was held left a state that is still the best there is.
        work(&mut self.inner.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the whole state beside the file and renames it, so that a crash leaves the old or the new one.
    pub(crate) fn save(&self, world: &World) -> io::Result<()> {
        let Some(path) = &self.inner.state_file else { return Ok(()) };
        let saved = SavedRef {
            clock: world.clock,
            settings: &world.settings,
            accounts: &world.accounts,
            deliveries: &world.deliveries,
        };
        let bytes = serde_json::to_vec(&saved).map_err(io::Error::other)?;
        let beside = path.with_extension("tmp");
        std::fs::write(&beside, bytes)?;
        std::fs::rename(&beside, path)
    }

    pub(crate) fn save_or_log(&self, world: &World) {
        if let Err(error) = self.save(world) {
            tracing::error!(%error, "failed to write the sandbox's state file");
        }
    }
}
