//! Bills statements: plans what is new, sends what is planned, and sends again what is unknown and young.
//!
//! A statement is placed if and only if each part of its sum has a live placement. One that cannot be placed waits under a reason that everybody can see.

use ledger::{Ledger, LedgerError, PlacementRow, PlatformRow, StatementRow, SyncMode};
use serde::Serialize;
use usage::PlatformId;
use utoipa::ToSchema;

use super::lease::Held;
use super::plan::Planned;
use super::send::Sent;
use super::{Binding, Board, PAGE, PAGE_LEN, Payments, PaymentsError};
use crate::rules::placement::{Event, State};

/// Placements that one activation sends for one platform; the next goes on.
const SEND_MAX: usize = 20_000;

#[derive(Clone, Debug, Default)]
pub struct SyncRequest {
    /// One platform; otherwise all.
    pub platform: Option<PlatformId>,
    /// Makes a next placement of each that the payment service refused. For after the cause was put right.
    pub retry_refused: bool,
}

/// What one activation did, and what waits after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SyncStatus {
    /// New placements.
    pub planned: u64,
    pub delivered: u64,
    /// Sent, outcome not known: held and resolved by evidence.
    pub unknown: u64,
    /// Statements that wait; the reasons are with each platform.
    pub waiting: u64,
    pub refused: u64,
    /// The minute holds another amount than was sent.
    pub identifier_mismatch: u64,
    /// The service did not look at them now.
    pub not_taken: u64,
    pub platforms: Vec<PlatformSync>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PlatformSync {
    pub platform_id: String,
    /// `off`, `shadow` or `live`.
    pub mode: String,
    /// `bound`, or why nothing of this platform is sent: `payments_off`, `not_bound`, `other_account`, `other_mode`.
    pub binding: String,
    /// What `shadow` would have placed now.
    pub would_place: u64,
    pub waiting: Vec<Waiting>,
    /// Placements by state.
    pub placements: std::collections::BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Waiting {
    pub reason: String,
    pub statements: u64,
    /// Since when the oldest waits.
    pub since: String,
}

/// One platform as the ledger shows it; nothing is done.
pub async fn sync_view(
    ledger: &Ledger,
    platform: &PlatformRow,
    payments: Option<&Payments>,
) -> Result<PlatformSync, LedgerError> {
    let waiting = ledger.sync_wait_summary(&platform.platform).await?;
    let waiting: Vec<Waiting> = waiting
        .into_iter()
        .map(|row| Waiting { reason: row.reason, statements: row.count, since: row.oldest.to_string() })
        .collect();
    for row in &waiting {
        let statements = u32::try_from(row.statements).unwrap_or(u32::MAX);
        metrics::gauge!("contextmeter_sync_waiting", "platform" => platform.platform.to_string(), "reason" => row.reason.clone())
            .set(f64::from(statements));
    }
    Ok(PlatformSync {
        platform_id: platform.platform.to_string(),
        mode: platform.sync_mode.as_str().to_owned(),
        binding: payments.map_or("payments_off", |payments| payments.binding(platform).as_str()).to_owned(),
        would_place: 0,
        waiting,
        placements: ledger.placement_counts(&platform.platform).await?.into_iter().collect(),
    })
}

impl Payments {
    pub async fn sync_activate(&self, request: SyncRequest) -> Result<SyncStatus, PaymentsError> {
        self.alone(async |held: &Held| self.sync(held, request).await).await
    }

    pub(super) async fn sync(&self, held: &Held, request: SyncRequest) -> Result<SyncStatus, PaymentsError> {
        let mut status = SyncStatus::default();
        let mut remote = None;
        for (platform, binding) in self.platforms(request.platform.as_ref()).await? {
            let mut would_place = 0;
            if binding == Binding::Bound && platform.sync_mode != SyncMode::Off {
                if remote.is_none() {
                    remote = Some(self.remote_meters().await?);
                }
                let board = self.board(platform.clone(), &remote.clone().unwrap_or_default()).await?;
                if platform.sync_mode == SyncMode::Live {
                    self.sync_platform(held, &board, request.retry_refused, &mut status).await?;
                } else {
                    would_place = self.shadow(&board).await?;
                }
            }
            status
                .platforms
                .push(PlatformSync { would_place, ..sync_view(self.ledger(), &platform, Some(self)).await? });
        }
        status.waiting = status
            .platforms
            .iter()
            .flat_map(|platform| &platform.waiting)
            .map(|waiting| waiting.statements)
            .sum();
        Ok(status)
    }

    async fn sync_platform(
        &self,
        held: &Held,
        board: &Board,
        retry_refused: bool,
        status: &mut SyncStatus,
    ) -> Result<(), PaymentsError> {
        self.recover(held, board).await?;
        status.planned += self.plan(held, board, retry_refused).await?;
        let mut work = self.work(board, State::Planned).await?;
        work.extend(self.work(board, State::Unknown).await?);
        work.sort_by_key(|row| (row.created_at, row.piece_start, row.revision, row.part, row.n));
        let sent: Sent = self.send_all(held, work).await?;
        status.delivered += sent.delivered;
        status.unknown += sent.unknown;
        status.refused += sent.refused;
        status.identifier_mismatch += sent.mismatched;
        status.not_taken += sent.not_taken;
        Ok(())
    }

    /// Whoever was sending is gone: this task alone holds the lease now.
    pub(super) async fn recover(&self, held: &Held, board: &Board) -> Result<(), PaymentsError> {
        for mut row in self.work(board, State::Sending).await? {
            row.reason = Some("the process ended during the call".to_owned());
            self.advance(held, row, Event::Abandoned).await?;
        }
        Ok(())
    }

    /// Plans dead placements' successors, what waited, and what is new in the log, in this order: the old first.
    pub(super) async fn plan(
        &self,
        held: &Held,
        board: &Board,
        retry_refused: bool,
    ) -> Result<u64, PaymentsError> {
        let platform = &board.platform.platform;
        let mut placed = 0;
        let mut dead = vec![State::Absent, State::Unsendable];
        if retry_refused {
            dead.push(State::Refused);
        }
        for state in dead {
            for row in self.ledger().placement_dead_ends(platform, state.as_str(), PAGE).await? {
                if let Some(statement) = self.ledger().statement_get(platform, &row.statement_id).await? {
                    placed += self.plan_one(held, board, &statement, None, retry_refused).await?;
                }
            }
        }
        let mut after = String::new();
        loop {
            let waits = self.ledger().sync_wait_list(platform, &after, PAGE).await?;
            let Some(last) = waits.last() else { break };
            after.clone_from(&last.statement_id);
            for wait in &waits {
                if let Some(statement) = self.ledger().statement_get(platform, &wait.statement_id).await? {
                    placed +=
                        self.plan_one(held, board, &statement, Some(&wait.reason), retry_refused).await?;
                }
            }
            if waits.len() < PAGE_LEN {
                break;
            }
        }
        loop {
            let cursor = self.ledger().sync_cursor(platform).await?;
            let statements = self.ledger().statement_log(platform, cursor, PAGE).await?;
            let Some(last) = statements.last().map(|last| last.log_index) else { break };
            for statement in &statements {
                placed += self.plan_one(held, board, statement, None, retry_refused).await?;
            }
            // After the last of them: what a crash repeats finds its placements already there.
            let mut tx = self.ledger().write().await?;
            tx.check_fence(&held.lease().await?).await?;
            self.ledger().sync_cursor_set_in_txn(&mut tx, platform, last).await?;
            tx.commit().await?;
        }
        Ok(placed)
    }

    async fn plan_one(
        &self,
        held: &Held,
        board: &Board,
        statement: &StatementRow,
        former: Option<&str>,
        retry_refused: bool,
    ) -> Result<u64, PaymentsError> {
        Ok(match self.plan_statement(held, board, statement, former, retry_refused).await? {
            Planned::Placed(count) => count,
            Planned::Nothing | Planned::Waits(_) => 0,
        })
    }

    async fn work(&self, board: &Board, state: State) -> Result<Vec<PlacementRow>, PaymentsError> {
        let mut all: Vec<PlacementRow> = Vec::new();
        while all.len() < SEND_MAX {
            let after = all.last().map(|last| (last.created_at, last.placement_id.as_str()));
            let page =
                self.ledger().placement_work(&board.platform.platform, state.as_str(), after, PAGE).await?;
            let full = page.len() >= PAGE_LEN;
            all.extend(page);
            if !full {
                break;
            }
        }
        Ok(all)
    }

    /// How many statements with usage stand after the cursor; nothing is written.
    async fn shadow(&self, board: &Board) -> Result<u64, PaymentsError> {
        let platform = &board.platform.platform;
        let mut after = self.ledger().sync_cursor(platform).await?;
        let mut count = 0;
        loop {
            let statements = self.ledger().statement_log(platform, after, PAGE).await?;
            let Some(last) = statements.last() else { return Ok(count) };
            after = last.log_index;
            count += u64::try_from(statements.iter().filter(|statement| statement.sum > 0).count())
                .unwrap_or(u64::MAX);
        }
    }
}
