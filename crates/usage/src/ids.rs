use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Encoder;

/// Why a text is not an identity. The code is part of the interface: each has a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("the identifier is empty")]
    Empty,
    #[error("the identifier has {bytes} bytes, more than {max}")]
    TooLong { bytes: usize, max: usize },
    #[error("the identifier has a control character or line separator at byte {at}")]
    ControlCharacter { at: usize },
    #[error("the identifier has a character outside a-z, 0-9, _ and - at byte {at}")]
    OtherCharacter { at: usize },
}

impl IdError {
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "id_empty",
            Self::TooLong { .. } => "id_too_long",
            Self::ControlCharacter { .. } => "id_control_character",
            Self::OtherCharacter { .. } => "id_other_character",
        }
    }
}

/// The rule of every identity that comes from outside: something, not too much, and nothing that a log line or a terminal obeys.
pub(crate) fn check_text(text: &str, max: usize) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > max {
        return Err(IdError::TooLong { bytes: text.len(), max });
    }
    match text.char_indices().find(|(_, c)| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        None => Ok(()),
        Some((at, _)) => Err(IdError::ControlCharacter { at }),
    }
}

/// The rule of names that we give out ourselves and that stand in addresses and file names.
fn check_name(text: &str, max: usize) -> Result<(), IdError> {
    check_text(text, max)?;
    match text.char_indices().find(|(_, c)| !matches!(c, 'a'..='z' | '0'..='9' | '_' | '-')) {
        None => Ok(()),
        Some((at, _)) => Err(IdError::OtherCharacter { at }),
    }
}

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident: $check:ident up to $max:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            pub const MAX_BYTES: usize = $max;

            pub fn parse(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                $check(&text, $max)?;
                Ok(Self(text.into_boxed_str()))
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

        /// Lets a set of identities be searched by text.
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(TextVisitor(|text: &str| {
                    Self::parse(text).map_err(|error| format!("{}: {error}", error.code()))
                }))
            }
        }
    )*};
}

text_ids! {
    /// The platform's customer, in the platform's words.
    CustomerId: check_text up to 200;
    /// A frame's identity within its provider.
    FrameKey: check_text up to 1024;
    /// One installation of an agent host.
    HostId: check_text up to 200;
    MeterId: check_name up to 64;
    /// A reseller of agents: the outermost wall of everything stored.
    PlatformId: check_name up to 64;
    /// A context provider, by the key under which the host registered it.
    ProviderId: check_text up to 200;
    /// A run of the agent, in the platform's words.
    RequestId: check_text up to 200;
    StreamId: check_text up to 200;
    /// A turn within its request.
    TurnId: check_text up to 200;
}

pub(crate) struct TextVisitor<F>(pub(crate) F);

impl<T, F: FnOnce(&str) -> Result<T, String>> de::Visitor<'_> for TextVisitor<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// Why a text is not a hash of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} lower-case hexadecimal digits")]
pub struct HexError {
    pub expected: usize,
}

fn parse_hex<const N: usize>(text: &str) -> Result<[u8; N], HexError> {
    let wrong = HexError { expected: N * 2 };
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(wrong); // one spelling only, so that texts of equal hashes are equal
    }
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).map_err(|_| wrong)?;
    Ok(bytes)
}

macro_rules! hex_ids {
    ($($(#[$doc:meta])* $name:ident: $bytes:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, HexError> {
                parse_hex(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl std::str::FromStr for $name {
            type Err = HexError;

            fn from_str(text: &str) -> Result<Self, HexError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&hex::encode(self.0))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(TextVisitor(|text: &str| Self::parse(text).map_err(|e| e.to_string())))
            }
        }
    )*};
}

hex_ids! {
    /// What a frame of an event is known by after its identity was erased.
    Commitment: 32;
    /// Everything of an event that money or a dispute depends on.
    ContentHash: 32;
    /// The name of a usage event: the same turn of the same provider has the same one, however often it is reported.
    EventId: 16;
    /// Everything of a report that a repeat must not change.
    ReportHash: 32;
    /// The name of a report: platform, request and turn.
    ReportKey: 16;
    /// What keeps a commitment from being guessed. Derived from an erasure key, so that destroying the key is enough.
    Salt: 32;
}

impl EventId {
    pub fn context(platform: &PlatformId, request: &RequestId, turn: &TurnId, provider: &ProviderId) -> Self {
        let encoder = Encoder::new("cm.id.1").text("context").text(platform.as_str());
        Self(encoder.text(request.as_str()).text(turn.as_str()).text(provider.as_str()).hash16())
    }

    pub fn delegation(platform: &PlatformId, source: &str, stream: &str, attempt: &str) -> Self {
        let encoder = Encoder::new("cm.id.1").text("delegation").text(platform.as_str());
        Self(encoder.text(source).text(stream).text(attempt).hash16())
    }
}

impl ReportKey {
    pub fn new(platform: &PlatformId, request: &RequestId, turn: &TurnId) -> Self {
        let encoder = Encoder::new("cm.reportkey.1").text(platform.as_str());
        Self(encoder.text(request.as_str()).text(turn.as_str()).hash16())
    }
}
