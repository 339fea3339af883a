//! Events and sums over them. Every sum stands on the one counting rule, `events/once.sql`.

use clickhouse::{Row, query::RowCursor};
use serde::Deserialize;
use usage::{EventId, Hour, PlatformId, ReportKey};

use crate::{
    Cut, EventRow, StoreError, UsageStore,
    error::failed,
    params::{QueryExt as _, standing_on_once},
};

/// An event as a statement counts it.
#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct CoveredEvent {
    pub customer: String,
    pub event_id: [u8; 16],
    pub content_hash: [u8; 32],
    pub kind: String,
    pub provider: String,
    /// Microseconds since 1970, UTC.
    pub as_of: i64,
    pub tokens: u64,
    pub frames_served: u32,
}

/// Which customers a run's pass is for.
#[derive(Debug, Clone, Copy)]
pub enum Customers<'a> {
    Only(&'a [String]),
    Except(&'a [String]),
}

/// Events one by one, ordered by customer and event id, in bounded memory.
pub struct CoveredStream(RowCursor<CoveredEvent>);

impl CoveredStream {
    pub async fn next(&mut self) -> Result<Option<CoveredEvent>, StoreError> {
        self.0.next().await.map_err(|error| failed("reading covered events", error))
    }
}

/// Whole rows one by one, ordered by customer and event id.
pub struct EventStream(RowCursor<EventRow>);

impl EventStream {
    pub async fn next(&mut self) -> Result<Option<EventRow>, StoreError> {
        self.0.next().await.map_err(|error| failed("reading events", error))
    }
}

/// What usage to sum: hours in `[from, until)`.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    pub from: Hour,
    pub until: Hour,
    pub customer: Option<String>,
    pub provider: Option<String>,
}

/// Where a page of usage ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageKey {
    pub customer: String,
    pub provider: String,
    pub hour: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct UsageLine {
    pub customer: String,
    pub provider: String,
    pub hour: i64,
    pub events: u64,
    pub tokens: u128,
    pub frames: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Row, Deserialize)]
pub struct UsageTotal {
    pub events: u64,
    pub tokens: u128,
    pub frames: u64,
}

impl UsageStore {
    /// The events that a run counts: of the hour, at or below `upper`, not known at or below `lower` by their id, and
    /// not of a report with two contents.
    pub fn events_covered(
        &self,
        platform: &PlatformId,
        hour: Hour,
        lower: &Cut,
        upper: &Cut,
        customers: Customers<'_>,
    ) -> Result<CoveredStream, StoreError> {
        let text = standing_on_once(include_str!("../../../sql/clickhouse/queries/events/covered.sql"));
        let (only, names) = match customers {
            Customers::Only(names) => (true, names),
            Customers::Except(names) => (false, names),
        };
        self.query(&text)
            .hours(platform, hour, hour.next())
            .upper(Some(upper))
            .lower(lower)
            .param("only", only)
            .param("customers", names)
            .fetch()
            .map(CoveredStream)
            .map_err(|error| failed("reading covered events", error))
    }

    /// Every stored row of the hour, each position and content once.
    pub fn events_whole(&self, platform: &PlatformId, hour: Hour) -> Result<EventStream, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/events/whole.sql"))
            .param("platform", platform.as_str())
            .param("hour", hour.index())
            .fetch()
            .map(EventStream)
            .map_err(|error| failed("reading events", error))
    }

    /// Every stored copy and content of one event, the earliest first. Usually one.
    pub async fn event_get(
        &self,
        platform: &PlatformId,
        event: EventId,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/events/get.sql"))
            .param("platform", platform.as_str())
            .param("event_id", event.to_string())
            .fetch_all()
            .await
            .map_err(|error| failed("reading an event", error))
    }

    /// The events of one turn, in the order of their positions.
    pub async fn events_of_turn(
        &self,
        platform: &PlatformId,
        key: ReportKey,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/events/of_turn.sql"))
            .param("platform", platform.as_str())
            .param("report_key", key.to_string())
            .fetch_all()
            .await
            .map_err(|error| failed("reading the events of a turn", error))
    }

    /// Usage by customer, provider and hour.
    pub async fn usage_list(
        &self,
        platform: &PlatformId,
        filter: &UsageFilter,
        after: Option<&UsageKey>,
        limit: u32,
    ) -> Result<Vec<UsageLine>, StoreError> {
        let text = standing_on_once(include_str!("../../../sql/clickhouse/queries/events/usage.sql"));
        let (customer, provider, hour) =
            after.map_or(("", "", i64::MIN), |key| (&key.customer, &key.provider, key.hour));
        self.query(&text)
            .hours(platform, filter.from, filter.until)
            .upper(None)
            .param("customer", filter.customer.as_deref().unwrap_or_default())
            .param("provider", filter.provider.as_deref().unwrap_or_default())
            .param("after_customer", customer)
            .param("after_provider", provider)
            .param("after_hour", hour)
            .param("limit", limit)
            .fetch_all()
            .await
            .map_err(|error| failed("summing usage", error))
    }

    /// The total over a whole filter.
    pub async fn usage_total(
        &self,
        platform: &PlatformId,
        filter: &UsageFilter,
    ) -> Result<UsageTotal, StoreError> {
        let text = standing_on_once(include_str!("../../../sql/clickhouse/queries/events/usage_total.sql"));
        self.query(&text)
            .hours(platform, filter.from, filter.until)
            .upper(None)
            .param("customer", filter.customer.as_deref().unwrap_or_default())
            .param("provider", filter.provider.as_deref().unwrap_or_default())
            .fetch_one()
            .await
            .map_err(|error| failed("summing usage", error))
    }
}
