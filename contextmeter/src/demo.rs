//! The main job once, on real input: turns become usage, statements, meter events and invoices, and an invoice line becomes the frame again.

mod story;
mod stripe;
mod turns;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use host_core::{Delivery, Meter, MeterOptions};
use http::Method;
use proof::{ProofFile, PublicKey};
use serde_json::{Value, json};
use usage::{Clock as _, HostId, Hour, SystemClock, Timestamp, TurnReport};

use crate::{
    cli::{Common, Demo},
    commands::{Outcome, escape},
    config::Config,
    door::{Answer, Api},
    folder::Folder,
    print, roles,
    roles::Roles,
    serve::{self, Running},
};
use story::Story;
use stripe::{PLANS, Stripe};
use turns::{Agent, LATE_QUESTION, NEXT_QUESTION, QUESTIONS};

const PLATFORM: &str = "demo";
/// Long enough that the guard, not Stripe, finalises although the whole day passed already.
const GRACE_MINUTES: u32 = 12 * 60;
const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;
const STRIPE_KEY: &str = "sk_test_demo";

/// What one customer was billed.
struct Billed {
    tokens: u128,
    cents: u64,
    id: String,
}

/// Everything that the demo measured, each figure where it was read.
struct Figures {
    reports: usize,
    posted_tokens: u128,
    stored_tokens: u128,
    statement_tokens: u128,
    stripe_tokens: u128,
    invoice_tokens: u128,
    events: u128,
    frames: u128,
    statements: usize,
    revisions: usize,
    placements: u64,
    drift: String,
    invoices: Vec<Billed>,
    rejected: Vec<String>,
    /// The chain as the look-up answered it.
    dispute: Value,
    proof_verified: bool,
    report_file: PathBuf,
    data: PathBuf,
}

impl Figures {
    fn equal(&self) -> bool {
        [self.stored_tokens, self.statement_tokens, self.stripe_tokens, self.invoice_tokens]
            .iter()
            .all(|figure| *figure == self.posted_tokens)
    }

    fn to_json(&self) -> Value {
        let at = |pointer: &str| self.dispute.pointer(pointer).cloned().unwrap_or_default();
        json!({
            "reports": self.reports,
            "posted_tokens": number(self.posted_tokens),
            "stored_tokens": number(self.stored_tokens),
            "statement_tokens": number(self.statement_tokens),
            "stripe_tokens": number(self.stripe_tokens),
            "invoice_tokens": number(self.invoice_tokens),
            "dispute": {
                "frame": at("/frame"),
                "event_id": at("/event/event_id"),
                "statement_id": at("/statement/statement_id"),
                "stripe_identifier": at("/placement/stripe_identifier"),
                "invoice_line": at("/invoice_line/line_id"),
                "proof_verified": self.proof_verified,
            },
            "data_dir": self.data,
        })
    }
}

/// As a JSON integer where it is one for every reader; the demo's sums are far below.
fn number(tokens: u128) -> Value {
    u64::try_from(tokens).map_or_else(|_| Value::String(tokens.to_string()), Value::from)
}

pub(crate) async fn run(config: &Config, common: &Common, args: &Demo) -> anyhow::Result<Outcome> {
    let data = match &common.data {
        Some(folder) => folder.clone(),
        None => config.data.folder.join("demo").join(SystemClock.now().as_unix_seconds_floor().to_string()),
    };
    // What can be wrong with the command line is found before anything is made.
    let docs = turns::pages(&args.docs)?;
    let data = fresh(&data)?;
    let mut story = Story::new();

    story.step("starting the Stripe sandbox, the engine, the journal and the ledger");
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let sandbox = roles::start_sandbox(&Folder::new(&data), loopback, i64::from(GRACE_MINUTES) * 60).await?;
    let stripe_base = format!("http://{}", sandbox.local_addr());
    let mut config = config.clone();
    config.data.folder.clone_from(&data);
    // A story must not be told into somebody's books: its ledger and its store lie in its own folder, whatever is configured.
    config.ledger.url.clear();
    config.store.url.clear();
    config.stripe.secret_key = STRIPE_KEY.to_owned();
    config.stripe.base_url.clone_from(&stripe_base);
    config.stripe.events_per_second = 1_000;
    config.stripe.invoice_grace_minutes = GRACE_MINUTES;
    let running = Running::start(&config, Roles::DEMO).await?;

    let told = tell(&running, &stripe_base, &data, &docs, &mut story).await;
    story.done();
    let (figures, key) = match told {
        Ok(told) => told,
        Err(error) => {
            running.stop().await?;
            sandbox.shutdown().await;
            return Err(error);
        }
    };
    let hint = if args.once {
        format!("The data lies in {}; `contextmeter up --data …` serves it again.", data.display())
    } else {
        format!("Serving {} on {}, data in {}. Ctrl-C ends it.", PLATFORM, running.url, data.display())
    };
    if !common.json {
        print::line(&story::screen(&figures, &running.url, &key, &hint));
    }
    if !args.once {
        running.begin_work(&config);
        tokio::select! {
            () = serve::asked_to_end() => {}
            reason = running.fatal() => bail!("the journal cannot promise durability any more: {reason}"),
        }
    }
    running.stop().await?;
    sandbox.shutdown().await;
    if common.json {
        print::line(&figures.to_json().to_string());
    }
    if !figures.equal() {
        bail!("the five figures are not equal; the data lies in {}", data.display());
    }
    if !figures.proof_verified {
        bail!("the dispute's proof does not verify; the data lies in {}", data.display());
    }
    Ok(Outcome::Done)
}

