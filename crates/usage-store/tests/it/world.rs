use clickhouse_embedded::{Engine, test_support::test_options};
use usage::{AuditPolicy, ErasureKey, PlatformId, Position, ReportRecord, Timestamp, TurnReport, audit};
use usage_store::{EventRow, ReportBlock, ReportRow, StoreOptions, UsageStore};

/// An engine on a folder of its own.
pub(crate) struct World {
    pub(crate) engine: Engine,
    _folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let options = test_options(folder.path().join("engine")).expect("run scripts/install-engine.sh");
        World { engine: Engine::open(options).await.unwrap(), _folder: folder }
    }

    pub(crate) fn store(&self) -> UsageStore {
        UsageStore::over_connector(self.engine.connector(), StoreOptions::default())
    }
}

pub(crate) fn platform() -> PlatformId {
    PlatformId::parse("reseller".to_owned()).unwrap()
}

/// A report of one provider that served the frames, each for its cost, at the time.
pub(crate) fn block(request: &str, seq: u64, as_of: &str, frames: &[(&str, u64)]) -> ReportBlock {
    let tokens: u64 = frames.iter().map(|(_, cost)| cost).sum();
    let served: Vec<_> = frames
        .iter()
        .map(|(id, cost)| {
            serde_json::json!({"frame": {"provider_id": "docs", "frame_id": id, "content_digest": "sha256:odd"}, "token_cost": cost})
        })
        .collect();
    let report = serde_json::json!({
        "customer_id": "acme", "request_id": request, "turn_id": "1",
        "report": {
            "budget_requested": 10_000, "budget_consumed": tokens, "as_of": as_of,
            "providers": [{
                "provider_id": "docs", "frames_served": frames.len(), "frames_rejected": 0, "token_cost": tokens,
                "served_frames": served,
            }],
        },
    });
    let report = TurnReport::from_json(report.to_string().as_bytes()).unwrap();
    let at = Timestamp::parse_rfc3339(as_of).unwrap();
    let audited = audit(report, &AuditPolicy::new(at)).unwrap();
    let record = ReportRecord::build(&platform(), &audited, &ErasureKey::from_bytes([7; 32]));
    let position = Position { epoch: 1, seq };
    ReportBlock {
        events: record.events.iter().map(|event| EventRow::new(event, position, at)).collect(),
        reports: vec![ReportRow::new(&record, 1, seq, seq, at)],
    }
}
