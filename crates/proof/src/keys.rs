use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::Signer as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroizing;

use crate::{ProofError, encode::sha256};

/// The private half of an Ed25519 pair. Its bytes are wiped when it is dropped and never printed.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// From 32 bytes of a key file, or of a random source for a new one.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(bytes))
    }

    /// For the key file.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }

    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    /// The name of the pair.
    pub fn kid(&self) -> String {
        self.verifying_key().kid()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.kid())
    }
}

/// The public half.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl VerifyingKey {
    /// Refuses what is not a point of the curve, and the weak points under which anything verifies.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ProofError> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes)
            .map_err(|_| ProofError::Malformed("public key"))?;
        if key.is_weak() {
            return Err(ProofError::Malformed("public key"));
        }
        Ok(Self(key))
    }

    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    pub fn from_base64(text: &str) -> Result<Self, ProofError> {
        Self::from_bytes(&base64_bytes(text).ok_or(ProofError::Malformed("public key"))?)
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.to_bytes())
    }

    /// The first 8 bytes of the SHA-256 of the 32 bytes, as 16 hexadecimal digits.
    pub fn kid(&self) -> String {
        let mut text = hex::encode(sha256(&self.to_bytes()));
        text.truncate(16);
        text
    }

    /// Strict: one signature has one spelling, and small-order points are refused.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), ProofError> {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).map_err(|_| ProofError::BadSignature)
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({})", self.kid())
    }
}

impl Serialize for VerifyingKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for VerifyingKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_base64(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Ed25519, 64 bytes; base64 with padding in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 64]);

impl Signature {
    pub fn from_base64(text: &str) -> Result<Self, ProofError> {
        base64_bytes(text).map(Self).ok_or(ProofError::Malformed("signature"))
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_base64())
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_base64(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

fn base64_bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// What a pair signs. One never signs for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyFamily {
    Acknowledgement,
    Head,
}

impl KeyFamily {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledgement => "acknowledgement",
            Self::Head => "head",
        }
    }
}

/// A public half as it is served, and as it stands in a proof file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicKey {
    pub family: KeyFamily,
    pub kid: String,
    /// Base64 of the 32 bytes.
    pub public_key: VerifyingKey,
}

impl PublicKey {
    pub fn new(family: KeyFamily, public_key: VerifyingKey) -> Self {
        Self { family, kid: public_key.kid(), public_key }
    }

    /// The key that a signature names, of the right family and under the name that its bytes give it.
    pub fn find<'a>(keys: &'a [Self], family: KeyFamily, kid: &str) -> Result<&'a VerifyingKey, ProofError> {
        let found =
            keys.iter().find(|key| key.family == family && key.kid == kid && key.public_key.kid() == kid);
        found.map(|key| &key.public_key).ok_or_else(|| ProofError::UnknownKey(kid.to_owned()))
    }
}
