//! API keys: 256 random bits behind a prefix that tells the mode and lets scanners find a leak.

use sha2::{Digest as _, Sha256};

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Ingest,
    Backfill,
    Read,
    Support,
    Finance,
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 6] =
        [Scope::Ingest, Scope::Backfill, Scope::Read, Scope::Support, Scope::Finance, Scope::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Ingest => "ingest",
            Scope::Backfill => "backfill",
            Scope::Read => "read",
            Scope::Support => "support",
            Scope::Finance => "finance",
            Scope::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(std::collections::BTreeSet<Scope>);

impl Scopes {
    pub fn all() -> Scopes {
        Scopes(Scope::ALL.into_iter().collect())
    }

    pub fn allows(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// The names in their fixed order.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|scope| scope.as_str().to_owned()).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Scopes {
        Scopes(scopes.into_iter().collect())
    }
}

/// A secret as it is shown once. It has no `Debug`; only its hash is kept.
pub struct ApiKey(zeroize::Zeroizing<String>);

impl ApiKey {
    /// A new secret from the system's randomness.
    pub fn generate(livemode: bool) -> Result<ApiKey, getrandom::Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        let mode = if livemode { "live" } else { "test" };
        Ok(ApiKey(zeroize::Zeroizing::new(format!("cm_{mode}_{}", hex::encode(bytes)))))
    }

    /// The text, for the one answer that shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> [u8; 32] {
        secret_hash(&self.0)
    }
}

/// What is kept of a presented secret. It has 256 random bits, so a fast hash is enough.
pub(crate) fn secret_hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// The hash of the operator's token, for [`crate::KeyRing::new`].
pub fn operator_hash(token: &str) -> [u8; 32] {
    secret_hash(token)
}
