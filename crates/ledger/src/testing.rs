//! Ledgers for tests: a fresh SQLite file, and a fresh database on a real Postgres that lives as long as its value.
#![allow(clippy::disallowed_methods, reason = "only tests call this, and they find Postgres by the PATH")]

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use usage::SharedClock;

use crate::{Ledger, LedgerError, LedgerOptions};

/// A ledger on each database, migrated, with what keeps it alive.
pub struct TestLedger {
    pub name: &'static str,
    pub ledger: Ledger,
    _keep: Keep,
}

enum Keep {
    Folder(#[expect(dead_code, reason = "removes the folder when it goes")] Scratch),
    Server(#[expect(dead_code, reason = "stops the server when it goes")] PostgresServer),
}

/// A fresh ledger on SQLite and one on Postgres.
///
/// # Errors
///
/// Without a Postgres it fails with the command that installs one.
pub async fn ledgers(clock: Option<SharedClock>) -> io::Result<Vec<TestLedger>> {
    Ok(vec![sqlite(clock.clone()).await?, postgres(clock).await?])
}

/// A fresh ledger on SQLite.
pub async fn sqlite(clock: Option<SharedClock>) -> io::Result<TestLedger> {
    let folder = Scratch::new("ledger")?;
    let url = format!("sqlite://{}", folder.0.join("ledger.sqlite").display());
    Ok(TestLedger { name: "sqlite", ledger: open(url, clock).await?, _keep: Keep::Folder(folder) })
}

/// A fresh ledger on a Postgres of its own.
pub async fn postgres(clock: Option<SharedClock>) -> io::Result<TestLedger> {
    let server = PostgresServer::start().await?;
    let url = server.database("ledger").await?;
    Ok(TestLedger { name: "postgres", ledger: open(url, clock).await?, _keep: Keep::Server(server) })
}

async fn open(url: String, clock: Option<SharedClock>) -> io::Result<Ledger> {
    let ledger = Ledger::open(LedgerOptions { url, clock, max_connections: 4 }).await.map_err(other)?;
    ledger.migrate().await.map_err(other)?;
    Ok(ledger)
}

/// A Postgres on a loopback port, stopped and removed when the value goes.
pub struct PostgresServer {
    programs: PathBuf,
    folder: Scratch,
    port: u16,
}

impl PostgresServer {
    /// Starts a server in a folder of its own, as another user when we are root, because Postgres refuses to run as root.
    pub async fn start() -> io::Result<PostgresServer> {
        let programs = programs()?;
        let folder = Scratch::new("postgres")?;
        if is_root() {
            run(Command::new("chown").args(["postgres", &folder.text()]))?;
        }
        let data = folder.0.join("data");
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = PostgresServer { programs, folder, port };
        run(server.program("initdb").arg("-D").arg(&data).args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        ]))?;
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c fsync=off -c full_page_writes=off \
             -c max_connections=50 -c shared_buffers=32MB",
            server.folder.text()
        );
        run(server
            .program("pg_ctl")
            .arg("-D")
            .arg(&data)
            .arg("-l")
            .arg(server.folder.0.join("log"))
            .args(["-w", "-t", "60", "-o", &options, "start"]))?;
        Ok(server)
    }

    /// Makes a database and returns its address for `LedgerOptions::url`.
    pub async fn database(&self, name: &str) -> io::Result<String> {
        let port = self.port.to_string();
        run(self.program("createdb").args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", name]))?;
        Ok(format!("postgres://postgres@127.0.0.1:{port}/{name}"))
    }

    fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let data = self.folder.0.join("data");
        let stop =
            self.program("pg_ctl").arg("-D").arg(data).args(["-m", "immediate", "-w", "stop"]).status();
        if let Err(error) = stop {
            tracing::warn!(%error, "cannot stop the test's Postgres");
        }
    }
}

/// A folder that is removed when the value goes. (`tempfile` is a dependency of tests alone.)
struct Scratch(PathBuf);

impl Scratch {
    fn new(what: &str) -> io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("contextmeter-{what}-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }

    fn text(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "cannot remove a test's folder");
        }
    }
}

fn programs() -> io::Result<PathBuf> {
    let mut found: Vec<PathBuf> = match std::fs::read_dir("/usr/lib/postgresql") {
        Ok(versions) => versions.filter_map(|v| v.ok()).map(|v| v.path().join("bin")).collect(),
        Err(_) => Vec::new(),
    };
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path));
    found
        .into_iter()
        .rev()
        .find(|folder| ["initdb", "pg_ctl", "createdb"].iter().all(|program| folder.join(program).is_file()))
        .ok_or_else(|| io::Error::other("there is no Postgres here: run scripts/install-postgres.sh"))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0)
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr))))
}

fn other(error: LedgerError) -> io::Error {
    io::Error::other(error)
}
