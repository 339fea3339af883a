use crate::{
    Finding, FrameId, FrameKey, IdError, ProviderId, ProviderUsage, Rejection, ServedFrame, UsageReport,
    audit::push,
};

/// The protocol's shape in our types. Its texts are free; ours are checked, so this can find faults.
pub(super) fn usage_report(report: &contextgraph_types::UsageReport) -> Result<UsageReport, Rejection> {
    let mut findings = Vec::new();
    let mut providers = Vec::with_capacity(report.providers.len());
    for (at, provider) in report.providers.iter().enumerate() {
        let here = format!("/report/providers/{at}");
        let provider_id = checked(
            ProviderId::parse(provider.provider_id.as_str()),
            || format!("{here}/provider_id"),
            &mut findings,
        );
        let mut served_frames = Vec::with_capacity(provider.served_frames.len());
        for (frame_at, served) in provider.served_frames.iter().enumerate() {
            let pointer = |member: &str| format!("{here}/served_frames/{frame_at}/frame/{member}");
            let owner = checked(
                ProviderId::parse(served.frame.provider_id.as_str()),
                || pointer("provider_id"),
                &mut findings,
            );
            let frame_id = checked(
                FrameKey::parse(served.frame.frame_id.as_str()),
                || pointer("frame_id"),
                &mut findings,
            );
            if let (Some(provider_id), Some(frame_id)) = (owner, frame_id) {
                let frame =
                    FrameId { provider_id, frame_id, content_digest: served.frame.content_digest.clone() };
                served_frames.push(ServedFrame { frame, token_cost: u64::from(served.token_cost) });
            }
        }
        if let Some(provider_id) = provider_id {
            providers.push(ProviderUsage {
                provider_id,
                frames_served: provider.frames_served,
                frames_rejected: provider.frames_rejected,
                token_cost: provider.token_cost,
                served_frames,
            });
        }
    }
    if let Some(rejection) = Rejection::of("invalid_report", findings) {
        return Err(rejection);
    }
    Ok(UsageReport {
        budget_requested: u64::from(report.budget_requested),
        budget_consumed: report.budget_consumed,
        as_of: report.as_of.clone(),
        providers,
    })
}

fn checked<T>(
    parsed: Result<T, IdError>,
    pointer: impl FnOnce() -> String,
    findings: &mut Vec<Finding>,
) -> Option<T> {
    parsed.map_err(|error| push(findings, error.code(), pointer(), || error.sentence())).ok()
}
