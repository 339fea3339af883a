//! What the ledger says about platforms and customers, kept so that reports are taken while the ledger is away.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use ledger::{Ledger, PlatformRow};
use usage::{CustomerId, ErasureKey, PlatformId, SharedClock, Timestamp};
use web::{Problem, codes};

/// A platform's settings are read again after this time.
const FRESH_MICROS: i64 = 60_000_000;
/// Entries that a map keeps; beyond it the ledger is asked more often.
const BOUND: usize = 200_000;

type Key = (PlatformId, CustomerId);

pub(crate) struct Settings {
    ledger: Ledger,
    clock: SharedClock,
    platforms: Kept<PlatformId, (Timestamp, Arc<PlatformRow>)>,
    customers: Kept<Key, ()>,
    erasure: Kept<Key, Arc<ErasureKey>>,
}

impl Settings {
    pub(crate) fn new(ledger: Ledger, clock: SharedClock) -> Self {
        Settings { ledger, clock, platforms: Kept::new(), customers: Kept::new(), erasure: Kept::new() }
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    /// A platform's settings, at most a minute old while the ledger answers.
    pub(crate) async fn of(&self, platform: &PlatformId) -> Result<Arc<PlatformRow>, Problem> {
        let now = self.clock.now();
        let kept = self.platforms.get(platform);
        if let Some((at, row)) = &kept
            && now.micros_since(*at) < i128::from(FRESH_MICROS)
        {
            return Ok(Arc::clone(row));
        }
        match (self.ledger.platform_get(platform).await, kept) {
            (Ok(row), _) => {
                let row = Arc::new(row);
                self.platforms.put(platform.clone(), (now, Arc::clone(&row)));
                Ok(row)
            }
            (Err(error), Some((_, row))) if error.retryable() => Ok(row),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Refuses a customer that a strict platform has not named.
    pub(crate) async fn known_customer(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
    ) -> Result<(), Problem> {
        let key = (platform.clone(), customer.clone());
        if self.customers.get(&key).is_some() {
            return Ok(());
        }
        match self.ledger.customer_get(platform, customer).await {
            Ok(_) => {
                self.customers.put(key, ());
                Ok(())
            }
            Err(ledger::LedgerError::NotFound { .. }) => Err(Problem::new(&codes::CUSTOMER_UNKNOWN)
                .detail("The platform takes reports for linked customers only; link this one first.")
                .pointer("/customer_id")),
            Err(error) => Err(error.into()),
        }
    }

    /// The customer's secret. Without the ledger only a customer that was seen before has one.
    pub(crate) async fn erasure_key(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
    ) -> Result<Arc<ErasureKey>, Problem> {
        let key = (platform.clone(), customer.clone());
        if let Some(kept) = self.erasure.get(&key) {
            return Ok(kept);
        }
        let mut candidate = [0; 32];
        getrandom::fill(&mut candidate)
            .map_err(|error| Problem::new(&codes::INTERNAL).internal(&crate::IngestError::Random(error)))?;
        let secret = self.ledger.erasure_key_get_or_create(platform, customer, candidate).await?;
        let secret = Arc::new(ErasureKey::from_bytes(secret));
        self.erasure.put(key, Arc::clone(&secret));
        Ok(secret)
    }
}

/// A bounded map. When it is full some entry makes place; each can be had again.
struct Kept<K, V>(Mutex<HashMap<K, V>>);

impl<K: Eq + Hash + Clone, V: Clone> Kept<K, V> {
    fn new() -> Self {
        Kept(Mutex::default())
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: K, value: V) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= BOUND
            && let Some(any) = map.keys().next().cloned()
        {
            map.remove(&any);
        }
        map.insert(key, value);
    }
}
