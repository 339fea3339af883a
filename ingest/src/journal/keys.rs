//! Keys of the journal's keyspaces. Numbers are big-endian, so that the order of bytes is the order of positions.

use usage::{PlatformId, ReportKey};

/// `records` and `blocks`: where something starts.
pub(crate) fn position(epoch: u64, seq: u64) -> [u8; 16] {
    let mut key = [0; 16];
    let (first, second) = key.split_at_mut(8);
    first.copy_from_slice(&epoch.to_be_bytes());
    second.copy_from_slice(&seq.to_be_bytes());
    key
}

/// `epochs`.
pub(crate) fn epoch(epoch: u64) -> [u8; 8] {
    epoch.to_be_bytes()
}

/// `index`: a platform's report. The platform stands in front although the report key covers it, so that a platform's
/// part can be read alone.
pub(crate) fn report(platform: &PlatformId, key: ReportKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(platform.as_str().len() + 17);
    bytes.extend_from_slice(platform.as_str().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&key.0);
    bytes
}

/// `counts`: an epoch's hour of a platform. The sign bit is flipped, so that hours before 1970 sort first.
pub(crate) fn count(epoch: u64, hour: i64, platform: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(platform.len() + 16);
    bytes.extend_from_slice(&epoch.to_be_bytes());
    bytes.extend_from_slice(&(hour.cast_unsigned() ^ (1 << 63)).to_be_bytes());
    bytes.extend_from_slice(platform.as_bytes());
    bytes
}

/// The hour and platform of a key of `counts`.
pub(crate) fn read_count(key: &[u8]) -> Option<(i64, String)> {
    let (_, rest) = key.split_at_checked(8)?;
    let (hour, platform) = rest.split_at_checked(8)?;
    let hour = (u64::from_be_bytes(hour.try_into().ok()?) ^ (1 << 63)).cast_signed();
    Some((hour, String::from_utf8(platform.to_vec()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::{count, position, read_count};

    #[test]
    fn keys_sort_as_their_positions_do() {
        assert!(position(1, u64::MAX) < position(2, 0));
        assert!(position(2, 255) < position(2, 256));
        assert!(count(1, -5, "a") < count(1, 4, "a"));
        assert_eq!(read_count(&count(1, -5, "a")), Some((-5, "a".to_owned())));
        assert_eq!(read_count(b"short"), None);
    }
}
