use proof::{Leaf, ProofError, Side, Step, SumNode, SumTreeBuilder, inclusion, sum_root, verify_leaves};
use proptest::prelude::*;

use crate::sample::leaves;

/// By the words of RFC 6962, from all leaves at once: the builder under test keeps only its right edge.
fn hold_to_the_split(leaves: &[Leaf]) {
    if leaves.len() < 2 {
        return;
    }
    let powers = (0..).map(|power| 1usize << power);
    let (left, right) = leaves.split_at(powers.take_while(|half| *half < leaves.len()).last().unwrap());
    let mut from_first = inclusion(leaves, left[0].event_id).unwrap().steps;
    let mut from_last = inclusion(leaves, right[right.len() - 1].event_id).unwrap().steps;
    let (top, other_top) = (from_first.pop().unwrap(), from_last.pop().unwrap());
    assert_eq!(top, Step { side: Side::Right, sibling: sum_root(right).unwrap() });
    assert_eq!(other_top, Step { side: Side::Left, sibling: sum_root(left).unwrap() });
    assert_eq!(from_first, inclusion(left, left[0].event_id).unwrap().steps);
    hold_to_the_split(left);
    hold_to_the_split(right);
}

#[test]
fn the_tree_is_split_at_the_largest_power_of_two_below_its_size() {
    for size in 0..=40 {
        let leaves = leaves(size);
        hold_to_the_split(&leaves);
        let root = sum_root(&leaves).unwrap();
        assert_eq!(root.count, u64::from(size));
        assert_eq!(root.sum, leaves.iter().map(|leaf| u128::from(leaf.quantity)).sum::<u128>());
    }
}

#[test]
fn every_leaf_of_every_tree_has_a_proof_that_holds_for_it_alone() {
    for size in 1..=20u8 {
        let leaves = leaves(size);
        let root = sum_root(&leaves).unwrap();
        for (at, leaf) in (0u64..).zip(&leaves) {
            let proof = inclusion(&leaves, leaf.event_id).unwrap();
            assert_eq!(proof.verify(leaf, &root), Ok(()));
            assert_eq!(proof.position(), Ok(at));
            for other in leaves.iter().filter(|other| *other != leaf) {
                assert!(proof.verify(other, &root).is_err());
            }
        }
    }
}

#[test]
fn leaves_that_do_not_increase_are_refused_so_no_event_is_counted_twice() {
    let mut twice = leaves(3);
    twice[2] = twice[1];
    let mut swapped = leaves(3);
    swapped.swap(0, 1);
    for wrong in [twice, swapped] {
        assert!(matches!(sum_root(&wrong), Err(ProofError::NotIncreasing(_))));
        assert!(matches!(verify_leaves(&wrong, &SumNode::empty()), Err(ProofError::NotIncreasing(_))));
    }
}

#[test]
fn an_event_that_is_not_there_has_no_proof() {
    assert!(matches!(inclusion(&leaves(3), [9; 16]), Err(ProofError::NotInTree(_))));
    assert!(matches!(inclusion(&[], [9; 16]), Err(ProofError::NotInTree(_))));
    assert!(matches!(SumTreeBuilder::new().finish_proof(), Err(ProofError::NotInTree(_))));
}

/// The fear behind a sum in every node: a seller who adds to one side what it takes from the other.
#[test]
fn moving_tokens_between_the_sides_of_a_node_does_not_hold() {
    let leaves = leaves(4);
    let root = sum_root(&leaves).unwrap();
    let good = inclusion(&leaves, leaves[1].event_id).unwrap();
    let mut moved = good.clone();
    moved.steps[0].sibling.sum += 50;
    moved.steps[1].sibling.sum -= 50;
    assert!(matches!(moved.verify(&leaves[1], &root), Err(ProofError::Differs { what: "root", .. })));
    let inflated = SumNode { sum: root.sum + 1, ..root };
    assert!(matches!(good.verify(&leaves[1], &inflated), Err(ProofError::Differs { what: "sum", .. })));
    let more = SumNode { count: 5, ..root };
    assert!(matches!(good.verify(&leaves[1], &more), Err(ProofError::Differs { what: "count", .. })));
}

#[test]
fn a_sum_that_would_overflow_is_an_error_and_never_wraps() {
    let leaves = leaves(2);
    let mut proof = inclusion(&leaves, leaves[1].event_id).unwrap();
    proof.steps[0].sibling.sum = u128::MAX;
    assert_eq!(proof.verify(&leaves[1], &sum_root(&leaves).unwrap()), Err(ProofError::Overflow));
}

#[test]
fn a_proof_of_another_shape_is_refused() {
    let leaves = leaves(5);
    let root = sum_root(&leaves).unwrap();
    let mut mirrored = inclusion(&leaves, leaves[0].event_id).unwrap();
    for step in &mut mirrored.steps {
        step.side = Side::Left;
    }
    assert!(mirrored.verify(&leaves[0], &root).is_err());
    let mut empty_side = inclusion(&leaves, leaves[0].event_id).unwrap();
    empty_side.steps.push(Step { side: Side::Right, sibling: SumNode::empty() });
    assert!(matches!(empty_side.verify(&leaves[0], &root), Err(ProofError::WrongShape(_))));
}

#[test]
fn a_sum_in_json_is_a_decimal_text_with_one_spelling() {
    let node = SumNode { hash: [1; 32], count: 2, sum: u128::MAX };
    let text = serde_json::to_string(&node).unwrap();
    assert!(text.contains("\"340282366920938463463374607431768211455\""));
    assert_eq!(serde_json::from_str::<SumNode>(&text).unwrap(), node);
    let max = u128::MAX.to_string();
    for bad in ["01", "+1", "-0", " 1", "1.0", "1e3", "", "340282366920938463463374607431768211456"] {
        assert!(serde_json::from_str::<SumNode>(&text.replace(&max, bad)).is_err(), "{bad}");
    }
    assert!(serde_json::from_str::<SumNode>(&text.replace(&format!("\"{max}\""), "1")).is_err());
    assert!(serde_json::from_str::<SumNode>(&text.replace("0101", "0A0A")).is_err());
}

proptest! {
    #[test]
    fn no_change_of_a_leaf_leaves_its_proof_standing(size in 1u8..40, at in any::<prop::sample::Index>(), add in 1u64.., bit in 0u8..8) {
        let leaves = leaves(size);
        let root = sum_root(&leaves).unwrap();
        let leaf = leaves[at.index(leaves.len())];
        let proof = inclusion(&leaves, leaf.event_id).unwrap();
        let mut changes = [leaf; 3];
        changes[0].quantity = leaf.quantity.wrapping_add(add);
        changes[1].event_id[usize::from(size) % 16] ^= 1 << bit;
        changes[2].content_hash[usize::from(size) % 32] ^= 1 << bit;
        for changed in changes {
            prop_assert!(proof.verify(&changed, &root).is_err());
        }
    }
}
