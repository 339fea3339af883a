//! Commands that need no service and no folder.

use std::path::Path;

use anyhow::Context as _;
use proof::ProofFile;
use serde_json::json;

use crate::{cli::Common, commands::Outcome, print, roles};

/// Checks a proof file by what is in it alone.
pub(crate) fn proof_verify(common: &Common, file: &Path) -> anyhow::Result<Outcome> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let proof: ProofFile =
        serde_json::from_slice(&text).with_context(|| format!("{} is not a proof file", file.display()))?;
    let answer = match proof.verify() {
        Ok(verdict) => json!({"verified": true, "verdict": verdict}),
        Err(error) => json!({"verified": false, "difference": error.to_string()}),
    };
    print::answer(common.json, &answer, &[]);
    Ok(if answer["verified"] == true { Outcome::Done } else { Outcome::Different })
}

/// The OpenAPI document of every role together.
pub(crate) async fn openapi() -> anyhow::Result<Outcome> {
    print::line(&roles::openapi().await?);
    Ok(Outcome::Done)
}
