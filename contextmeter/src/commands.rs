//! The commands that ask the service: one request each, through the [`Door`].

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::{
    cli::{Common, Customers, Dispute, Init, Keys, Meters, OnPlatform, Seal},
    config::Config,
    door::Door,
    folder::{Folder, FolderError},
    print, roles,
};

/// What a command that asks ends with.
pub(crate) enum Outcome {
    Done,
    /// A check found a difference (exit code 3).
    Different,
}

/// Asks once and prints the answer.
async fn ask(
    config: &Config,
    json: bool,
    columns: &[&str],
    request: impl AsyncFnOnce(&Door) -> anyhow::Result<Value>,
) -> anyhow::Result<Value> {
    let door = Door::open(config).await?;
    let answer = request(&door).await;
    door.close().await?;
    let answer = answer?;
    print::answer(json, &answer, columns);
    Ok(answer)
}

pub(crate) async fn init(config: &Config, common: &Common, args: &Init) -> anyhow::Result<Outcome> {
    let body = ask(config, common.json, &[], async |door| {
        let platform = json!({"platform_id": args.platform, "livemode": args.live});
        let made = door.post(&args.platform, "/v1/platforms", platform).await?;
        // Run twice, the platform is there already: that is what was asked for.
        if made.body["code"] != "platform_exists" {
            made.ok()?;
        }
        let key = json!({"label": "first key", "scopes": ["ingest", "read", "support"]});
        door.post(&args.platform, "/v1/keys", key).await?.ok()
    })
    .await?;
    if !common.json && body.get("key").is_some() {
        print::line("\nKeep the key: it is not shown again. Start the service with `contextmeter up`.");
    }
    Ok(Outcome::Done)
}

pub(crate) async fn keys(config: &Config, common: &Common, command: &Keys) -> anyhow::Result<Outcome> {
    let columns = ["key_id", "label", "scopes", "created_at", "last_used_at", "revoked_at"];
    ask(config, common.json, &columns, async |door| match command {
        Keys::Create { on, scopes, label } => {
            door.post(&on.platform, "/v1/keys", json!({"label": label, "scopes": scopes})).await?.ok()
        }
        Keys::List(on) => door.get(&on.platform, "/v1/keys").await?.ok(),
        Keys::Revoke { on, key_id } => {
            let path = format!("/v1/keys/{}", escape(key_id));
            door.call(http::Method::DELETE, &on.platform, &path, None).await?.ok()
        }
    })
    .await?;
    Ok(Outcome::Done)
}

pub(crate) async fn customers(
    config: &Config,
    common: &Common,
    command: &Customers,
) -> anyhow::Result<Outcome> {
    let columns = ["customer_id", "stripe_customer", "linked_at"];
    ask(config, common.json, &columns, async |door| match command {
        Customers::List(on) => door.get(&on.platform, "/v1/customers").await?.ok(),
        Customers::Link { on, customer_id, stripe } => {
            let path = format!("/v1/customers/{}", escape(customer_id));
            let body = json!({"stripe_customer": stripe});
            door.call(http::Method::PUT, &on.platform, &path, Some(body)).await?.ok()
        }
    })
    .await?;
    Ok(Outcome::Done)
}

pub(crate) async fn meters(config: &Config, common: &Common, command: &Meters) -> anyhow::Result<Outcome> {
    let columns = ["meter_id", "quantity", "event_name", "stripe_meter", "effective_from"];
    let Meters::List(on) = command;
    ask(config, common.json, &columns, async |door| door.get(&on.platform, "/v1/meters").await?.ok()).await?;
    Ok(Outcome::Done)
}

pub(crate) async fn seal(config: &Config, common: &Common, args: &Seal) -> anyhow::Result<Outcome> {
    trigger(config, common, &args.on.platform, "/v1/windows/seal", json!({"force": args.force})).await
}

pub(crate) async fn sync(config: &Config, common: &Common, on: &OnPlatform) -> anyhow::Result<Outcome> {
    trigger(config, common, &on.platform, "/v1/sync", json!({})).await
}

pub(crate) async fn reconcile(config: &Config, common: &Common, on: &OnPlatform) -> anyhow::Result<Outcome> {
    trigger(config, common, &on.platform, "/v1/reconciliation", json!({})).await
}

async fn trigger(
    config: &Config,
    common: &Common,
    platform: &str,
    path: &str,
    body: Value,
) -> anyhow::Result<Outcome> {
    ask(config, common.json, &[], async |door| door.post(platform, path, body).await?.ok()).await?;
    Ok(Outcome::Done)
}

pub(crate) async fn statements(config: &Config, common: &Common, on: &OnPlatform) -> anyhow::Result<Outcome> {
    let columns = ["statement_id", "customer_id", "meter_id", "piece_start", "revision", "count", "sum"];
    ask(config, common.json, &columns, async |door| door.get(&on.platform, "/v1/statements").await?.ok())
        .await?;
    Ok(Outcome::Done)
}