/// A folder that is the story's alone. Telling it twice in one folder would add the second day to the first.
fn fresh(data: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(data).with_context(|| format!("cannot create {}", data.display()))?;
    let mut entries = std::fs::read_dir(data).with_context(|| format!("cannot read {}", data.display()))?;
    if entries.next().is_some() {
        bail!(
            "the demo needs an empty folder and {} is not; leave --data out, or name another folder",
            data.display()
        );
    }
    Ok(data.canonicalize()?)
}

/// A reseller's way to ask the service.
struct Desk {
    api: Api,
    key: String,
}

impl Desk {
    async fn call(&self, method: Method, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.api.call(method, path, &self.key, None, serde_json::to_vec(&body)?).await
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.api.call(Method::GET, path, &self.key, None, Vec::new()).await?.ok()
    }

    async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        self.call(Method::POST, path, body).await?.ok()
    }

    async fn expect(&self, report: &Value, status: u16, code: &str) -> anyhow::Result<()> {
        let answer = self.call(Method::POST, "/v1/reports", report.clone()).await?;
        if answer.status.as_u16() != status || answer.body["code"] != code {
            bail!(
                "a report that should be refused as {code} was answered {}: {}",
                answer.status,
                answer.body
            );
        }
        Ok(())
    }
}

async fn tell(
    running: &Running,
    stripe_base: &str,
    data: &Path,
    docs: &Path,
    story: &mut Story,
) -> anyhow::Result<(Figures, String)> {
    // A whole day that is over: its hours can be sealed, and its invoices are due.
    let now = SystemClock.now();
    let start = Hour::of(now)
        .start()
        .checked_add_micros(-26 * HOUR)
        .context("the clock stands before 1970: set it right")?;
    let at = |micros: i64| start.checked_add_micros(micros).context("a time of the demo is out of range");

    story.step("making a platform, its key, and three customers with their subscriptions at Stripe");
    let (desk, stripe, customers, meter) = open_shop(running, stripe_base, start).await?;

    story.step("asking the providers 18 questions and posting a report for each turn");
    let mut agent = Agent::start(docs).await?;
    let host = HostId::parse("demo-host".to_owned())?;
    let meter_of_host =
        Meter::open(MeterOptions::new(data.join("outbox"), &running.url, &desk.key, host)).await?;
    let mut accepted: Vec<TurnReport> = Vec::new();
    for (place, text) in QUESTIONS.iter().enumerate() {
        for (row, plan) in PLANS.iter().enumerate() {
            let minutes = i64::try_from(place * 20 + row * 5 + 2)?;
            let request = format!("req-{}-{}", plan.customer, place + 1);
            let report = agent.turn(plan.customer, &request, text, at(minutes * MINUTE)?).await?;
            post(&meter_of_host, &report).await?;
            accepted.push(report);
        }
    }

    story.step("posting one report twice, one that does not add up, and one turn with two contents");
    misbehave(&desk, &accepted).await?;

    story.step("sealing the hours into statements");
    running.drained().await;
    desk.post("/v1/windows/seal", json!({"force": true})).await?;

    story.step("posting a late report and sealing its hour again");
    let late = agent.turn("acme", "req-acme-late", LATE_QUESTION, at(30 * MINUTE)?).await?;
    post(&meter_of_host, &late).await?;
    accepted.push(late);
    running.drained().await;
    desk.post("/v1/windows/seal", json!({"force": true})).await?;

    let usage = desk.get("/v1/usage").await?;
    let stored_tokens = decimal(&usage["total"]["tokens"])?;
    let statements = all(&desk, "/v1/statements").await?;
    let statement_tokens = sum(&statements, "sum")?;
    let revisions = statements.iter().filter(|row| row["revision"].as_u64() > Some(1)).count();

    story.step("reporting the statements to Stripe and reading them back");
    stripe.advance(at(3 * HOUR)?).await?;
    let placements = settle(&desk, statements.len()).await?;
    let reconciled = desk.post("/v1/reconciliation", json!({})).await?;
    let mut stripe_tokens = 0u128;
    for customer in &customers {
        stripe_tokens = stripe_tokens
            .checked_add(stripe.summary(&meter, customer, start, at(24 * HOUR)?).await?)
            .context("a sum of tokens is out of range")?;
    }

    story.step("letting the billing day end and guarding the invoices");
    stripe.advance(at(24 * HOUR + 10 * MINUTE)?).await?;
    let invoices = finalised(&desk, &stripe).await?;
    let invoice_tokens = invoices
        .iter()
        .try_fold(0u128, |sum, (billed, _)| sum.checked_add(billed.tokens))
        .context("a sum of tokens is out of range")?;

    story.step("walking from an invoice line to a frame and checking the proof");
    let line = invoices.first().map(|(_, line)| line.clone()).context("there is no invoice line")?;
    let found = desk.get(&format!("/v1/disputes/lookup?invoice_line={}&limit=1", escape(&line))).await?;
    let dispute = found.pointer("/data/0").cloned().context("no chain was found for the invoice line")?;
    let file: ProofFile =
        serde_json::from_value(dispute["proof"]["file"].clone()).context("the chain has no proof")?;
    let proof_file = data.join("proof.json");
    std::fs::write(&proof_file, serde_json::to_vec_pretty(&file)?)?;
    // The keys in the file vouch for themselves; those that the service publishes are what a customer compares them with.
    let published: Vec<PublicKey> =
        serde_json::from_value(desk.get("/.well-known/contextmeter-keys.json").await?)?;
    let proof_verified = file.verify_with(&published).is_ok();

    let next = agent.turn("acme", "req-acme-next", NEXT_QUESTION, now).await?;
    let report_file = data.join("next-report.json");
    std::fs::write(&report_file, next.to_json())?;
    let posted_tokens = accepted
        .iter()
        .flat_map(|report| &report.report.providers)
        .try_fold(0u128, |sum, provider| sum.checked_add(u128::from(provider.token_cost)))
        .context("a sum of tokens is out of range")?;
    let figures = Figures {
        reports: accepted.len(),
        posted_tokens,
        stored_tokens,
        statement_tokens,
        stripe_tokens,
        invoice_tokens,
        events: decimal(&usage["total"]["events"])?,
        frames: decimal(&usage["total"]["frames"])?,
        statements: statements.len(),
        revisions,
        placements,
        drift: reconciled["drift_tokens"].as_str().unwrap_or("unknown").to_owned(),
        invoices: invoices.into_iter().map(|(billed, _)| billed).collect(),
        rejected: agent.rejected(),
        dispute,
        proof_verified,
        report_file,
        data: data.to_path_buf(),
    };
    Ok((figures, desk.key))
}

