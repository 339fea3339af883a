use usage::{
    ContentHash, CustomerId, EventId, FrameKey, IdError, MeterId, PlatformId, ProviderId, RequestId, TurnId,
};

#[test]
fn an_identity_of_a_platform_may_be_any_text_that_a_line_can_hold() {
    for good in ["a", "ACME Ltd.", "日本 😀", "a\u{200b}b", "../../etc", "' OR 1=1 --", &"x".repeat(200)]
    {
        assert_eq!(CustomerId::parse(good).unwrap().as_str(), good);
    }
    assert_eq!(CustomerId::parse(""), Err(IdError::Empty));
    assert_eq!(CustomerId::parse("é".repeat(101)), Err(IdError::TooLong { bytes: 202, max: 200 }));
    for bad in ["\0", "\t", "\n", "\u{1b}", "\u{7f}", "\u{80}", "\u{9f}", "\u{2028}", "\u{2029}"] {
        assert_eq!(
            CustomerId::parse(format!("ab{bad}")),
            Err(IdError::ControlCharacter { at: 2 }),
            "{bad:?}"
        );
    }
    assert!(FrameKey::parse("f".repeat(1024)).is_ok() && FrameKey::parse("f".repeat(1025)).is_err());
}

#[test]
fn names_that_stand_in_addresses_are_plain() {
    for good in ["a", "reseller-2", "tokens_in", &"x".repeat(64)] {
        assert!(PlatformId::parse(good).is_ok() && MeterId::parse(good).is_ok());
    }
    for bad in ["", "A", "a b", "ä", "a/b", "a.b", &"x".repeat(65)] {
        assert!(PlatformId::parse(bad).is_err() && MeterId::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_hash_has_one_spelling() {
    let hash = ContentHash([0xab; 32]);
    let text = "ab".repeat(32);
    assert_eq!((hash.to_string(), format!("{hash:?}")), (text.clone(), text.clone()));
    assert_eq!(ContentHash::parse(&text), Ok(hash));
    for bad in
        [text.to_uppercase(), text[2..].to_owned(), format!("{text}00"), "zz".repeat(32), String::new()]
    {
        assert!(ContentHash::parse(&bad).is_err(), "{bad}");
    }
    assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<ContentHash>(&format!("\"{text}\"")).unwrap(), hash);
}

#[test]
fn identities_that_read_alike_when_joined_are_apart() {
    let id = |request: &str, turn: &str, provider: &str| {
        EventId::context(
            &PlatformId::parse("p").unwrap(),
            &RequestId::parse(request).unwrap(),
            &TurnId::parse(turn).unwrap(),
            &ProviderId::parse(provider).unwrap(),
        )
    };
    let all = [
        id("ab", "c", "d"),
        id("a", "bc", "d"),
        id("a", "b", "cd"),
        id("a", "bcd", "d"),
        id("abc", "d", "d"),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all.iter().skip(at + 1).all(|other| one != other));
    }
    let delegation = EventId::delegation(&PlatformId::parse("p").unwrap(), "ab", "c", "d");
    assert!(!all.contains(&delegation), "a kind of its own has ids of its own");
}

#[test]
fn a_secret_does_not_show_itself() {
    assert_eq!(format!("{:?}", crate::sample::erasure()), "ErasureKey(…)");
}
