//! How bytes and wide integers stand in the JSON of a proof: lower-case hexadecimal and decimal strings, never a float.

pub(crate) mod hexadecimal {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        parse(&String::deserialize(deserializer)?).ok_or_else(|| {
            de::Error::custom(format_args!("expected {} lower-case hexadecimal digits", N * 2))
        })
    }

    pub(crate) fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        (lower && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(bytes)
    }
}

pub(crate) mod hexadecimals {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    use crate::Hash;

    pub(crate) fn serialize<S: Serializer>(hashes: &[Hash], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(hashes.iter().map(hex::encode))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Hash>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let parsed: Option<Vec<Hash>> = texts.iter().map(|text| super::hexadecimal::parse(text)).collect();
        parsed.ok_or_else(|| de::Error::custom("expected 64 lower-case hexadecimal digits"))
    }
}

pub(crate) mod decimal {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        // One spelling only: no sign, no leading zero.
        match text.parse::<u128>() {
            Ok(value) if value.to_string() == text => Ok(value),
            _ => {
                Err(de::Error::custom("expected a whole number in a string, without sign and leading zeros"))
            }
        }
    }
}
