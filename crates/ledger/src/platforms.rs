//! Platforms: resellers, each in one mode.

use sqlx::any::AnyRow;
use usage::{PlatformId, Timestamp};

use crate::{Ledger, LedgerError, row::Columns as _, row::Statement, row::one};

/// Whether statements are told to Stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    Off,
    /// Everything is planned, nothing is sent.
    Shadow,
    Live,
}

impl SyncMode {
    pub fn as_str(self) -> &'static str {
        match self {
            SyncMode::Off => "off",
            SyncMode::Shadow => "shadow",
            SyncMode::Live => "live",
        }
    }

    /// The mode of a name.
    pub fn parse(text: &str) -> Option<SyncMode> {
        [SyncMode::Off, SyncMode::Shadow, SyncMode::Live].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// A platform and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformRow {
    pub platform: PlatformId,
    pub livemode: bool,
    pub created_at: Timestamp,
    pub stripe_account: Option<String>,
    pub lateness_us: i64,
    pub seal_deadline_us: i64,
    pub accept_back_us: i64,
    pub strict_customers: bool,
    pub sync_mode: SyncMode,
}

impl PlatformRow {
    /// A platform with the default settings: an hour waits 15 minutes for late reports, at most a day for a silent journal,
    /// and reports may be dated 30 days back.
    pub fn new(platform: PlatformId, livemode: bool, created_at: Timestamp) -> PlatformRow {
        const MINUTE: i64 = 60_000_000;
        PlatformRow {
            platform,
            livemode,
            created_at,
            stripe_account: None,
            lateness_us: 15 * MINUTE,
            seal_deadline_us: 24 * 60 * MINUTE,
            accept_back_us: 30 * 24 * 60 * MINUTE,
            strict_customers: false,
            sync_mode: SyncMode::Off,
        }
    }
}

impl Ledger {
    pub async fn platform_insert(&self, platform: &PlatformRow) -> Result<(), LedgerError> {
        let insert = include_str!("../../../sql/ledger/queries/platforms/insert.sql");
        self.run("inserting a platform", insert, |s| {
            let s = s.text(platform.platform.as_str()).flag(platform.livemode).time(platform.created_at);
            settings(s.text_or_null(platform.stripe_account.as_deref()), platform).done()
        })
        .await
        .map(drop)
    }

    pub async fn platform_get(&self, platform: &PlatformId) -> Result<PlatformRow, LedgerError> {
        let get = include_str!("../../../sql/ledger/queries/platforms/get.sql");
        let rows = self.rows("reading a platform", get, |s| s.text(platform.as_str()).done()).await?;
        read(&one(rows, || format!("platform {platform}"))?)
    }

    pub async fn platform_list(&self) -> Result<Vec<PlatformRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/platforms/list.sql");
        self.rows("listing platforms", list, Statement::done).await?.iter().map(read).collect()
    }

    /// Changes the settings; the mode and the time of creation stay.
    pub async fn platform_update(&self, platform: &PlatformRow) -> Result<(), LedgerError> {
        let update = include_str!("../../../sql/ledger/queries/platforms/update.sql");
        let changed = self
            .run("changing a platform", update, |s| {
                let s = s.text(platform.platform.as_str()).text_or_null(platform.stripe_account.as_deref());
                settings(s, platform).done()
            })
            .await?;
        match changed {
            0 => Err(LedgerError::NotFound { what: format!("platform {}", platform.platform) }),
            _ => Ok(()),
        }
    }
}

fn settings(statement: Statement, platform: &PlatformRow) -> Statement {
    statement
        .integer(platform.lateness_us)
        .integer(platform.seal_deadline_us)
        .integer(platform.accept_back_us)
        .flag(platform.strict_customers)
        .text(platform.sync_mode.as_str())
}

fn read(row: &AnyRow) -> Result<PlatformRow, LedgerError> {
    Ok(PlatformRow {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        livemode: row.flag("livemode")?,
        created_at: row.time("created_at")?,
        stripe_account: row.text_or_null("stripe_account")?,
        lateness_us: row.integer("lateness_us")?,
        seal_deadline_us: row.integer("seal_deadline_us")?,
        accept_back_us: row.integer("accept_back_us")?,
        strict_customers: row.flag("strict_customers")?,
        sync_mode: row.parsed("sync_mode", |text| SyncMode::parse(&text).ok_or("it is no mode"))?,
    })
}