pub(crate) async fn conflicts(config: &Config, common: &Common, on: &OnPlatform) -> anyhow::Result<Outcome> {
    let columns = ["request_id", "turn_id", "contents", "last_received_at"];
    ask(config, common.json, &columns, async |door| door.get(&on.platform, "/v1/conflicts").await?.ok())
        .await?;
    Ok(Outcome::Done)
}

pub(crate) async fn dispute(config: &Config, common: &Common, args: &Dispute) -> anyhow::Result<Outcome> {
    let parts = [
        ("provider_id", &args.provider),
        ("frame_id", &args.frame),
        ("content_digest", &args.digest),
        ("event_id", &args.event),
        ("statement_id", &args.statement),
        ("stripe_identifier", &args.identifier),
        ("invoice_line", &args.line),
    ];
    let query: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, value)| value.as_ref().map(|v| format!("{name}={}", escape(v))))
        .collect();
    let path = format!("/v1/disputes/lookup?{}", query.join("&"));
    ask(config, common.json, &[], async |door| door.get(&args.platform, &path).await?.ok()).await?;
    Ok(Outcome::Done)
}

pub(crate) async fn verify(config: &Config, common: &Common, on: &OnPlatform) -> anyhow::Result<Outcome> {
    let body = ask(config, common.json, &[], async |door| {
        door.post(&on.platform, "/v1/verify", json!({})).await?.ok()
    })
    .await?;
    let ok = body["ok"].as_bool().context("the answer of /v1/verify has the member `ok`")?;
    Ok(if ok { Outcome::Done } else { Outcome::Different })
}

/// Brings ledger and store to this version's schema. Opening the folder does the same; this tells what was done.
pub(crate) async fn migrate(config: &Config, common: &Common) -> anyhow::Result<Outcome> {
    let folder = Folder::new(&config.data.folder).open()?;
    let ledger = roles::open_ledger(config, &folder).await?;
    let ledger_report = ledger.migrate().await?;
    let (store, engine) = roles::open_store(config, &folder).await?;
    let store_report = store.migrate().await;
    ledger.close().await;
    if let Some(engine) = engine {
        engine.close().await?;
    }
    let answer = json!({"ledger_version": ledger_report.version, "store_version": store_report?.version});
    print::answer(common.json, &answer, &[]);
    Ok(Outcome::Done)
}

/// Looks at everything that the service needs, one line each, and goes on after what is missing.
pub(crate) async fn doctor(config: &Config, common: &Common) -> anyhow::Result<Outcome> {
    let mut checks = Vec::new();
    let mut note = |what: &str, state: anyhow::Result<String>| {
        let ok = state.is_ok();
        let text = state.unwrap_or_else(|error| format!("{error:#}"));
        checks.push(json!({"check": what, "ok": ok, "state": text}));
    };
    let folder = Folder::new(&config.data.folder);
    if config.store.url.is_empty() {
        note("engine library", roles::engine_library(config).map(|path| path.display().to_string()));
    }
    match folder.open() {
        Ok(open) => {
            note("data folder", Ok(format!("{} is free", folder.path().display())));
            let ledger = async {
                let ledger = roles::open_ledger(config, &open).await?;
                let version = ledger.migrate().await?.version;
                ledger.close().await;
                Ok(format!("schema {version}"))
            };
            note("ledger", ledger.await);
            let store = async {
                let (store, engine) = roles::open_store(config, &open).await?;
                let reached = store.ping().await;
                let version =
                    engine.as_ref().map_or("a server".to_owned(), |engine| engine.version().to_owned());
                if let Some(engine) = engine {
                    engine.close().await?;
                }
                reached?;
                Ok(format!("ClickHouse {version}"))
            };
            note("usage store", store.await);
        }
        Err(FolderError::Taken { .. }) => {
            let state = folder.run_info().map_or_else(
                || "a process has it that does not answer yet".to_owned(),
                |run| format!("{} (process {}) serves {}", run.role, run.pid, run.url),
            );
            note("data folder", Ok(state));
        }
        Err(error) => note("data folder", Err(error.into())),
    }
    let stripe = roles::payments(config).await.map(|provider| match provider {
        None => "no secret key: usage is sealed and nothing is billed".to_owned(),
        Some(provider) => {
            let account = provider.account();
            let mode = if account.livemode { "live" } else { "test" };
            format!("account {}, {mode} mode", account.id)
        }
    });
    note("Stripe", stripe);
    let ok = checks.iter().all(|check| check["ok"] == true);
    print::answer(common.json, &json!({"ok": ok, "data": checks}), &["check", "ok", "state"]);
    Ok(if ok { Outcome::Done } else { Outcome::Different })
}

/// Percent-encodes all but the unreserved characters of RFC 3986.
pub(crate) fn escape(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
        out
    })
}
