//! What the demo says while it works, and the screen it ends with.

use std::time::Instant;

use serde_json::Value;

use super::{Figures, stripe};
use crate::print;

/// Progress, one line a step with what it took.
pub(super) struct Story {
    step: Option<(String, Instant)>,
}

impl Story {
    pub(super) fn new() -> Story {
        Story { step: None }
    }

    /// Begins a step; the one before is told as done.
    pub(super) fn step(&mut self, text: impl Into<String>) {
        self.done();
        self.step = Some((text.into(), Instant::now()));
    }

    /// Ends the last step.
    pub(super) fn done(&mut self) {
        if let Some((text, started)) = self.step.take() {
            let millis = started.elapsed().as_millis();
            print::progress(&format!("{text}  ({}.{:01} s)", millis / 1_000, millis % 1_000 / 100));
        }
    }
}

/// The final screen: each figure with its place, one dispute walked, and what to try next.
pub(super) fn screen(figures: &Figures, url: &str, key: &str, operator_hint: &str) -> String {
    let tokens = print::grouped;
    let same = if figures.equal() { "all five figures are equal" } else { "THE FIGURES DIFFER" };
    let rejected: Vec<String> = figures.rejected.iter().map(|r| format!("      {r}")).collect();
    let plans: Vec<String> = stripe::PLANS
        .iter()
        .zip(&figures.invoices)
        .map(|(plan, invoice)| {
            format!(
                "      {:<8} {:>7} tokens at {:<46} {:>9}   {}",
                plan.customer,
                tokens(invoice.tokens),
                plan.described,
                cents(invoice.cents),
                invoice.id
            )
        })
        .collect();
    let dispute = &figures.dispute;
    let text = |pointer: &str| dispute.pointer(pointer).map(plain).unwrap_or_default();
    format!(
        "
  Contextmeter: one day of a reseller, from query to invoice and back

    posted      {posted:>9} tokens   {reports} reports accepted; 1 duplicate answered, 1 inconsistent and 1 conflicting refused
    stored      {stored:>9} tokens   {events} usage events with {frames} frames in ClickHouse
    sealed      {sealed:>9} tokens   {statements} statements, {revisions} of them a revision for the late report
    Stripe      {stripe:>9} tokens   {placements} meter events, each read back from its own minute; drift {drift}
    invoiced    {invoiced:>9} tokens   3 invoices finalised by the guard
                                     {same}

    What the audit kept off the bill
{rejected}

    What the customers pay
{plans}

    One dispute, walked from the invoice line to the frame
      invoice line  {line}  ({line_tokens} tokens)
      Stripe event  {identifier}
      statement     {statement}  ({count} events, {sum} tokens, revision {revision})
      usage event   {event}  ({event_tokens} tokens, customer {customer}, turn {request}/{turn})
      frame         {provider} · {frame}  ({frame_tokens} tokens)
      proof         {verified}

    Try it by hand
      curl -s -H 'authorization: Bearer {key}' '{url}/v1/usage'
      curl -s -H 'authorization: Bearer {key}' '{url}/v1/disputes/lookup?invoice_line={line}'
      curl -s -H 'authorization: Bearer {key}' -H 'content-type: application/json' -d {report_file} '{url}/v1/reports'

    {operator_hint}
",
        posted = tokens(figures.posted_tokens),
        reports = figures.reports,
        stored = tokens(figures.stored_tokens),
        events = figures.events,
        frames = figures.frames,
        sealed = tokens(figures.statement_tokens),
        statements = figures.statements,
        revisions = figures.revisions,
        stripe = tokens(figures.stripe_tokens),
        placements = figures.placements,
        drift = figures.drift,
        invoiced = tokens(figures.invoice_tokens),
        rejected = rejected.join("\n"),
        plans = plans.join("\n"),
        line = text("/invoice_line/line_id"),
        line_tokens = text("/invoice_line/quantity"),
        identifier = text("/placement/stripe_identifier"),
        statement = text("/statement/statement_id"),
        count = text("/statement/count"),
        sum = text("/statement/sum"),
        revision = text("/statement/revision"),
        event = text("/event/event_id"),
        event_tokens = text("/event/tokens"),
        customer = text("/event/customer_id"),
        request = text("/event/request_id"),
        turn = text("/event/turn_id"),
        provider = text("/frame/provider_id"),
        frame = text("/frame/frame_id"),
        frame_tokens = text("/frame/tokens"),
        verified = if figures.proof_verified {
            "checked offline: the event is in the statement, the statement in the log, the head is signed"
        } else {
            "DOES NOT VERIFY"
        },
        report_file = quoted(&format!("@{}", figures.report_file.display())),
    )
}

/// One word to a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Cents as Stripe gives them, an integer: 1234 as `$12.34`.
fn cents(cents: u64) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_with_blanks_and_quotes_is_one_word_to_a_shell() {
        assert_eq!(super::quoted("@/home/o'hara/my data"), r"'@/home/o'\''hara/my data'");
    }
}
