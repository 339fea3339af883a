use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Encoder, EventKind, MeterId, ProviderId, report::present, words::words};

words! {
    /// What a meter counts of an event that it takes.
    pub enum Quantity {
        Tokens = "tokens",
        FramesServed = "frames_served",
        Events = "events",
    }
}

/// Which events a meter takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterFilter {
    pub kind: EventKind,
    /// Absent: every provider.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub providers: Option<BTreeSet<ProviderId>>,
}

/// A meter: a filter and one quantity. It is succeeded by another, never edited, so its hash stands in every statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterDefinition {
    pub meter_id: MeterId,
    pub filter: MeterFilter,
    pub quantity: Quantity,
}

/// As much of an event as a meter looks at.
#[derive(Debug, Clone, Copy)]
pub struct EventFacts<'a> {
    pub kind: EventKind,
    pub provider: &'a str,
    pub tokens: u64,
    pub frames_served: u32,
}

impl MeterDefinition {
    /// The event's quantity, zero included, or none when the meter does not take it.
    pub fn takes(&self, event: &EventFacts<'_>) -> Option<u64> {
        if event.kind != self.filter.kind {
            return None;
        }
        if let Some(providers) = &self.filter.providers
            && !providers.contains(event.provider)
        {
            return None;
        }
        Some(match self.quantity {
            Quantity::Tokens => event.tokens,
            Quantity::FramesServed => u64::from(event.frames_served),
            Quantity::Events => 1,
        })
    }

    pub fn definition_hash(&self) -> [u8; 32] {
        Encoder::new("cm.meter.1")
            .text(self.meter_id.as_str())
            .text(self.filter.kind.as_str())
            .option(self.filter.providers.as_ref(), |encoder, providers| {
                encoder.list(providers, |encoder, provider: &ProviderId| encoder.text(provider.as_str()))
            })
            .text(self.quantity.as_str())
            .hash()
    }
}
