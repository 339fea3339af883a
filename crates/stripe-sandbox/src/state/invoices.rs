//! Invoices: lines from usage, totals, and the way from draft to paid.

use num_bigint::BigInt;
use num_traits::ToPrimitive as _;
use serde_json::{Value, json};

use super::{Account, Kind, new_id, text};
use crate::decimal::Decimal;
use crate::error::ApiError;
use crate::faults::Settings;
use crate::pricing::{PricedLine, Terms, price_lines};

/// One item's usage between two instants.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) item: String,
    pub(crate) price: String,
    pub(crate) start: i64,
    pub(crate) end: i64,
}

/// What a new invoice is made of.
pub(crate) struct Draft {
    pub(crate) customer: String,
    pub(crate) subscription: Option<String>,
    pub(crate) reason: &'static str,
    pub(crate) currency: String,
    pub(crate) at: i64,
    pub(crate) period: (i64, i64),
    pub(crate) metered: Vec<Span>,
    /// Lines that do not change any more.
    pub(crate) fixed: Vec<Value>,
    pub(crate) auto_advance: bool,
}

impl Account {
    /// An invoice with lines computed now. It is not stored.
    pub(crate) fn invoice_drafted(&self, draft: &Draft, settings: &Settings, seen_until: i64) -> Value {
        let id = new_id("in");
        let customer = self.get(Kind::Customer, &draft.customer).cloned().unwrap_or_default();
        let subscription = draft
            .subscription
            .as_deref()
            .and_then(|id| self.get(Kind::Subscription, id))
            .cloned()
            .unwrap_or_default();
        let parent = match &draft.subscription {
            Some(id) => json!({ "quote_details": null, "type": "subscription_details",
                "subscription_details": { "metadata": subscription["metadata"], "subscription": id } }),
            None => Value::Null,
        };
        let collection = subscription["collection_method"].as_str().unwrap_or("charge_automatically");
        let finalizes_at = draft.auto_advance.then_some(draft.at.saturating_add(settings.grace_seconds));
        let spans: Vec<Value> = draft.metered.iter().map(Span::to_json).collect();
        let mut invoice = json!({
            "id": id, "object": "invoice", "account_country": "US", "account_name": null, "account_tax_ids": null, "amount_due": 0,
            "amount_overpaid": 0, "amount_paid": 0, "amount_remaining": 0, "amount_shipping": 0, "application": null,
            "attempt_count": 0, "attempted": false, "auto_advance": draft.auto_advance,
            "automatic_tax": { "disabled_reason": null, "enabled": false, "liability": null, "provider": null, "status": null },
            "automatically_finalizes_at": finalizes_at, "billing_reason": draft.reason, "collection_method": collection,
            "created": draft.at, "currency": draft.currency, "custom_fields": null, "customer": draft.customer,
            "customer_account": null, "customer_address": customer["address"], "customer_email": customer["email"],
            "customer_name": customer["name"], "customer_phone": customer["phone"], "customer_shipping": customer["shipping"],
            "customer_tax_exempt": customer["tax_exempt"], "customer_tax_ids": [], "default_payment_method": null, "default_source": null,
            "default_tax_rates": [], "description": null, "discounts": [], "due_date": null, "effective_at": null,
            "ending_balance": null, "footer": null, "from_invoice": null, "hosted_invoice_url": null, "invoice_pdf": null,
            "issuer": { "type": "self" }, "last_finalization_error": null, "latest_revision": null, "livemode": self.livemode,
            "metadata": {}, "next_payment_attempt": finalizes_at, "number": null, "on_behalf_of": null, "parent": parent,
            "payment_settings": { "default_mandate": null, "payment_method_options": null, "payment_method_types": null },
            "period_end": draft.period.1, "period_start": draft.period.0, "post_payment_credit_notes_amount": 0,
            "pre_payment_credit_notes_amount": 0, "receipt_number": null, "rendering": null, "shipping_cost": null,
            "shipping_details": null, "starting_balance": customer["balance"].as_i64().unwrap_or(0), "statement_descriptor": null,
            "status": "draft", "subtotal": 0, "subtotal_excluding_tax": 0, "test_clock": customer["test_clock"], "total": 0,
            "status_transitions": { "finalized_at": null, "marked_uncollectible_at": null, "paid_at": null, "voided_at": null },
            "total_discount_amounts": [], "total_excluding_tax": 0, "total_pretax_credit_amounts": [], "total_taxes": [],
            "webhooks_delivered_at": draft.at,
            "__metered": spans, "__fixed": draft.fixed, "__lines": [],
        });
        self.recompute(&mut invoice, settings, seen_until);
        invoice
    }

