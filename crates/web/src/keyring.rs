//! The snapshot of keys that requests are checked against, so that no request waits for the ledger.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use ledger::{KeyRow, Ledger, LedgerError};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;
use usage::{SharedClock, Timestamp};

use crate::{
    Problem, Scopes,
    auth::Caller,
    key::{Scope, secret_hash},
    problem::codes,
};

/// A key works this long after the snapshot was taken, for anything.
const FRESH_MICROS: i64 = 60_000_000;
/// A report is taken this long after it: hosts must not stop because the ledger does (DESIGN, storage).
const INGEST_MICROS: i64 = 15 * 60_000_000;

/// Keys by the hash of their secret. Cloning shares the snapshot.
#[derive(Clone)]
pub struct KeyRing(Arc<Inner>);

struct Inner {
    ledger: Ledger,
    operator: Option<[u8; 32]>,
    clock: SharedClock,
    snapshot: RwLock<Snapshot>,
    used: Mutex<HashMap<String, Timestamp>>,
}

struct Snapshot {
    keys: HashMap<[u8; 32], Arc<KeyRow>>,
    taken_at: Option<Timestamp>,
}

impl KeyRing {
    /// A ring with nothing on it yet: call [`KeyRing::refresh`].
    pub fn new(ledger: Ledger, operator: Option<[u8; 32]>, clock: SharedClock) -> KeyRing {
        let snapshot = RwLock::new(Snapshot { keys: HashMap::new(), taken_at: None });
        KeyRing(Arc::new(Inner { ledger, operator, clock, snapshot, used: Mutex::default() }))
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Reads the keys anew, and notes which ones were used.
    pub async fn refresh(&self) -> Result<(), LedgerError> {
        let at = self.0.clock.now();
        let keys = self.0.ledger.key_snapshot().await?;
        let keys = keys.into_iter().map(|key| (key.secret_hash, Arc::new(key))).collect();
        *self.0.snapshot.write().unwrap_or_else(PoisonError::into_inner) =
            Snapshot { keys, taken_at: Some(at) };
        let used: Vec<(String, Timestamp)> = self.used().drain().collect();
        if !used.is_empty() {
            self.0.ledger.key_touch_many(&used).await?;
        }
        Ok(())
    }

    /// Refreshes until told to end; a ledger that is away is tried again.
    pub fn spawn_refresher(&self, every: Duration, shutdown: CancellationToken) {
        let ring = self.clone();
        tokio::spawn(async move {
            while shutdown.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
                if let Err(error) = ring.refresh().await {
                    tracing::warn!(error = %error, "cannot read the keys; the former snapshot serves on");
                }
            }
        });
    }

    fn used(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a token is the operator's.
    pub(crate) fn is_operator(&self, token: &str) -> bool {
        self.0.operator.is_some_and(|hash| bool::from(hash.ct_eq(&secret_hash(token))))
    }

    /// Who a key is, if it may do something of the scope now.
    pub(crate) fn caller(&self, token: &str, scope: Scope) -> Result<Caller, Problem> {
        let now = self.0.clock.now();
        let (key, taken_at) = {
            let snapshot = self.0.snapshot.read().unwrap_or_else(PoisonError::into_inner);
            (snapshot.keys.get(&secret_hash(token)).cloned(), snapshot.taken_at)
        };
        let age = taken_at.map_or(i64::MAX, |at| now.as_micros().saturating_sub(at.as_micros()));
        let bound = if matches!(scope, Scope::Ingest) { INGEST_MICROS } else { FRESH_MICROS };
        if age > bound {
            return Err(Problem::new(&codes::LEDGER_UNAVAILABLE)
                .detail("The keys could not be read for too long; send the same request again later.")
                .retry_after(5));
        }
        let live = key.filter(|key| key.expires_at.is_none_or(|end| now < end));
        let Some(key) = live else {
            return Err(Problem::new(&codes::UNKNOWN_KEY)
                .detail("The key is not known, has expired or was revoked; use another."));
        };
        let scopes: Scopes = key.scopes.iter().filter_map(|name| Scope::parse(name)).collect();
        if !scopes.allows(scope) {
            return Err(Problem::new(&codes::MISSING_SCOPE)
                .detail(format!("The key lacks the scope `{}`; use one that has it.", scope.as_str()))
                .with("needs", serde_json::json!(scope.as_str())));
        }
        self.used().insert(key.key_id.clone(), now);
        Ok(Caller {
            key_id: key.key_id.clone(),
            platform: key.platform.clone(),
            livemode: key.livemode,
            scopes,
            operator: false,
        })
    }
}
