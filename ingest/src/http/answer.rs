//! What a host is told about its report.

use serde::Serialize;
use usage::{Acknowledgement, AcknowledgementBody, Finding, ReportRecord};
use utoipa::ToSchema;

use super::{Desk, IndexEntry, Standing};

/// Accepted now, or before.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Answer {
    /// `accepted`, or `duplicate`: the same content was accepted before, and the acknowledgement is that one.
    status: &'static str,
    tokens: u64,
    events: Vec<Event>,
    warnings: Vec<Warning>,
    #[schema(value_type = Object)]
    acknowledgement: Acknowledgement,
}

/// One provider's usage, with what a host needs to compute its hash again.
#[derive(Debug, Serialize, ToSchema)]
struct Event {
    event_id: String,
    provider_id: String,
    tokens: u64,
    content_hash: String,
    salt: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct Warning {
    code: &'static str,
    pointer: String,
    detail: String,
}

/// What is remembered of a report.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Remembered {
    request_id: String,
    turn_id: String,
    report_hash: String,
    /// Whether it is in the store. False also when the store refused it and the journal keeps it for a person.
    stored: bool,
    #[schema(value_type = Object)]
    acknowledgement: Acknowledgement,
}

impl Desk {
    pub(super) fn answer(&self, standing: &Standing) -> Answer {
        let Standing { record, entry, duplicate } = standing;
        let report = record.audited.report();
        Answer {
            status: if *duplicate { "duplicate" } else { "accepted" },
            tokens: record.audited.tokens(),
            events: events(record),
            warnings: record.audited.warnings().iter().map(warning).collect(),
            acknowledgement: self.sign(&record.platform, &report.request_id, &report.turn_id, entry),
        }
    }

    /// The same entry always gives the same signature: Ed25519 has no chance in it.
    fn sign(
        &self,
        platform: &usage::PlatformId,
        request: &usage::RequestId,
        turn: &usage::TurnId,
        entry: &IndexEntry,
    ) -> Acknowledgement {
        let body = AcknowledgementBody {
            platform: platform.clone(),
            request_id: request.clone(),
            turn_id: turn.clone(),
            report_hash: usage::ReportHash(entry.report_hash),
            position: entry.position(),
            at: entry.received_at(),
        };
        let signature = self.0.signer.sign(&body.to_sign());
        Acknowledgement {
            epoch: body.position.epoch,
            seq: body.position.seq,
            at: body.at,
            kid: self.0.kid.clone(),
            signature: signature.to_base64(),
        }
    }

    pub(super) fn remembered(
        &self,
        platform: &usage::PlatformId,
        request: &usage::RequestId,
        turn: &usage::TurnId,
        entry: &IndexEntry,
        stored: bool,
    ) -> Remembered {
        Remembered {
            request_id: request.to_string(),
            turn_id: turn.to_string(),
            report_hash: hex::encode(entry.report_hash),
            stored,
            acknowledgement: self.sign(platform, request, turn, entry),
        }
    }
}

fn events(record: &ReportRecord) -> Vec<Event> {
    let events = record.events.iter();
    events
        .map(|event| Event {
            event_id: event.event_id.to_string(),
            provider_id: event.provider_id.to_string(),
            tokens: event.tokens,
            content_hash: event.content_hash.to_string(),
            salt: event.salt.to_string(),
        })
        .collect()
}

fn warning(finding: &Finding) -> Warning {
    Warning { code: finding.code, pointer: finding.pointer.clone(), detail: finding.detail.clone() }
}
