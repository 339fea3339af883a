//! From an aggregated quantity and a price to invoice lines, exactly.
//!
//! Rounding has one place: each line, half up, to the minor unit; lines are summed after.

use num_bigint::BigInt;
use serde_json::Value;

use crate::decimal::Decimal;

/// What a price says about money.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) scheme: Scheme,
    pub(crate) transform: Option<Transform>,
    pub(crate) product: String,
    pub(crate) unit_label: String,
    pub(crate) currency: String,
    pub(crate) interval: String,
    pub(crate) show: LineQuantity,
}

#[derive(Clone, Debug)]
pub(crate) enum Scheme {
    PerUnit(Decimal),
    Graduated(Vec<Tier>),
    Volume(Vec<Tier>),
}

#[derive(Clone, Debug)]
pub(crate) struct Tier {
    /// Inclusive; none is the last tier.
    pub(crate) up_to: Option<Decimal>,
    pub(crate) unit: Option<Decimal>,
    pub(crate) flat: Option<Decimal>,
}

#[derive(Clone, Debug)]
pub(crate) struct Transform {
    pub(crate) divide_by: u64,
    pub(crate) up: bool,
}

/// What a line of a price with packages calls its quantity. No public text says, so it is a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineQuantity {
    /// What was reported.
    #[default]
    Usage,
    /// What is paid for.
    Packages,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PricedLine {
    pub(crate) quantity: Decimal,
    pub(crate) unit_amount: Option<Decimal>,
    pub(crate) amount: BigInt,
    pub(crate) description: String,
}

/// The lines of one item. `usage` below zero bills as zero.
pub(crate) fn price_lines(terms: &Terms, usage: &Decimal) -> Vec<PricedLine> {
    let usage = if usage.is_negative() { Decimal::zero() } else { usage.clone() };
    match &terms.scheme {
        Scheme::PerUnit(unit) => vec![per_unit(terms, unit, usage)],
        Scheme::Graduated(tiers) => graduated(terms, tiers, &usage),
        Scheme::Volume(tiers) => volume(terms, tiers, &usage),
    }
}

fn per_unit(terms: &Terms, unit: &Decimal, usage: Decimal) -> PricedLine {
    let billed = match &terms.transform {
        Some(Transform { divide_by, up: true }) => Decimal::from_bigint(usage.div_ceil(*divide_by)),
        Some(Transform { divide_by, up: false }) => Decimal::from_bigint(usage.div_floor(*divide_by)),
        None => usage.clone(),
    };
    let shown = match terms.show {
        LineQuantity::Usage => usage,
        LineQuantity::Packages => billed.clone(),
    };
    PricedLine {
        description: format!(
            "{shown} {}× {} (at {} / {})",
            terms.label(),
            terms.product,
            terms.money(unit),
            terms.interval
        ),
        quantity: shown,
        unit_amount: Some(unit.clone()),
        amount: billed.mul(unit).round_half_up(),
    }
}

fn graduated(terms: &Terms, tiers: &[Tier], usage: &Decimal) -> Vec<PricedLine> {
    let mut lines = Vec::new();
    let mut below = Decimal::zero();
    for (index, tier) in tiers.iter().enumerate() {
        // The first tier stands on the invoice of an idle customer too.
        if index > 0 && *usage <= below {
            break;
        }
        let top = tier.up_to.as_ref().map_or(usage, |up_to| up_to.min(usage)).clone();
        lines.extend(tier_lines(terms, tier, index, top.sub(&below)));
        below = top;
    }
    lines
}

fn volume(terms: &Terms, tiers: &[Tier], usage: &Decimal) -> Vec<PricedLine> {
    let holds = |tier: &Tier| tier.up_to.as_ref().is_none_or(|up_to| usage <= up_to);
    match tiers.iter().enumerate().find(|(_, tier)| holds(tier)) {
        Some((index, tier)) => tier_lines(terms, tier, index, usage.clone()),
        None => Vec::new(),
    }
}

fn tier_lines(terms: &Terms, tier: &Tier, index: usize, quantity: Decimal) -> Vec<PricedLine> {
    let place = index + 1;
    let unit = tier.unit.clone().unwrap_or_else(Decimal::zero);
    let mut lines = vec![PricedLine {
        amount: quantity.mul(&unit).round_half_up(),
        description: format!(
            "{quantity} {}× {} (Tier {place} at {} / {})",
            terms.label(),
            terms.product,
            terms.money(&unit),
            terms.interval
        ),
        quantity,
        unit_amount: Some(unit),
    }];
    if let Some(flat) = &tier.flat {
        lines.push(PricedLine {
            quantity: Decimal::zero(),
            unit_amount: None,
            amount: flat.round_half_up(),
            description: format!(
                "{} (Tier {place} at {} / {})",
                terms.product,
                terms.money(flat),
                terms.interval
            ),
        });
    }
    lines
}

impl Terms {
    /// Reads a stored price. `None` says that the price was stored without what its scheme needs.
    pub(crate) fn of(price: &Value, product: &Value, show: LineQuantity) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let decimal = |value: &Value| value.as_str().and_then(Decimal::parse);
        let tiers = || {
            price["__tiers"].as_array().map(|tiers| {
                let tier = |tier: &Value| Tier {
                    up_to: tier["up_to"].as_u64().map(Decimal::from_u64),
                    unit: decimal(&tier["unit_amount_decimal"]),
                    flat: decimal(&tier["flat_amount_decimal"]),
                };
                tiers.iter().map(tier).collect::<Vec<_>>()
            })
        };
        let scheme = match (price["billing_scheme"].as_str(), price["tiers_mode"].as_str()) {
            (Some("tiered"), Some("graduated")) => Scheme::Graduated(tiers()?),
            (Some("tiered"), Some("volume")) => Scheme::Volume(tiers()?),
            _ => Scheme::PerUnit(decimal(&price["unit_amount_decimal"])?),
        };
        let transform = price["transform_quantity"]["divide_by"]
            .as_u64()
            .map(|divide_by| Transform { divide_by, up: price["transform_quantity"]["round"] == "up" });
        Some(Self {
            scheme,
            transform,
            product: text(&product["name"]).unwrap_or_default(),
            unit_label: text(&product["unit_label"]).unwrap_or_default(),
            currency: text(&price["currency"])?,
            interval: text(&price["recurring"]["interval"]).unwrap_or_default(),
            show,
        })
    }

    fn label(&self) -> String {
        if self.unit_label.is_empty() { String::new() } else { format!("{} ", self.unit_label) }
    }

    /// For a person to read; the exact amount is in the line's pricing.
    fn money(&self, minor_units: &Decimal) -> String {
        const ZERO_DECIMAL: [&str; 16] = [
            "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf",
            "xof", "xpf",
        ];
        let one_hundredth = Decimal::parse("0.01").unwrap_or_else(Decimal::zero);
        let amount = if ZERO_DECIMAL.contains(&self.currency.as_str()) {
            minor_units.clone()
        } else {
            minor_units.mul(&one_hundredth)
        };
        let mut shown = amount.to_string();
        if !ZERO_DECIMAL.contains(&self.currency.as_str()) {
            let fraction = shown.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            if fraction == 0 {
                shown.push('.');
            }
            shown.extend(std::iter::repeat_n('0', 2_usize.saturating_sub(fraction)));
        }
        match self.currency.as_str() {
            "usd" => format!("${shown}"),
            other => format!("{shown} {}", other.to_uppercase()),
        }
    }
}

#[cfg(test)]
mod tests;