/// Platform, key, meter, customers, subscriptions. Answers the Stripe customers in the order of the plans, and the Stripe meter.
async fn open_shop(
    running: &Running,
    stripe_base: &str,
    start: Timestamp,
) -> anyhow::Result<(Desk, Stripe, Vec<String>, String)> {
    let stripe = Stripe::start(stripe_base, STRIPE_KEY, start).await?;
    let account = stripe.get("/v1/account").await?;
    let operator = Desk { api: Api::new(&running.url), key: running.operator.clone() };
    let platform = json!({
        "platform_id": PLATFORM, "livemode": false, "stripe_account": account["id"], "sync_mode": "live",
    });
    operator.post("/v1/platforms", platform).await?;
    let key = json!({"label": "demo", "scopes": ["ingest", "read", "support", "finance"]});
    let made = operator
        .api
        .call(Method::POST, "/v1/keys", &running.operator, Some(PLATFORM), serde_json::to_vec(&key)?)
        .await?
        .ok()?;
    let key = made["key"].as_str().context("a new key is shown")?.to_owned();
    let desk = Desk { api: Api::new(&running.url), key };
    desk.post("/v1/meters", json!({})).await?;
    let meters = desk.get("/v1/meters").await?;
    let meter = meters["data"][0]["stripe_meter"].as_str().context("the meter is at Stripe")?.to_owned();
    let mut customers = Vec::new();
    for plan in &PLANS {
        let customer = stripe.subscribe(plan, &meter).await?;
        let path = format!("/v1/customers/{}", plan.customer);
        desk.call(Method::PUT, &path, json!({"stripe_customer": customer})).await?.ok()?;
        customers.push(customer);
    }
    Ok((desk, stripe, customers, meter))
}

