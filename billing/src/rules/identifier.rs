//! How a placement is named, here and at the payment service, and how a sum becomes amounts that the service takes.

use usage::{CustomerId, Encoder, MeterId, PlatformId, Timestamp};

/// The most that 15 digits hold: the payment service refuses longer numbers, which a float could not hold exactly.
pub(crate) const AMOUNT_MAX: u64 = 999_999_999_999_999;
/// An hour's own minutes bound the parts of its statements.
pub(crate) const PARTS_MAX: usize = 20;

/// What makes a placement itself. The amount is not of it: a sent revision never changes its amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacementKey<'a> {
    pub account: &'a str,
    pub platform: &'a PlatformId,
    pub customer: &'a CustomerId,
    pub meter: &'a MeterId,
    pub piece_start: Timestamp,
    pub piece_end: Timestamp,
    pub revision: u32,
    pub part: u32,
    /// The how-manieth placement of this part: the next one follows only evidence that the last is nowhere.
    pub n: u32,
}

impl PlacementKey<'_> {
    fn hash(&self) -> [u8; 32] {
        Encoder::new("cm.placement.1")
            .text(self.account)
            .text(self.platform.as_str())
            .text(self.customer.as_str())
            .text(self.meter.as_str())
            .i64(self.piece_start.as_micros())
            .i64(self.piece_end.as_micros())
            .u32(self.revision)
            .u32(self.part)
            .u32(self.n)
            .hash()
    }

    /// The identifier of the event: the payment service takes one event of it.
    pub(crate) fn identifier(&self) -> String {
        let hash = self.hash();
        let (kept, _) = hash.split_at(20);
        format!("cm1_{}", hex::encode(kept))
    }

    /// Ours. A ledger that is restored and replayed makes the same ones again.
    pub(crate) fn placement_id(&self) -> String {
        let hash = self.hash();
        let (kept, _) = hash.split_at(16);
        format!("plc_{}", hex::encode(kept))
    }
}

/// A key for one attempt: a failure that the service keeps under it must not meet the next attempt.
pub(crate) fn attempt_key(identifier: &str, attempt: u32) -> String {
    format!("{identifier}/{attempt}")
}

/// The sum needs more parts than its piece has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sum {0} needs more than {PARTS_MAX} parts")]
pub(crate) struct TooManyParts(pub u128);

/// Amounts of at most 15 digits that add up to the sum. Nothing is sent of zero.
pub(crate) fn parts(sum: u128) -> Result<Vec<u64>, TooManyParts> {
    let mut left = sum;
    let mut parts = Vec::new();
    while left > 0 {
        if parts.len() == PARTS_MAX {
            return Err(TooManyParts(sum));
        }
        let part = left.min(u128::from(AMOUNT_MAX));
        left -= part;
        parts.push(u64::try_from(part).map_err(|_| TooManyParts(sum))?);
    }
    Ok(parts)
}

#[cfg(test)]
mod vectors;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sum_above_fifteen_digits_is_split_and_nothing_is_lost() {
        for (sum, expected) in [
            (0_u128, vec![]),
            (1, vec![1]),
            (u128::from(AMOUNT_MAX), vec![AMOUNT_MAX]),
            (1_000_000_000_000_000, vec![AMOUNT_MAX, 1]),
            (2 * u128::from(AMOUNT_MAX), vec![AMOUNT_MAX, AMOUNT_MAX]),
        ] {
            assert_eq!(parts(sum).unwrap(), expected, "{sum}");
        }
        assert_eq!(parts(u128::MAX), Err(TooManyParts(u128::MAX)));
    }

    proptest! {
        #[test]
        fn parts_add_up_and_each_is_takeable(sum in 0..=20 * u128::from(AMOUNT_MAX)) {
            let parts = parts(sum).unwrap();
            prop_assert_eq!(parts.iter().map(|part| u128::from(*part)).sum::<u128>(), sum);
            prop_assert!(parts.iter().all(|part| (1..=AMOUNT_MAX).contains(part)));
        }
    }

    #[test]
    fn every_member_of_the_key_changes_the_identifier() {
        let (platform, other_platform) = (PlatformId::parse("p").unwrap(), PlatformId::parse("p2").unwrap());
        let (customer, other_customer) = (CustomerId::parse("c").unwrap(), CustomerId::parse("c2").unwrap());
        let (meter, other_meter) = (MeterId::parse("m").unwrap(), MeterId::parse("m2").unwrap());
        let key = PlacementKey {
            account: "acct_1",
            platform: &platform,
            customer: &customer,
            meter: &meter,
            piece_start: Timestamp::from_unix_seconds(0).unwrap(),
            piece_end: Timestamp::from_unix_seconds(3_600).unwrap(),
            revision: 1,
            part: 0,
            n: 1,
        };
        let all = [
            key.clone(),
            PlacementKey { account: "acct_2", ..key.clone() },
            PlacementKey { platform: &other_platform, ..key.clone() },
            PlacementKey { customer: &other_customer, ..key.clone() },
            PlacementKey { meter: &other_meter, ..key.clone() },
            PlacementKey { piece_start: Timestamp::from_unix_seconds(1).unwrap(), ..key.clone() },
            PlacementKey { piece_end: Timestamp::from_unix_seconds(3_599).unwrap(), ..key.clone() },
            PlacementKey { revision: 2, ..key.clone() },
            PlacementKey { part: 1, ..key.clone() },
            PlacementKey { n: 2, ..key.clone() },
        ];
        let distinct: std::collections::BTreeSet<String> = all.iter().map(PlacementKey::identifier).collect();
        assert_eq!(distinct.len(), all.len());
        for key in &all {
            assert_eq!(key.identifier().len(), 44);
            assert!(key.identifier().contains(key.placement_id().trim_start_matches("plc_")));
        }
        assert!(attempt_key(&key.identifier(), 4_294_967_295).len() <= 100);
    }
}
