//! What can be typed. Parsing only: each command's work is in `commands/`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::config::Overrides;

/// Metering and billing for AI context: from a turn's frames to an invoice line, and back.
#[derive(Debug, Parser)]
#[command(name = "contextmeter", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 it did not succeed (the message says what to do), 2 the command line or the \
configuration is wrong, 3 the check found a difference (verify, proof verify, receipt verify), 4 the data folder or an address is taken.";

/// Flags that every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Configuration file over the defaults (`contextmeter config` prints those).
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, global = true, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl Common {
    /// The flags as the topmost layer of the configuration.
    pub(crate) fn overrides(&self, listen_key: &'static str) -> Overrides {
        let mut overrides = Overrides::new();
        if let Some(folder) = &self.data {
            overrides.push(("data.folder", folder.display().to_string()));
        }
        if let Some(listen) = self.listen {
            overrides.push((listen_key, listen.to_string()));
        }
        overrides
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the main job on real input, from a query to an invoice line and back to the frame.
    Demo(Demo),
    /// Prepare a data folder: ledger, signing keys, a platform and its first key.
    Init(Init),
    /// Run every role in this process.
    Up,
    /// Run the role that takes reports.
    Ingest,
    /// Run the worker and all other routes.
    Billing,
    /// Offer the embedded engine alone as ClickHouse HTTP on a loopback port.
    Engine,
    /// Run the stand-in for Stripe Billing.
    StripeSandbox,
    /// Bring ledger and store to this version's schema.
    Migrate,
    /// Create, list and revoke API keys.
    #[command(subcommand)]
    Keys(Keys),
    /// List customers and link them to Stripe.
    #[command(subcommand)]
    Customers(Customers),
    /// List meters and create one.
    #[command(subcommand)]
    Meters(Meters),
    /// Seal the hours that are complete into statements.
    Seal(Seal),
    /// Report sealed statements to Stripe.
    Sync(OnPlatform),
    /// Compare what was reported with Stripe's summaries.
    Reconcile(OnPlatform),
    /// List statements, newest first.
    Statements(OnPlatform),
    /// List reports that exist with two contents.
    Conflicts(OnPlatform),
    /// Walk from a frame, event, statement, Stripe identifier or invoice line along the whole chain.
    Dispute(Dispute),
    /// Recompute every statement from the store and name the first difference.
    Verify(OnPlatform),
    /// Check a proof file without any service.
    #[command(subcommand)]
    Proof(Proof),
    /// Tell what is missing or wrong with this installation.
    Doctor,
    /// Print the OpenAPI document.
    Openapi,
    /// Print the documented default configuration.
    Config,
    /// Serve a context provider over standard input and output.
    #[command(subcommand)]
    Provider(Provider),
}

/// Commands that act for one platform.
#[derive(Debug, Args)]
pub(crate) struct OnPlatform {
    /// The platform.
    #[arg(long, default_value = "demo", value_name = "ID")]
    pub(crate) platform: String,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// End by itself after the main job instead of serving until Ctrl-C.
    #[arg(long)]
    pub(crate) once: bool,
    /// The Markdown pages that one of the demo's providers serves.
    #[arg(long, default_value = "docs", value_name = "DIR")]
    pub(crate) docs: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The first platform.
    #[arg(long, default_value = "demo", value_name = "ID")]
    pub(crate) platform: String,
    /// Make it a live platform: its keys begin with cm_live_.
    #[arg(long)]
    pub(crate) live: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Create a key; it is shown once.
    Create {
        #[command(flatten)]
        on: OnPlatform,
        /// What it may do: ingest, backfill, read, support, finance, admin.
        #[arg(long, value_delimiter = ',', default_value = "ingest")]
        scopes: Vec<String>,
        /// What it is for.
        #[arg(long, default_value = "")]
        label: String,
    },
    /// List the keys of a platform.
    List(OnPlatform),
    /// Revoke a key; it stops working everywhere within 60 seconds.
    Revoke {
        #[command(flatten)]
        on: OnPlatform,
        key_id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Customers {
    /// List customers with their link to Stripe.
    List(OnPlatform),
    /// Link a customer to its Stripe customer.
    Link {
        #[command(flatten)]
        on: OnPlatform,
        customer_id: String,
        /// The Stripe customer, cus_….
        #[arg(long)]
        stripe: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Meters {
    /// List the meters of a platform.
    List(OnPlatform),
}

#[derive(Debug, Args)]
pub(crate) struct Seal {
    #[command(flatten)]
    pub(crate) on: OnPlatform,
    /// Seal hours that have ended without waiting for late reports. The balance is checked all the same.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Dispute {
    /// The provider of the frame; needs --frame.
    #[arg(long, requires = "frame")]
    pub(crate) provider: Option<String>,
    /// The frame's identity at its provider.
    #[arg(long, requires = "provider")]
    pub(crate) frame: Option<String>,
    /// The frame's content digest, when more than one content was served.
    #[arg(long, requires = "frame")]
    pub(crate) digest: Option<String>,
    /// A usage event.
    #[arg(long)]
    pub(crate) event: Option<String>,
    /// A statement, stm_….
    #[arg(long)]
    pub(crate) statement: Option<String>,
    /// A Stripe meter event identifier, cm1_….
    #[arg(long)]
    pub(crate) identifier: Option<String>,
    /// A Stripe invoice line, il_….
    #[arg(long)]
    pub(crate) line: Option<String>,
    /// The platform.
    #[arg(long, default_value = "demo", value_name = "ID")]
    pub(crate) platform: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Proof {
    /// Check a proof file: the event is in the statement, the statement in the log, the log's head is signed.
    Verify { file: PathBuf },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Provider {
    /// Serve the Markdown files of a folder over the Context Graph wire protocol.
    Docs {
        #[arg(default_value = "docs")]
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
