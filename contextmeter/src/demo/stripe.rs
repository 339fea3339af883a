//! The reseller's side of Stripe: products, prices, customers and subscriptions, made as a person would in its dashboard.

use anyhow::{Context as _, bail};
use serde_json::Value;
use usage::Timestamp;

use super::Billed;

/// What the demo's customers pay for a token. Amounts are in cents.
pub(super) struct Plan {
    pub(super) customer: &'static str,
    pub(super) name: &'static str,
    pub(super) described: &'static str,
    price: &'static [(&'static str, &'static str)],
}

/// Three customers, three kinds of price.
pub(super) const PLANS: [Plan; 3] = [
    Plan {
        customer: "acme",
        name: "Acme Robotics",
        described: "$20.00 a million tokens",
        price: &[("billing_scheme", "per_unit"), ("unit_amount_decimal", "0.002")],
    },
    Plan {
        customer: "globex",
        name: "Globex",
        described: "first 500 tokens free, then $40.00 a million",
        price: &[
            ("billing_scheme", "tiered"),
            ("tiers_mode", "graduated"),
            ("tiers[0][up_to]", "500"),
            ("tiers[0][unit_amount_decimal]", "0"),
            ("tiers[1][up_to]", "inf"),
            ("tiers[1][unit_amount_decimal]", "0.004"),
        ],
    },
    Plan {
        customer: "initech",
        name: "Initech",
        described: "2 cents for 10 tokens, 1 cent if above 1,000",
        price: &[
            ("billing_scheme", "tiered"),
            ("tiers_mode", "volume"),
            ("tiers[0][up_to]", "1000"),
            ("tiers[0][unit_amount_decimal]", "0.2"),
            ("tiers[1][up_to]", "inf"),
            ("tiers[1][unit_amount_decimal]", "0.1"),
        ],
    },
];

/// A client of the Stripe API as far as the demo acts on it by itself.
pub(super) struct Stripe {
    http: reqwest::Client,
    base: String,
    key: String,
    clock: String,
}

impl Stripe {
    /// Connects and starts a test clock, so that a whole billing period passes while one watches.
    pub(super) async fn start(base: &str, key: &str, from: Timestamp) -> anyhow::Result<Stripe> {
        let mut stripe = Stripe {
            http: reqwest::Client::new(),
            base: base.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
            clock: String::new(),
        };
        let at = from.as_unix_seconds_floor().to_string();
        let clock =
            stripe.post("/v1/test_helpers/test_clocks", &[("frozen_time", &at), ("name", "demo")]).await?;
        stripe.clock = id(&clock)?;
        Ok(stripe)
    }

    /// A customer with a subscription to its plan, metered daily. Returns the Stripe customer.
    pub(super) async fn subscribe(&self, plan: &Plan, meter: &str) -> anyhow::Result<String> {
        let product =
            id(&self.post("/v1/products", &[("name", &format!("Context for {}", plan.name))]).await?)?;
        let mut price = vec![
            ("product", product.as_str()),
            ("currency", "usd"),
            ("recurring[interval]", "day"),
            ("recurring[usage_type]", "metered"),
            ("recurring[meter]", meter),
        ];
        price.extend(plan.price);
        let price = id(&self.post("/v1/prices", &price).await?)?;
        let customer =
            id(&self.post("/v1/customers", &[("name", plan.name), ("test_clock", &self.clock)]).await?)?;
        self.post("/v1/subscriptions", &[("customer", &customer), ("items[0][price]", &price)]).await?;
        Ok(customer)
    }

    /// Lets Stripe's time pass.
    pub(super) async fn advance(&self, to: Timestamp) -> anyhow::Result<()> {
        let at = to.as_unix_seconds_floor().to_string();
        self.post(&format!("/v1/test_helpers/test_clocks/{}/advance", self.clock), &[("frozen_time", &at)])
            .await?;
        // Advancing is asynchronous at Stripe: ready is what its status says.
        for _ in 0..200 {
            let clock = self.get(&format!("/v1/test_helpers/test_clocks/{}", self.clock)).await?;
            if clock["status"] == "ready" {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        bail!("the test clock did not become ready within ten seconds")
    }

    /// What Stripe counted for a customer, from its own summaries.
    pub(super) async fn summary(
        &self,
        meter: &str,
        customer: &str,
        from: Timestamp,
        until: Timestamp,
    ) -> anyhow::Result<u128> {
        let path = format!(
            "/v1/billing/meters/{meter}/event_summaries?customer={customer}&start_time={}&end_time={}&limit=100",
            from.as_unix_seconds_floor(),
            until.as_unix_seconds_floor()
        );
        let page = self.get(&path).await?;
        let rows = page["data"].as_array().context("a list of Stripe's has data")?;
        rows.iter().try_fold(0u128, |sum, row| {
            sum.checked_add(whole(&row["aggregated_value"])?).context("a sum of tokens is out of range")
        })
    }

    /// What an invoice says at Stripe, with the id of its first metered line.
    pub(super) async fn billed(&self, invoice: &str) -> anyhow::Result<(Billed, String)> {
        let object = self.get(&format!("/v1/invoices/{invoice}")).await?;
        let lines = self.get(&format!("/v1/invoices/{invoice}/lines?limit=100")).await?;
        let lines = lines["data"].as_array().context("a list of Stripe's has data")?;
        let mut tokens = 0u128;
        for line in lines {
            tokens =
                tokens.checked_add(whole(&line["quantity"])?).context("a sum of tokens is out of range")?;
        }
        let first = lines
            .iter()
            .find(|line| line["quantity"].as_u64() > Some(0))
            .context("an invoice has a metered line")?;
        let cents = object["total"].as_u64().context("an invoice has a total")?;
        Ok((Billed { tokens, cents, id: invoice.to_owned() }, id(first)?))
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let request = self.http.get(format!("{}{path}", self.base));
        self.send(path, request).await
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> anyhow::Result<Value> {
        let request = self.http.post(format!("{}{path}", self.base)).form(form);
        self.send(path, request).await
    }

    async fn send(&self, path: &str, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
        let response = request
            .bearer_auth(&self.key)
            .send()
            .await
            .with_context(|| format!("calling Stripe's {path}"))?;
        let status = response.status();
        let body: Value =
            response.json().await.with_context(|| format!("reading the answer of Stripe's {path}"))?;
        if !status.is_success() {
            bail!(
                "Stripe's {path} answered {status}: {}",
                body["error"]["message"].as_str().unwrap_or("no message")
            );
        }
        Ok(body)
    }
}

/// Stripe writes whole quantities as numbers with or without a fraction of zero.
fn whole(value: &Value) -> anyhow::Result<u128> {
    let text = value.to_string();
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    digits.parse().with_context(|| format!("{text} is not a whole quantity"))
}

fn id(object: &Value) -> anyhow::Result<String> {
    object["id"].as_str().map(str::to_owned).context("an object of Stripe's has an id")
}
