use std::{fs, path::Path};

use host_core::{
    Host, Provider, StdioOptions, StdioProvider,
    protocol::{FrameKind, budget_tokens},
    providers::{DocsError, DocsProvider, NotesProvider},
    question,
};
use sha2::{Digest, Sha256};
use usage::LegOutcome;

use crate::support::{audited, leg, provider_id};

pub(crate) fn write_pages(folder: &Path) {
    let guide = "Before any heading: billing.\n\n# Billing\n\nInvoices are sent monthly. Billing is by token.\n\n\
                 ## Refunds\n\nA refund needs an invoice.\n\n```sh\n# not a heading\n```\n\n## Refunds\n\nAsk support about a refund.\n";
    fs::create_dir_all(folder.join("deep/.hidden")).unwrap();
    fs::write(folder.join("guide.md"), guide).unwrap();
    fs::write(folder.join("deep/start.md"), "# Getting started\n\nInstall it, then read about billing.\n")
        .unwrap();
    fs::write(folder.join("deep/.hidden/secret.md"), "# Billing secrets\n").unwrap();
    fs::write(folder.join("notes.txt"), "# Billing, but no page\n").unwrap();
}

fn pages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_pages(folder.path());
    folder
}

#[tokio::test]
async fn a_section_is_a_frame_with_its_own_cost_and_digest() {
    let folder = pages();
    let docs = DocsProvider::open(folder.path()).unwrap();
    assert_eq!(docs.sections_count(), 5);
    let answer =
        docs.query(&question("How do I get a refund for an invoice of billing?", 1000, 8)).await.unwrap();
    let ids: Vec<_> = answer.frames.iter().map(|frame| frame.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "guide.md#billing",
            "guide.md#refunds",
            "deep/start.md#getting-started",
            "guide.md",
            "guide.md#refunds-2"
        ]
    );
    for frame in &answer.frames {
        let content = frame.content.as_deref().unwrap();
        assert_eq!(frame.token_cost, budget_tokens(content));
        assert_eq!(
            frame.content_digest.as_deref(),
            Some(format!("sha256:{}", hex::encode(Sha256::digest(content))).as_str())
        );
    }
    assert!(answer.frames[1].content.as_deref().unwrap().contains("# not a heading"));
}

#[tokio::test]
async fn an_answer_stays_within_whatever_budget_it_is_given() {
    let folder = pages();
    let docs = DocsProvider::open(folder.path()).unwrap();
    for tokens in 0..80 {
        for frames in 0..6 {
            let answer = docs.query(&question("billing refund", tokens, frames)).await.unwrap();
            assert!(answer.respects_budget(tokens) && answer.respects_frame_limit(frames));
            assert_eq!(answer.truncated, answer.frames.len() < 5);
        }
    }
    let mut query = question("billing", 1000, 8);
    query.kinds = vec![FrameKind::Memory];
    assert!(docs.query(&query).await.unwrap().frames.is_empty());
    assert!(docs.query(&question("nothing of the kind, zebra", 1000, 8)).await.unwrap().frames.is_empty());
}

#[test]
fn a_folder_without_pages_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(DocsProvider::open(folder.path()), Err(DocsError::Empty { .. })));
    assert!(matches!(DocsProvider::open(folder.path().join("absent")), Err(DocsError::Read { .. })));
}

#[tokio::test]
async fn pages_in_a_child_process_and_notes_in_this_one_make_one_report() {
    let folder = pages();
    let options =
        StdioOptions::new(env!("CARGO_BIN_EXE_host-core-fixture")).arg("docs").arg(folder.path().as_os_str());
    let child = StdioProvider::spawn(provider_id("docs"), options).await.unwrap();
    assert_eq!(child.info().name, "docs");
    let notes = NotesProvider::new(provider_id("notes"))
        .note("n1", "Billing", "The billing of March was wrong.")
        .note("n2", "Lunch", "At noon.");
    let host = Host::builder().provider(child).provider(notes).build().unwrap();
    let query = question("billing refund", 200, 8);
    let answers = host.query_all(&query).await;
    for leg in answers.legs() {
        assert_eq!(leg.outcome, LegOutcome::Served, "{leg:?}");
        assert!(leg.rejected.is_empty());
    }
    assert_eq!((leg(&answers, "docs").served.len(), leg(&answers, "notes").served.len()), (5, 1));
    assert_eq!(audited(&answers).frames(), 6);
    assert!(audited(&answers).warnings().is_empty());

    // The link changes nothing: the same folder in this process serves the same frames.
    let here = Host::builder().provider(DocsProvider::open(folder.path()).unwrap()).build().unwrap();
    assert_eq!(leg(&here.query_all(&query).await, "docs").served, leg(&answers, "docs").served);
}