    /// Stores a draft, takes the customer's waiting invoice items along and tells.
    pub(crate) fn invoice_open_draft(
        &mut self,
        mut draft: Draft,
        settings: &Settings,
        seen_until: i64,
    ) -> String {
        let waiting = self.waiting_items(&draft.customer, draft.subscription.as_deref(), &draft.currency);
        draft.fixed.extend(waiting.iter().map(|item| self.line_of_item(item)));
        let invoice = self.invoice_drafted(&draft, settings, seen_until);
        let id = text(&invoice, "id");
        for item in waiting {
            if let Some(item) = self.table(Kind::InvoiceItem).get_mut(&text(&item, "id")) {
                item["invoice"] = id.clone().into();
            }
        }
        self.insert(Kind::Invoice, invoice.clone());
        if let Some(subscription) =
            draft.subscription.as_deref().and_then(|id| self.table(Kind::Subscription).get_mut(id))
        {
            subscription["latest_invoice"] = id.clone().into();
        }
        self.emit("invoice.created", &invoice, draft.at);
        id
    }

    fn waiting_items(&self, customer: &str, subscription: Option<&str>, currency: &str) -> Vec<Value> {
        let waits = |item: &&Value| {
            let of = item["parent"]["subscription_details"]["subscription"].as_str();
            item["invoice"].is_null()
                && item["customer"] == customer
                && item["currency"] == currency
                && (of.is_none() || of == subscription)
        };
        self.rows(Kind::InvoiceItem).filter(waits).cloned().collect()
    }

    pub(crate) fn line_of_item(&self, item: &Value) -> Value {
        let subscription = item["parent"]["subscription_details"]["subscription"].clone();
        json!({
            "id": new_id("il"), "object": "line_item", "amount": item["amount"], "currency": item["currency"],
            "description": item["description"], "discount_amounts": [], "discountable": item["discountable"], "discounts": [],
            "invoice": null, "livemode": self.livemode, "metadata": item["metadata"],
            "parent": { "type": "invoice_item_details", "subscription_item_details": null,
                "invoice_item_details": { "invoice_item": item["id"], "proration": item["proration"], "proration_details": null, "subscription": subscription } },
            "period": item["period"], "pretax_credit_amounts": [], "pricing": item["pricing"], "quantity": item["quantity"],
            "quantity_decimal": item["quantity_decimal"], "subscription": subscription, "subtotal": item["amount"], "taxes": [],
        })
    }

    /// A line for a fixed quantity, paid in advance.
    pub(crate) fn licensed_lines(
        &self,
        item: &Value,
        period: (i64, i64),
        settings: &Settings,
    ) -> Result<Vec<Value>, ApiError> {
        let quantity = Decimal::from_u64(item["quantity"].as_u64().unwrap_or(1));
        let span =
            Span { item: text(item, "id"), price: text(item, "price"), start: period.0, end: period.1 };
        self.lines_of(&span, &quantity, settings)
    }

