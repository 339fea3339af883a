use std::collections::BTreeMap;

/// How far each journal counts: epoch to the greatest position. A journal that is not named counts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut(pub BTreeMap<u64, u64>);

impl Cut {
    pub(crate) fn epochs(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }

    pub(crate) fn seqs(&self) -> Vec<u64> {
        self.0.values().copied().collect()
    }
}

impl FromIterator<(u64, u64)> for Cut {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(positions: I) -> Self {
        Self(positions.into_iter().collect())
    }
}
