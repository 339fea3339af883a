//! `/v1/disputes/lookup`: from whatever support has in hand to the whole chain.

use axum::{Json, extract::State};
use serde::Deserialize;
use serde_json::{Value, json};
use usage::{CustomerId, Digest, EventId, FrameKey, ProviderId, RequestId, TurnId};
use usage_store::FrameQuery;
use web::{Auth, Problem, StrictQuery, codes, scope};

use super::{
    parsed,
    sealing::{invalid, statement_json},
    usage::event_json,
};
use crate::billing::Billing;
use crate::disputes::{Billed, Chain, Handle};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lookup {
    provider_id: Option<String>,
    frame_id: Option<String>,
    content_digest: Option<String>,
    customer_id: Option<String>,
    event_id: Option<String>,
    request_id: Option<String>,
    turn_id: Option<String>,
    statement_id: Option<String>,
    stripe_identifier: Option<String>,
    invoice_line: Option<String>,
    limit: Option<u32>,
}

impl Lookup {
    fn handle(self) -> Result<Handle, Problem> {
        let one = [
            self.frame_id.is_some(),
            self.event_id.is_some(),
            self.request_id.is_some() || self.turn_id.is_some(),
            self.statement_id.is_some(),
            self.stripe_identifier.is_some(),
            self.invoice_line.is_some(),
        ];
        if one.iter().filter(|given| **given).count() != 1 {
            return Err(Problem::new(&codes::INVALID_REQUEST).detail(
                "Give one of: provider_id and frame_id, event_id, request_id and turn_id, statement_id, stripe_identifier, invoice_line.",
            ));
        }
        if let Some(frame) = self.frame_id {
            let provider = self
                .provider_id
                .ok_or_else(|| invalid("/provider_id", "A frame's identity needs its provider_id."))?;
            return Ok(Handle::Frame(FrameQuery {
                provider: parsed(ProviderId::parse(provider), "/provider_id")?,
                frame: parsed(FrameKey::parse(frame), "/frame_id")?,
                digest: self.content_digest.as_deref().map(Digest::from_received),
                customer: self
                    .customer_id
                    .map(|id| parsed(CustomerId::parse(id), "/customer_id"))
                    .transpose()?,
            }));
        }
        if let Some(event) = self.event_id {
            let event: EventId = event
                .parse()
                .map_err(|_| invalid("/event_id", "An event's id has 32 hexadecimal digits."))?;
            return Ok(Handle::Event(event));
        }
        if let Some(id) = self.statement_id {
            return Ok(Handle::Statement(id));
        }
        if let Some(identifier) = self.stripe_identifier {
            return Ok(Handle::StripeIdentifier(identifier));
        }
        if let Some(line) = self.invoice_line {
            return Ok(Handle::InvoiceLine(line));
        }
        let (Some(request), Some(turn)) = (self.request_id, self.turn_id) else {
            return Err(invalid("/turn_id", "A turn is named by both request_id and turn_id."));
        };
        Ok(Handle::Turn(
            parsed(RequestId::parse(request), "/request_id")?,
            parsed(TurnId::parse(turn), "/turn_id")?,
        ))
    }
}

/// Walks from a frame, event, turn, statement, Stripe identifier or invoice line to the whole chain, with a proof that needs
/// nobody's word.
#[utoipa::path(get, path = "/v1/disputes/lookup", tag = "support", security(("key" = [])),
    params(("provider_id" = Option<String>, Query, description = "With frame_id: the frame's provider"), ("frame_id" = Option<String>, Query, description = "The frame's id"),
        ("content_digest" = Option<String>, Query, description = "Only with this digest"), ("customer_id" = Option<String>, Query, description = "Only of this customer"),
        ("event_id" = Option<String>, Query, description = "Or an event"), ("request_id" = Option<String>, Query, description = "Or a turn, with turn_id"),
        ("turn_id" = Option<String>, Query, description = "With request_id"), ("statement_id" = Option<String>, Query, description = "Or a statement"),
        ("stripe_identifier" = Option<String>, Query, description = "Or the identifier that Stripe has"), ("invoice_line" = Option<String>, Query, description = "Or a line of an invoice"),
        ("limit" = Option<u32>, Query, description = "1 to 1000 chains, 10 by default")),
    responses((status = 200, description = "The chains, the newest first"), (status = 422, description = "invalid_request, invalid_value")))]
pub(super) async fn lookup(
    Auth(caller, _): Auth<scope::Support>,
    State(billing): State<Billing>,
    StrictQuery(query): StrictQuery<Lookup>,
) -> Result<Json<Value>, Problem> {
    let limit = web::limit(Some(query.limit.unwrap_or(10)))?;
    let handle = query.handle()?;
    let chains = billing.chains(&caller.platform, &handle, limit).await?;
    let data: Vec<Value> = chains.iter().flat_map(chain_json).collect();
    Ok(Json(json!({"data": data, "next": null})))
}

/// One row a frame that was asked for, or a frame of the event, in each statement that counts it.
fn chain_json(chain: &Chain) -> Vec<Value> {
    let places: Vec<u32> = match chain.place {
        Some(place) => vec![place],
        None => (0u32..).take(chain.event.frames.len().max(1)).collect(),
    };
    let mut rows = Vec::new();
    for place in places {
        let frame = usize::try_from(place).ok().and_then(|at| chain.event.frames.get(at)).map(|frame| {
            json!({
                "provider_id": chain.event.provider_id, "frame_id": frame.frame_id,
                "content_digest": frame.digest.as_ref().map(Digest::to_received), "position": place,
                "tokens": frame.cost, "commitment": frame.commitment,
            })
        });
        let mut event = event_json(&chain.event, &chain.row);
        if let Some(members) = event.as_object_mut() {
            members.remove("frames");
            members.insert("in_conflict".to_owned(), json!(chain.in_conflict));
        }
        if chain.billed.is_empty() {
            rows.push(json!({
                "frame": frame, "event": event, "statement": null, "placement": null, "invoice_line": null, "proof": null,
            }));
        }
        rows.extend(chain.billed.iter().map(|billed| billed_json(&frame, &event, billed)));
    }
    rows
}

fn billed_json(frame: &Option<Value>, event: &Value, billed: &Billed) -> Value {
    let placements: Vec<Value> = billed
        .placements
        .iter()
        .map(|(row, _)| {
            json!({
                "placement_id": row.placement_id, "stripe_identifier": row.identifier, "amount": row.amount.to_string(),
                "minute": row.minute, "state": row.state, "part": row.part, "n": row.n, "invoice_id": row.invoice_id,
            })
        })
        .collect();
    let lines: Vec<Value> = billed
        .placements
        .iter()
        .flat_map(|(_, lines)| lines)
        .map(|line| {
            json!({
                "invoice_id": line.invoice_id, "line_id": line.line_id,
                "quantity": line.quantity.map(|quantity| quantity.to_string()), "amount": line.amount,
                "currency": line.currency, "period_start": line.period_start, "period_end": line.period_end,
            })
        })
        .collect();
    let proof = billed.proof.as_ref().map(|file| json!({"verified": file.verify().is_ok(), "file": file}));
    json!({
        "frame": frame, "event": event, "statement": statement_json(&billed.statement),
        "placement": placements.last(), "placements": placements,
        "invoice_line": lines.last(), "proof": proof,
    })
}