    /// The lines of a span's usage.
    pub(crate) fn metered_lines(
        &self,
        customer: &str,
        span: &Span,
        settings: &Settings,
        seen_until: i64,
    ) -> Result<Vec<Value>, ApiError> {
        let price = self.find(Kind::Price, &span.price, "price")?;
        let meter = self.find(Kind::Meter, &text(&price["recurring"], "meter"), "meter")?;
        let usage = self
            .usage
            .aggregate(meter, customer, span.start, span.end, seen_until)
            .unwrap_or_else(Decimal::zero);
        self.lines_of(span, &usage, settings)
    }

    fn lines_of(&self, span: &Span, quantity: &Decimal, settings: &Settings) -> Result<Vec<Value>, ApiError> {
        let price = self.find(Kind::Price, &span.price, "price")?;
        let product = self.get(Kind::Product, &text(price, "product")).cloned().unwrap_or_default();
        let terms = Terms::of(price, &product, settings.transform_line_quantity)
            .ok_or_else(|| ApiError::invalid(format!("The price {} has no amount.", span.price)))?;
        let subscription = self
            .get(Kind::SubscriptionItem, &span.item)
            .map_or(Value::Null, |item| item["subscription"].clone());
        price_lines(&terms, quantity).iter().map(|line| self.line(span, price, &subscription, line)).collect()
    }

    fn line(
        &self,
        span: &Span,
        price: &Value,
        subscription: &Value,
        line: &PricedLine,
    ) -> Result<Value, ApiError> {
        let amount = minor_units(&line.amount)?;
        Ok(json!({
            "id": new_id("il"), "object": "line_item", "amount": amount, "currency": price["currency"], "description": line.description,
            "discount_amounts": [], "discountable": true, "discounts": [], "invoice": null, "livemode": self.livemode, "metadata": {},
            "parent": { "type": "subscription_item_details", "invoice_item_details": null,
                "subscription_item_details": { "invoice_item": null, "proration": false, "proration_details": { "credited_items": null },
                    "subscription": subscription, "subscription_item": span.item } },
            "period": { "start": span.start, "end": span.end }, "pretax_credit_amounts": [],
            "pricing": { "type": "price_details", "price_details": { "price": span.price, "product": price["product"] },
                "unit_amount_decimal": line.unit_amount.as_ref().map(ToString::to_string) },
            "quantity": line.quantity.truncate().to_u64(), "quantity_decimal": line.quantity.to_string(),
            "subscription": subscription, "subtotal": amount, "taxes": [],
        }))
    }

    /// Lines and totals of a draft, from the usage that counts now. Lines keep their ids from one computation to the next.
    pub(crate) fn recompute(&self, invoice: &mut Value, settings: &Settings, seen_until: i64) {
        let customer = text(invoice, "customer");
        let mut lines: Vec<Value> = Vec::new();
        let mut failure = Value::Null;
        for span in invoice["__metered"].as_array().into_iter().flatten().filter_map(Span::of_json) {
            match self.metered_lines(&customer, &span, settings, seen_until) {
                Ok(of_span) => lines.extend(of_span),
                Err(error) => {
                    failure = json!({ "type": "invalid_request_error", "code": error.code, "message": error.message })
                }
            }
        }
        lines.extend(invoice["__fixed"].as_array().into_iter().flatten().cloned());
        let former = invoice["__lines"].take();
        let invoice_id = invoice["id"].clone();
        for (place, line) in lines.iter_mut().enumerate() {
            line["invoice"] = invoice_id.clone();
            let before = &former[place];
            if before["parent"] == line["parent"] && before["period"] == line["period"] {
                line["id"] = before["id"].clone();
            }
        }
        let total: i64 = lines.iter().filter_map(|line| line["amount"].as_i64()).fold(0, i64::saturating_add);
        let balance = self
            .get(Kind::Customer, &customer)
            .and_then(|customer| customer["balance"].as_i64())
            .unwrap_or(0);
        let due = total.saturating_add(balance).max(0);
        for member in ["subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax"] {
            invoice[member] = total.into();
        }
        invoice["amount_due"] = due.into();
        invoice["amount_remaining"] = due.into();
        invoice["starting_balance"] = balance.into();
        invoice["last_finalization_error"] = failure;
        invoice["__lines"] = lines.into();
    }

