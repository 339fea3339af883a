#![doc = include_str!("../README.md")]

mod cli;
mod commands;
mod config;
mod demo;
mod door;
mod folder;
mod offline;
mod print;
mod roles;
mod serve;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Command, Proof, Provider},
    commands::Outcome,
    config::{Config, ConfigError, LogFormat},
    folder::FolderError,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Different) => ExitCode::from(3),
        Err(error) => {
            fail(&error);
            ExitCode::from(exit_code(&error))
        }
    }
}

/// What each kind of failure means to a script; the help text lists the same.
fn exit_code(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<ConfigError>().is_some() {
        2
    } else if matches!(error.downcast_ref(), Some(FolderError::Taken { .. })) {
        4
    } else {
        1
    }
}

#[expect(clippy::print_stderr, reason = "this is where the command speaks to people")]
fn fail(error: &anyhow::Error) {
    eprintln!("contextmeter: {error:#}");
}

fn run(cli: &Cli) -> anyhow::Result<Outcome> {
    let listen_key = match cli.command {
        Command::Engine => "engine.listen",
        Command::StripeSandbox => "sandbox.listen",
        _ => "http.listen",
    };
    let config = Config::load(cli.common.config.as_deref(), cli.common.overrides(listen_key))?;
    log(&config, &cli.command);
    // One TLS stack for every client of this process; a second call finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The engine parses deep expressions on our threads: the default stack of two megabytes refuses some.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(8 * 1024 * 1024)
        .build()?;
    let outcome = runtime.block_on(dispatch(cli, &config));
    runtime.shutdown_timeout(std::time::Duration::from_secs(10));
    outcome
}

async fn dispatch(cli: &Cli, config: &Config) -> anyhow::Result<Outcome> {
    let common = &cli.common;
    match &cli.command {
        Command::Demo(args) => demo::run(config, common, args).await,
        Command::Init(args) => commands::init(config, common, args).await,
        Command::Up => serve::rooms(config, roles::Roles::UP).await,
        Command::Ingest => serve::rooms(config, roles::Roles::INGEST).await,
        Command::Billing => serve::rooms(config, roles::Roles::BILLING).await,
        Command::Engine => serve::engine(config).await,
        Command::StripeSandbox => serve::sandbox(config).await,
        Command::Migrate => commands::migrate(config, common).await,
        Command::Keys(command) => commands::keys(config, common, command).await,
        Command::Customers(command) => commands::customers(config, common, command).await,
        Command::Meters(command) => commands::meters(config, common, command).await,
        Command::Seal(args) => commands::seal(config, common, args).await,
        Command::Sync(on) => commands::sync(config, common, on).await,
        Command::Reconcile(on) => commands::reconcile(config, common, on).await,
        Command::Statements(on) => commands::statements(config, common, on).await,
        Command::Conflicts(on) => commands::conflicts(config, common, on).await,
        Command::Dispute(args) => commands::dispute(config, common, args).await,
        Command::Verify(on) => commands::verify(config, common, on).await,
        Command::Proof(Proof::Verify { file }) => offline::proof_verify(common, file),
        Command::Doctor => commands::doctor(config, common).await,
        Command::Openapi => offline::openapi().await,
        Command::Config => {
            print::line(Config::documented_defaults());
            Ok(Outcome::Done)
        }
        Command::Provider(Provider::Docs { folder }) => serve::docs_provider(folder).await,
    }
}

fn log(config: &Config, command: &Command) {
    // A command that asks shows its answer, not the service's life; what goes wrong is shown all the same.
    let serving = matches!(
        command,
        Command::Up | Command::Ingest | Command::Billing | Command::Engine | Command::StripeSandbox
    );
    let filter = if serving { config.log.filter.as_str() } else { "error" };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(std::io::stderr);
    match config.log.format {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder.with_ansi(false).init(),
    }
}
