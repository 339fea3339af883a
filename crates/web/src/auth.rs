//! Extractors that prove a right: a handler that has a [`Caller`] has its platform too.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::{HeaderMap, header, request::Parts};
use usage::PlatformId;

use crate::{KeyRing, Problem, Scopes, key::Scope, problem::codes};

/// Who asks, and for which platform.
#[derive(Debug, Clone)]
pub struct Caller {
    pub key_id: String,
    pub platform: PlatformId,
    pub livemode: bool,
    pub scopes: Scopes,
    /// The operator's own token: every scope on every platform.
    pub operator: bool,
}

/// A caller with the scope `S`.
#[derive(Debug, Clone)]
pub struct Auth<S>(pub Caller, pub PhantomData<S>);

/// The operator, for what lies above a platform.
#[derive(Debug, Clone, Copy)]
pub struct OperatorAuth;

/// The scopes as types.
pub mod scope {
    use crate::key::Scope;

    /// A scope that an extractor asks for.
    pub trait Needs: Send + Sync + 'static {
        const SCOPE: Scope;
    }

    macro_rules! scopes {
        ($($name:ident),*) => {$(
            #[derive(Debug, Clone, Copy)]
            pub struct $name;
            impl Needs for $name {
                const SCOPE: Scope = Scope::$name;
            }
        )*};
    }
    scopes!(Ingest, Backfill, Read, Support, Finance, Admin);
}

impl<S: scope::Needs, T: Sync> FromRequestParts<T> for Auth<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &T) -> Result<Self, Problem> {
        let ring = ring(parts)?;
        let token = token(&parts.headers)?;
        let caller = if ring.is_operator(token) {
            operator(&ring, &parts.headers).await?
        } else {
            ring.caller(token, S::SCOPE)?
        };
        Ok(Auth(caller, PhantomData))
    }
}

impl<T: Sync> FromRequestParts<T> for OperatorAuth {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &T) -> Result<Self, Problem> {
        let ring = ring(parts)?;
        let token = token(&parts.headers)?;
        if ring.is_operator(token) {
            return Ok(OperatorAuth);
        }
        // A key that is not known is told so; a known one, whatever it may do, learns that it is the wrong kind.
        if let Err(problem) = ring.caller(token, Scope::Admin)
            && *problem.code() != codes::MISSING_SCOPE
        {
            return Err(problem);
        }
        Err(Problem::new(&codes::OPERATOR_REQUIRED).detail("Use the operator's token of the data folder."))
    }
}

fn ring(parts: &Parts) -> Result<KeyRing, Problem> {
    // `app` puts it there for every route.
    parts.extensions.get::<KeyRing>().cloned().ok_or_else(|| Problem::new(&codes::INTERNAL))
}

fn token(headers: &HeaderMap) -> Result<&str, Problem> {
    headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .filter(|token| !token.is_empty())
        .ok_or_else(|| {
            Problem::new(&codes::MISSING_KEY)
                .detail("Send the platform's key in the header `Authorization: Bearer …`.")
        })
}

async fn operator(ring: &KeyRing, headers: &HeaderMap) -> Result<Caller, Problem> {
    let named = headers.get("contextmeter-platform").and_then(|value| value.to_str().ok());
    let Some(platform) = named.and_then(|name| PlatformId::parse(name).ok()) else {
        return Err(Problem::new(&codes::PLATFORM_REQUIRED)
            .detail("Name the platform in the header `Contextmeter-Platform`."));
    };
    let row = ring.ledger().platform_get(&platform).await?;
    Ok(Caller {
        key_id: "operator".to_owned(),
        platform,
        livemode: row.livemode,
        scopes: Scopes::all(),
        operator: true,
    })
}
