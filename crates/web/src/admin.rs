//! Platforms and keys.

use axum::{Json, extract::State};
use http::StatusCode;
use ledger::{KeyRow, LedgerError, MeterRow, PlatformRow, SyncMode};
use serde::{Deserialize, Serialize};
use usage::{
    EventKind, Hour, MeterDefinition, MeterFilter, MeterId, PlatformId, Quantity, SharedClock, Timestamp,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    ApiKey, Auth, KeyRing, OperatorAuth, Problem, Routes, Scope, Scopes, StrictJson, StrictPath,
    problem::codes, scope,
};

/// `/v1/platforms` and `/v1/keys`.
pub fn routes(keyring: KeyRing, clock: SharedClock) -> Routes {
    OpenApiRouter::new()
        .routes(routes!(create_platform, list_platforms))
        .routes(routes!(create_key, list_keys))
        .routes(routes!(revoke_key))
        .with_state(Admin { keyring, clock })
}

#[derive(Clone)]
struct Admin {
    keyring: KeyRing,
    clock: SharedClock,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreatePlatform {
    platform_id: String,
    livemode: bool,
    #[serde(default)]
    stripe_account: Option<String>,
    #[serde(default)]
    sync_mode: Option<String>,
}

#[derive(Serialize)]
struct Platform {
    platform_id: String,
    livemode: bool,
    stripe_account: Option<String>,
    sync_mode: &'static str,
    created_at: Timestamp,
}

impl From<PlatformRow> for Platform {
    fn from(row: PlatformRow) -> Platform {
        Platform {
            platform_id: row.platform.to_string(),
            livemode: row.livemode,
            stripe_account: row.stripe_account,
            sync_mode: row.sync_mode.as_str(),
            created_at: row.created_at,
        }
    }
}

/// Creates a platform with its default meter, `context_tokens`.
#[utoipa::path(post, path = "/v1/platforms", tag = "operators", security(("key" = [])),
    responses((status = 201, description = "The platform"), (status = 409, description = "platform_exists")))]
async fn create_platform(
    _: OperatorAuth,
    State(admin): State<Admin>,
    StrictJson(body): StrictJson<CreatePlatform>,
) -> Result<(StatusCode, Json<Platform>), Problem> {
    let platform = PlatformId::parse(body.platform_id)
        .map_err(|e| Problem::new(&codes::INVALID_VALUE).detail(format!("{e}.")).pointer("/platform_id"))?;
    let now = admin.clock.now();
    let mut row = PlatformRow::new(platform, body.livemode, now);
    row.stripe_account = body.stripe_account;
    if let Some(mode) = body.sync_mode {
        row.sync_mode = SyncMode::parse(&mode).ok_or_else(|| {
            Problem::new(&codes::INVALID_VALUE)
                .detail("`sync_mode` is off, shadow or live.")
                .pointer("/sync_mode")
        })?;
    }
    let ledger = admin.keyring.ledger();
    match ledger.platform_insert(&row).await {
        Ok(()) => {}
        Err(LedgerError::Conflict { .. }) => {
            return Err(
                Problem::new(&codes::PLATFORM_EXISTS).detail("The platform is there already; use it.")
            );
        }
        Err(error) => return Err(error.into()),
    }
    ledger.meter_insert(&default_meter(&row)?).await?;
    Ok((StatusCode::CREATED, Json(row.into())))
}

/// Tokens of context, counted from as far back as reports are taken.
fn default_meter(platform: &PlatformRow) -> Result<MeterRow, Problem> {
    let internal = |_| Problem::new(&codes::INTERNAL);
    let meter = MeterId::parse("context_tokens").map_err(internal)?;
    let definition = MeterDefinition {
        meter_id: meter.clone(),
        filter: MeterFilter { kind: EventKind::Context, providers: None },
        quantity: Quantity::Tokens,
    };
    let first =
        Timestamp::from_micros(platform.created_at.as_micros().saturating_sub(platform.accept_back_us));
    Ok(MeterRow {
        platform: platform.platform.clone(),
        meter,
        definition_hash: definition.definition_hash(),
        definition: serde_json::to_string(&definition)
            .map_err(|error| Problem::new(&codes::INTERNAL).internal(&error))?,
        event_name: "context_tokens".to_owned(),
        stripe_meter: None,
        effective_from: Hour::of(first),
        superseded_at: None,
    })
}