async fn post(meter: &Meter, report: &TurnReport) -> anyhow::Result<()> {
    match meter.record(report.clone()).await?.delivery {
        Delivery::Acknowledged { duplicate: false, .. } => Ok(()),
        other => bail!("report {} was not accepted: {other:?}", report.request_id),
    }
}

/// What real hosts do: sends one twice, one that does not add up, and one turn with two contents.
async fn misbehave(desk: &Desk, accepted: &[TurnReport]) -> anyhow::Result<()> {
    let [first, second, ..] = accepted else { bail!("there are no reports") };
    let first_json: Value = serde_json::from_slice(&first.to_json())?;
    let again = desk.post("/v1/reports", first_json.clone()).await?;
    if again["status"] != "duplicate" {
        bail!("a report that was sent twice was answered {again}");
    }
    let mut wrong = first_json.clone();
    wrong["request_id"] = json!("req-wrong");
    let consumed = wrong["report"]["budget_consumed"].as_u64().unwrap_or_default();
    wrong["report"]["budget_consumed"] = json!(consumed + 1);
    desk.expect(&wrong, 422, "inconsistent_report").await?;
    let mut conflicting: Value = serde_json::from_slice(&second.to_json())?;
    conflicting["request_id"] = first_json["request_id"].clone();
    desk.expect(&conflicting, 409, "report_conflict").await
}

/// Syncs until nothing waits to be told, and answers how many meter events Stripe took.
async fn settle(desk: &Desk, statements: usize) -> anyhow::Result<u64> {
    let mut delivered = 0u64;
    let mut last = Value::Null;
    for _ in 0..50 {
        last = desk.post("/v1/sync", json!({})).await?;
        delivered += last["delivered"].as_u64().unwrap_or_default();
        if usize::try_from(delivered).is_ok_and(|delivered| delivered >= statements) {
            return Ok(delivered);
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    bail!("Stripe was told {delivered} of {statements} statements: {last}")
}

/// Guards until each customer's invoice is final, and reads them at Stripe: in the order of the plans, each with its line's id.
async fn finalised(desk: &Desk, stripe: &Stripe) -> anyhow::Result<Vec<(Billed, String)>> {
    let mut last = Value::Null;
    for _ in 0..50 {
        let guard = desk.post("/v1/invoices/guard", json!({})).await?;
        let invoices = all(desk, "/v1/invoices").await?;
        let of = |customer: &str| {
            invoices.iter().find(|invoice| {
                invoice["customer_id"] == customer
                    && invoice["status"] == "finalized"
                    && invoice["verdict"] == "matched"
            })
        };
        let finals: Option<Vec<&Value>> = PLANS.iter().map(|plan| of(plan.customer)).collect();
        if let Some(finals) = finals {
            let mut billed = Vec::new();
            for invoice in finals {
                let id = invoice["invoice_id"].as_str().context("an invoice has an id")?;
                billed.push(stripe.billed(id).await?);
            }
            return Ok(billed);
        }
        last = json!({"guard": guard, "invoices": invoices});
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    bail!("the invoices were not finalised: {last}")
}

/// Every page of a list.
async fn all(desk: &Desk, path: &str) -> anyhow::Result<Vec<Value>> {
    let mut rows = Vec::new();
    let mut after = String::new();
    loop {
        let page = desk.get(&format!("{path}?limit=1000{after}")).await?;
        rows.extend(page["data"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={}", escape(next)),
            None => return Ok(rows),
        }
    }
}

fn sum(rows: &[Value], member: &str) -> anyhow::Result<u128> {
    rows.iter().try_fold(0u128, |sum, row| {
        sum.checked_add(decimal(&row[member])?).context("a sum of tokens is out of range")
    })
}

fn decimal(value: &Value) -> anyhow::Result<u128> {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .with_context(|| format!("{value} is not a decimal number"))
}
