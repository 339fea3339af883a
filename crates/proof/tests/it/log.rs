use proof::{
    ProofError,
    log::{self, LogFrontier},
};

use crate::sample::entries;

#[test]
fn a_log_that_keeps_only_its_edge_has_the_root_of_all_its_entries() {
    let all = entries(70);
    let mut frontier = LogFrontier::new();
    assert_eq!(frontier.root(), log::root(&[]));
    for (at, entry) in all.iter().enumerate() {
        frontier.append(entry).unwrap();
        assert_eq!(frontier.root(), log::root(&all[..=at]));
        let read = LogFrontier::from_bytes(&frontier.to_bytes()).unwrap();
        assert_eq!((&read, read.size()), (&frontier, u64::try_from(at).unwrap() + 1));
    }
}

#[test]
fn bytes_that_are_no_edge_are_refused() {
    let mut frontier = LogFrontier::new();
    for entry in entries(5) {
        frontier.append(&entry).unwrap();
    }
    let good = frontier.to_bytes();
    for bad in [
        &good[..0],
        &good[..7],
        &good[..8],
        &good[..40],
        &good[..good.len() - 1],
        &[&good[..], &[0]].concat(),
    ] {
        assert_eq!(LogFrontier::from_bytes(bad), Err(ProofError::Malformed("log frontier")));
    }
}

#[test]
fn every_entry_of_every_log_has_a_proof_that_holds_for_it_alone() {
    for size in 1..=20u8 {
        let entries = entries(size);
        let root = log::root(&entries);
        for (index, entry) in (0u64..).zip(&entries) {
            let proof = log::inclusion(&entries, index).unwrap();
            assert_eq!(proof.verify(entry, &root), Ok(()), "{index} of {size}");
            assert!(proof.verify(&[0xee; 32], &root).is_err());
            for wrong in (0..u64::from(size) + 2).filter(|wrong| *wrong != index) {
                let mut moved = proof.clone();
                moved.index = wrong;
                assert!(moved.verify(entry, &root).is_err(), "{index} of {size} as {wrong}");
            }
            for hash in 0..proof.path.len() {
                let mut shorter = proof.clone();
                shorter.path.remove(hash);
                assert!(shorter.verify(entry, &root).is_err());
            }
            let mut longer = proof.clone();
            longer.path.push([0; 32]);
            assert!(longer.verify(entry, &root).is_err());
        }
        let out = log::inclusion(&entries, u64::from(size));
        assert!(matches!(out, Err(ProofError::OutOfLog { .. })));
    }
}

#[test]
fn every_earlier_log_is_a_prefix_of_every_later_one_and_of_no_other() {
    for second in 0..=20u8 {
        let entries = entries(second);
        let second_root = log::root(&entries);
        for first in 0..=second {
            let first_root = log::root(&entries[..usize::from(first)]);
            let proof = log::consistency(&entries, u64::from(first)).unwrap();
            assert_eq!(proof.verify(&first_root, &second_root), Ok(()), "{first} to {second}");
            assert!(proof.verify(&[0xee; 32], &second_root).is_err(), "{first} to {second}");
            if first > 0 {
                assert!(proof.verify(&first_root, &[0xee; 32]).is_err(), "{first} to {second}");
            }
            let mut longer = proof.clone();
            longer.path.push([0; 32]);
            assert!(longer.verify(&first_root, &second_root).is_err(), "{first} to {second}");
        }
        assert!(matches!(
            log::consistency(&entries, u64::from(second) + 1),
            Err(ProofError::OutOfLog { .. })
        ));
    }
}

/// What a log is for: an entry that was rewritten after a head left us shows.
#[test]
fn a_log_that_rewrote_an_entry_does_not_connect_to_the_head_from_before() {
    let honest = entries(6);
    let mut rewritten = entries(9);
    rewritten[2] = [0xee; 32];
    let proof = log::consistency(&rewritten, 6).unwrap();
    assert!(proof.verify(&log::root(&honest), &log::root(&rewritten)).is_err());
}