    /// From draft to open, with the quantities of this instant; to paid where nothing is due or `charge` says so.
    pub(crate) fn invoice_finalize(
        &mut self,
        id: &str,
        at: i64,
        settings: &Settings,
        seen_until: i64,
        charge: bool,
    ) -> Result<Value, ApiError> {
        let mut invoice = self.find(Kind::Invoice, id, "invoice")?.clone();
        if invoice["status"] != "draft" {
            return Err(ApiError::invalid(
                "This invoice is already finalized, you can't re-finalize a non-draft invoice.",
            )
            .code("invoice_not_editable"));
        }
        self.recompute(&mut invoice, settings, seen_until);
        if !invoice["last_finalization_error"].is_null() {
            invoice["auto_advance"] = false.into();
            self.insert(Kind::Invoice, invoice.clone());
            self.emit("invoice.finalization_failed", &invoice, at);
            return Err(ApiError::invalid(text(&invoice["last_finalization_error"], "message")));
        }
        self.invoice_number += 1;
        let total = invoice["total"].as_i64().unwrap_or(0);
        let carried = total.saturating_add(invoice["starting_balance"].as_i64().unwrap_or(0)).min(0);
        invoice["number"] = format!("SANDBOX-{:04}", self.invoice_number).into();
        invoice["status"] = "open".into();
        invoice["status_transitions"]["finalized_at"] = at.into();
        invoice["effective_at"] = at.into();
        invoice["automatically_finalizes_at"] = Value::Null;
        invoice["next_payment_attempt"] = Value::Null;
        invoice["ending_balance"] = carried.into();
        if let Some(customer) = self.table(Kind::Customer).get_mut(&text(&invoice, "customer")) {
            customer["balance"] = carried.into();
        }
        self.insert(Kind::Invoice, invoice.clone());
        self.emit("invoice.finalized", &invoice, at);
        if charge || invoice["amount_due"] == 0 {
            return self.invoice_pay(id, at);
        }
        Ok(invoice)
    }

    pub(crate) fn invoice_pay(&mut self, id: &str, at: i64) -> Result<Value, ApiError> {
        let invoice = self.find_mut(Kind::Invoice, id, "invoice")?;
        match invoice["status"].as_str() {
            Some("open") => {}
            Some("paid") => {
                return Err(ApiError::invalid("Invoice is already paid").code("invoice_already_paid"));
            }
            _ => {
                return Err(ApiError::invalid("This invoice can't be paid in its status.")
                    .code("invoice_not_editable"));
            }
        }
        invoice["status"] = "paid".into();
        invoice["attempted"] = true.into();
        invoice["attempt_count"] = u64::from(invoice["amount_due"] != 0).into();
        invoice["amount_paid"] = invoice["amount_due"].clone();
        invoice["amount_remaining"] = 0.into();
        invoice["auto_advance"] = false.into();
        invoice["status_transitions"]["paid_at"] = at.into();
        let invoice = invoice.clone();
        self.emit("invoice.paid", &invoice, at);
        self.emit("invoice.payment_succeeded", &invoice, at);
        Ok(invoice)
    }
}

impl Span {
    fn to_json(&self) -> Value {
        json!({ "item": self.item, "price": self.price, "start": self.start, "end": self.end })
    }

    fn of_json(value: &Value) -> Option<Self> {
        Some(Self {
            item: text(value, "item"),
            price: text(value, "price"),
            start: value["start"].as_i64()?,
            end: value["end"].as_i64()?,
        })
    }
}

fn minor_units(amount: &BigInt) -> Result<i64, ApiError> {
    amount
        .to_i64()
        .ok_or_else(|| ApiError::invalid("The amount of a line is too large.").code("amount_too_large"))
}