/// Lists platforms.
#[utoipa::path(get, path = "/v1/platforms", tag = "operators", security(("key" = [])),
    responses((status = 200, description = "All platforms")))]
async fn list_platforms(
    _: OperatorAuth,
    State(admin): State<Admin>,
) -> Result<Json<serde_json::Value>, Problem> {
    let rows: Vec<Platform> =
        admin.keyring.ledger().platform_list().await?.into_iter().map(Platform::from).collect();
    Ok(Json(serde_json::json!({"data": rows, "next": null})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    scopes: Vec<String>,
    #[serde(default)]
    label: String,
}

#[derive(Serialize)]
struct Key {
    key_id: String,
    /// The secret, in the answer that creates it and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    label: String,
    scopes: Vec<String>,
    livemode: bool,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
}

impl From<KeyRow> for Key {
    fn from(row: KeyRow) -> Key {
        Key {
            key_id: row.key_id,
            key: None,
            label: row.label,
            scopes: row.scopes,
            livemode: row.livemode,
            created_at: row.created_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
        }
    }
}

/// Creates a key; its secret is shown once.
#[utoipa::path(post, path = "/v1/keys", tag = "operators", security(("key" = [])),
    responses((status = 201, description = "The key, with its secret")))]
async fn create_key(
    Auth(caller, _): Auth<scope::Admin>,
    State(admin): State<Admin>,
    StrictJson(body): StrictJson<CreateKey>,
) -> Result<(StatusCode, Json<Key>), Problem> {
    let scopes: Scopes = body
        .scopes
        .iter()
        .enumerate()
        .map(|(i, name)| {
            Scope::parse(name).ok_or_else(|| {
                Problem::new(&codes::INVALID_VALUE)
                    .detail("A scope is ingest, backfill, read, support, finance or admin.")
                    .pointer(format!("/scopes/{i}"))
            })
        })
        .collect::<Result<_, _>>()?;
    let secret = ApiKey::generate(caller.livemode)
        .map_err(|error| Problem::new(&codes::INTERNAL).detail("There is no randomness.").internal(&error))?;
    let row = KeyRow {
        key_id: format!("key_{}", uuid::Uuid::now_v7().simple()),
        platform: caller.platform,
        livemode: caller.livemode,
        secret_hash: secret.hash(),
        label: body.label,
        scopes: scopes.names(),
        created_at: admin.clock.now(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    admin.keyring.ledger().key_insert(&row).await?;
    admin.keyring.refresh().await?;
    Ok((StatusCode::CREATED, Json(Key { key: Some(secret.reveal().to_owned()), ..row.into() })))
}

/// Lists the keys of the platform, without their secrets.
#[utoipa::path(get, path = "/v1/keys", tag = "operators", security(("key" = [])),
    responses((status = 200, description = "All keys")))]
async fn list_keys(
    Auth(caller, _): Auth<scope::Admin>,
    State(admin): State<Admin>,
) -> Result<Json<serde_json::Value>, Problem> {
    let rows: Vec<Key> =
        admin.keyring.ledger().key_list(&caller.platform).await?.into_iter().map(Key::from).collect();
    Ok(Json(serde_json::json!({"data": rows, "next": null})))
}

/// Revokes a key: at once here, within 60 seconds everywhere.
#[utoipa::path(delete, path = "/v1/keys/{key_id}", tag = "operators", security(("key" = [])),
    params(("key_id" = String, Path, description = "key_…")),
    responses((status = 200, description = "Revoked"), (status = 404, description = "not_found")))]
async fn revoke_key(
    Auth(caller, _): Auth<scope::Admin>,
    State(admin): State<Admin>,
    StrictPath(key_id): StrictPath<String>,
) -> Result<Json<serde_json::Value>, Problem> {
    admin.keyring.ledger().key_revoke(&caller.platform, &key_id).await?;
    admin.keyring.refresh().await?;
    Ok(Json(serde_json::json!({"key_id": key_id, "revoked": true})))
}
