use proof::{HeadBody, KeyFamily, ProofError, PublicKey, SignedHead, SigningKey, VerifyingKey};

use crate::sample::head_key;

fn body() -> HeadBody {
    HeadBody { platform: "reseller".to_owned(), size: 5, root: [7; 32], at: 1_796_044_500_000_000 }
}

#[test]
fn a_head_holds_under_the_key_it_names_and_under_no_other() {
    let key = |family, key: &SigningKey| PublicKey::new(family, key.verifying_key());
    let head = SignedHead::sign(body(), &head_key());
    assert_eq!(head.verify(&[key(KeyFamily::Head, &head_key())]), Ok(()));
    let other = SigningKey::from_bytes(&[0x33; 32]);
    let unknown = Err(ProofError::UnknownKey(head_key().kid()));
    assert_eq!(head.verify(&[]), unknown);
    assert_eq!(head.verify(&[key(KeyFamily::Head, &other)]), unknown);
    assert_eq!(head.verify(&[key(KeyFamily::Acknowledgement, &head_key())]), unknown, "of the other family");
    let mut renamed = key(KeyFamily::Head, &other);
    renamed.kid = head_key().kid();
    assert_eq!(head.verify(&[renamed]), unknown, "a key does not choose its own name");
}

#[test]
fn no_member_of_a_head_changes_without_breaking_its_signature() {
    let trusted = [PublicKey::new(KeyFamily::Head, head_key().verifying_key())];
    type Change = fn(&mut SignedHead);
    let changes: [Change; 5] = [
        |head| head.platform.push('2'),
        |head| head.size += 1,
        |head| head.root[31] ^= 1,
        |head| head.at -= 1,
        |head| head.signature.0[0] ^= 1,
    ];
    for change in changes {
        let mut head = SignedHead::sign(body(), &head_key());
        change(&mut head);
        assert_eq!(head.verify(&trusted), Err(ProofError::BadSignature));
    }
}

/// Under a point of small order one signature verifies for many messages.
#[test]
fn a_weak_public_key_is_refused() {
    let mut one = [0; 32];
    one[0] = 1;
    for weak in [[0; 32], one] {
        assert!(VerifyingKey::from_bytes(&weak).is_err());
    }
}

#[test]
fn a_secret_key_does_not_show_itself() {
    assert_eq!(format!("{:?}", head_key()), format!("SigningKey({})", head_key().kid()));
    assert_eq!(*head_key().to_bytes(), [0x11; 32]);
}

#[test]
fn a_key_in_json_is_its_family_its_name_and_base64() {
    let key = PublicKey::new(KeyFamily::Head, head_key().verifying_key());
    let json = serde_json::to_value(&key).unwrap();
    assert_eq!(json["family"], "head");
    assert_eq!(json["kid"].as_str().unwrap().len(), 16);
    assert_eq!(serde_json::from_value::<PublicKey>(json.clone()).unwrap(), key);
    for bad in ["", "AAAA", "not base64", &key.public_key.to_base64().replace('=', "")] {
        let mut json = json.clone();
        json["public_key"] = bad.into();
        assert!(serde_json::from_value::<PublicKey>(json).is_err(), "{bad}");
    }
}
