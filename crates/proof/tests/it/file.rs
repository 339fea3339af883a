use proof::{KeyFamily, ProofError, ProofFile, PublicKey, SigningKey};
use serde_json::Value;

use crate::{sample, sample::proof_file};

#[test]
fn a_proof_file_says_what_was_billed_and_how_far_it_was_opened() {
    let verdict = proof_file().verify().unwrap();
    assert_eq!((verdict.quantity, verdict.log_index), (941, 2));
    assert_eq!((verdict.event_opened, verdict.frames_opened, verdict.meter_opened), (true, 1, true));
    assert_eq!(verdict.kid, sample::head_key().kid());
}

#[test]
fn a_file_without_openings_still_proves_the_quantity() {
    let mut file = proof_file();
    (file.event, file.meter) = (None, None);
    let verdict = file.verify().unwrap();
    assert_eq!((verdict.quantity, verdict.event_opened, verdict.meter_opened), (941, false, false));
}

/// After an erasure identities and turn are gone; costs and commitments stay, and so does the proof.
#[test]
fn an_erased_event_is_still_proven() {
    let mut file = proof_file();
    let event = file.event.as_mut().unwrap();
    event.turn = None;
    for frame in &mut event.frames {
        frame.opened = None;
    }
    let verdict = file.verify().unwrap();
    assert_eq!((verdict.event_opened, verdict.frames_opened), (true, 0));
}

#[test]
fn a_file_comes_back_from_its_json_as_it_was() {
    let text = serde_json::to_string_pretty(&proof_file()).unwrap();
    assert_eq!(serde_json::from_str::<ProofFile>(&text).unwrap(), proof_file());
}

#[test]
fn a_member_that_nobody_knows_is_refused() {
    let mut json = serde_json::to_value(proof_file()).unwrap();
    json["event"]["frames"][0]["discount"] = 1.into();
    assert!(serde_json::from_value::<ProofFile>(json).is_err());
}

#[test]
fn a_file_that_vouches_for_itself_does_not_hold_under_the_keys_that_we_published() {
    let ours = SigningKey::from_bytes(&[0x44; 32]);
    let trusted = [PublicKey::new(KeyFamily::Head, ours.verifying_key())];
    assert!(matches!(proof_file().verify_with(&trusted), Err(ProofError::UnknownKey(_))));
}

/// Each value of the whole file, changed by as little as its kind allows, breaks it.
#[test]
fn no_value_of_a_proof_file_is_decoration() {
    let good = serde_json::to_value(proof_file()).unwrap();
    let mut pointers = Vec::new();
    collect(&good, String::new(), &mut pointers);
    assert!(pointers.len() >= 50, "the sample has {} values only", pointers.len());
    for pointer in pointers {
        let mut changed = good.clone();
        let value = changed.pointer_mut(&pointer).unwrap();
        match value {
            Value::Number(number) => *value = (number.as_i64().unwrap() + 1).into(),
            Value::String(text) => {
                let last = if text.ends_with('1') { "2" } else { "1" };
                let cut = text.char_indices().last().map_or(0, |(at, _)| at);
                text.replace_range(cut.., last);
            }
            other => panic!("{pointer}: {other}"),
        }
        let holds = serde_json::from_value::<ProofFile>(changed).is_ok_and(|file| file.verify().is_ok());
        assert!(!holds, "{pointer} was changed and the file still holds");
    }
}

fn collect(value: &Value, at: String, pointers: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{at}/{index}"), pointers);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                collect(member, format!("{at}/{name}"), pointers);
            }
        }
        _ => pointers.push(at),
    }
}

#[test]
fn a_head_of_another_platform_or_another_size_does_not_carry_the_statement() {
    let mut file = proof_file();
    file.head.platform = "reseller-2".to_owned();
    assert!(matches!(file.verify(), Err(ProofError::Differs { what: "platform", .. })));
    let mut file = proof_file();
    file.head.size = 6;
    assert!(matches!(file.verify(), Err(ProofError::Differs { what: "log size", .. })));
}

#[test]
fn an_event_outside_the_statement_s_piece_is_refused() {
    let mut file = proof_file();
    file.statement.piece_end = file.event.as_ref().unwrap().as_of;
    assert!(matches!(file.verify(), Err(ProofError::WrongShape(_))));
}

#[test]
fn a_meter_that_does_not_take_the_event_is_refused_however_right_its_hash() {
    let mut file = proof_file();
    let meter = file.meter.as_mut().unwrap();
    meter.providers = Some(vec!["memory".to_owned()]);
    file.statement.definition_hash = meter.definition_hash("context_tokens");
    assert!(matches!(file.verify(), Err(ProofError::WrongShape(_))));
    let mut file = proof_file();
    let meter = file.meter.as_mut().unwrap();
    meter.quantity = "frames_served".to_owned();
    file.statement.definition_hash = meter.definition_hash("context_tokens");
    assert!(matches!(file.verify(), Err(ProofError::Differs { what: "quantity", .. })));
}
