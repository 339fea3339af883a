//! Identities and short texts, checked where they enter.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{expected}")]
pub struct InvalidText {
    /// What is expected instead.
    pub expected: &'static str,
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $check:expr, $expected:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidText> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text.into_boxed_str())) } else { Err(InvalidText { expected: $expected }) }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidText;

            fn try_from(text: String) -> Result<Self, InvalidText> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0.into()
            }
        }
    )*};
}

texts! {
    /// A budget, in the platform's words. It stands in addresses as it is.
    DelegationId: is_name, "an identity has 1 to 128 of A-Z, a-z, 0-9, `.`, `_`, `:` and `-`, and begins with a letter or a digit";
    /// One try at an effect, in the platform's words; unique within its budget.
    AttemptId: is_name, "an identity has 1 to 128 of A-Z, a-z, 0-9, `.`, `_`, `:` and `-`, and begins with a letter or a digit";
    /// A short text for people: a reason, a person's name.
    Note: |text| is_text(text, 512), "a text has 1 to 512 bytes, without control characters";
    /// What a piece of evidence is found by: a receipt's identity, a provider's request.
    Reference: |text| is_text(text, 512), "a text has 1 to 512 bytes, without control characters";
    /// The digest of a piece of evidence.
    Digest: is_digest, "a digest is `sha256:` and 64 lower-case hexadecimal digits";
}

/// A name may not hold `~`, which joins two of them in a [`HoldId`], nor `/`, which would end it in an address.
fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

fn is_text(text: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&text.len())
        && !text.trim().is_empty()
        && !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// The identity of a hold: its budget and its attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoldId {
    pub delegation: DelegationId,
    pub attempt: AttemptId,
}

impl HoldId {
    pub fn parse(text: &str) -> Result<HoldId, InvalidText> {
        let wrong =
            InvalidText { expected: "a hold's identity is a delegation and an attempt, joined by `~`" };
        let (delegation, attempt) = text.split_once('~').ok_or(wrong)?;
        match (DelegationId::parse(delegation), AttemptId::parse(attempt)) {
            (Ok(delegation), Ok(attempt)) => Ok(HoldId { delegation, attempt }),
            _ => Err(wrong),
        }
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.delegation, self.attempt)
    }
}
