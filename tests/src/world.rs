//! Processes of the real binary on a folder of their own.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::wait;

/// A data folder and the binary that works on it.
pub struct World {
    folder: TempDir,
    binary: PathBuf,
    settings: Vec<(String, String)>,
}

impl World {
    /// A fresh world. `binary` is `env!("CARGO_BIN_EXE_contextmeter")`.
    pub fn new(binary: &str) -> World {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::Builder::new().prefix("contextmeter-").tempdir().expect("a temporary folder");
        World { folder, binary: binary.into(), settings: Vec::new() }
    }

    /// Sets a configuration key for every process started after this.
    pub fn set(&mut self, name: &str, value: impl Into<String>) -> &mut World {
        self.settings.push((name.to_owned(), value.into()));
        self
    }

    /// A data folder of this world by name.
    pub fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a role on a data folder and waits until it is ready.
    pub async fn start(&self, role: &str, name: &str) -> Service {
        let service = self.start_unready(role, name).await;
        // The engine answers as ClickHouse does.
        let question = if role == "engine" { "/ping" } else { "/readyz" };
        wait::until(&format!("{role} is ready"), async || match service.get_as(None, question).await {
            answer if answer.status == 200 => Ok(()),
            answer => Err(format!("{} {}", answer.status, answer.body)),
        })
        .await;
        service
    }

    /// Starts a role and waits only until it answers at all.
    pub async fn start_unready(&self, role: &str, name: &str) -> Service {
        let data = self.data(name);
        let mut child =
            self.command(role, name).arg(role).kill_on_drop(true).spawn().expect("the binary starts");
        let run = wait::until(&format!("{role} announces itself"), async || {
            if let Ok(Some(status)) = child.try_wait() {
                panic!("{role} ended with {status} before it answered; its log is above");
            }
            let text = std::fs::read(data.join("run.json")).map_err(|e| format!("run.json: {e}"))?;
            let run: Value = serde_json::from_slice(&text).map_err(|e| format!("run.json: {e}"))?;
            if run["pid"].as_u64() == child.id().map(u64::from) {
                Ok(run)
            } else {
                Err(format!("run.json is of process {}", run["pid"]))
            }
        })
        .await;
        let url = run["url"].as_str().expect("run.json has a url").to_owned();
        let operator =
            std::fs::read_to_string(data.join("operator.key")).unwrap_or_default().trim().to_owned();
        Service { child, url, operator, http: reqwest::Client::new() }
    }

    /// Runs a command to its end: exit code, standard output, standard error.
    pub async fn run(&self, name: &str, arguments: &[&str]) -> (i32, String, String) {
        let output = self
            .command("", name)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .await
            .expect("the binary starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    /// Runs a command with `--json` that must succeed, and parses the last line it prints.
    pub async fn run_json(&self, name: &str, arguments: &[&str]) -> Value {
        let (code, out, err) = self.run(name, &[arguments, &["--json"]].concat()).await;
        assert_eq!(code, 0, "{arguments:?} failed\n{out}\n{err}");
        let last = out.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{arguments:?} printed no JSON ({e}): {out}"))
    }

    fn command(&self, role: &str, name: &str) -> Command {
        let mut command = Command::new(&self.binary);
        // Others find the engine at the address of their settings; everybody else is found by `run.json`.
        if role != "engine" {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command
            .arg("--data")
            .arg(self.data(name))
            .current_dir(self.folder.path())
            .env("CONTEXTMETER_ENGINE_LIBRARY", engine_library())
            .envs(self.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())))
            .stdin(Stdio::null());
        command
    }
}

fn engine_library() -> PathBuf {
    clickhouse_embedded::test_support::test_library().expect("run scripts/install-engine.sh")
}

/// An answer of the service.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub body: Value,
}

impl Answer {
    /// The body, if the status is the expected one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// One running process.
pub struct Service {
    child: Child,
    url: String,
    operator: String,
    http: reqwest::Client,
}

impl Service {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the process at once, as a power cut would.
    pub async fn kill_9(mut self) {
        self.child.kill().await.expect("the process was running");
    }

    /// Sends the process a signal by name.
    pub async fn signal(&self, name: &str) {
        let pid = self.child.id().expect("the process is running").to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().await.expect("kill runs");
        assert!(sent.success());
    }

    /// Asks the process to end and returns its exit code.
    pub async fn stop(mut self) -> i32 {
        self.signal("TERM").await;
        let status = tokio::time::timeout(wait::LIMIT, self.child.wait()).await.expect("it ends on SIGTERM");
        status.expect("it is our child").code().unwrap_or(-1)
    }

    /// A platform with a key that may do what `scopes` say. Returns the key.
    pub async fn given_platform(&self, platform: &str, scopes: &[&str]) -> String {
        let body = serde_json::json!({"platform_id": platform, "livemode": false});
        let made = self.operator_post(platform, "/v1/platforms", &body).await;
        assert!(made.status == 201 || made.body["code"] == "platform_exists", "{made:?}");
        let body = serde_json::json!({"label": "test", "scopes": scopes});
        let key = self.operator_post(platform, "/v1/keys", &body).await.expect(201);
        key["key"].as_str().expect("a key is shown once").to_owned()
    }

    pub async fn operator_post(&self, platform: &str, path: &str, body: &Value) -> Answer {
        let request = self.request(reqwest::Method::POST, path, Some(&self.operator));
        send(request.header("contextmeter-platform", platform).json(body)).await
    }

    pub async fn operator_get(&self, platform: &str, path: &str) -> Answer {
        let request = self.request(reqwest::Method::GET, path, Some(&self.operator));
        send(request.header("contextmeter-platform", platform)).await
    }

    pub async fn get_as(&self, key: Option<&str>, path: &str) -> Answer {
        send(self.request(reqwest::Method::GET, path, key)).await
    }

    /// Posts bytes as JSON.
    pub async fn post_as(&self, key: Option<&str>, path: &str, body: Vec<u8>) -> Answer {
        self.try_post_as(key, path, body).await.expect("the service answers")
    }

    /// Posts bytes as JSON to a service that may be killed meanwhile.
    pub async fn try_post_as(
        &self,
        key: Option<&str>,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Answer, reqwest::Error> {
        let request = self.request(reqwest::Method::POST, path, key);
        try_send(request.header("content-type", "application/json").body(body)).await
    }

    /// Any request, for what the other methods do not send.
    pub fn request(&self, method: reqwest::Method, path: &str, key: Option<&str>) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Waits until everything acknowledged so far can be read from the store, and returns the platform's total.
    pub async fn stored_tokens(&self, platform: &str, expected: u128) -> u128 {
        wait::until("the store holds all that was acknowledged", async || {
            let usage = self.operator_get(platform, "/v1/usage").await;
            let total: u128 = usage.body["total"]["tokens"].as_str().unwrap_or("0").parse().expect("digits");
            if total == expected { Ok(total) } else { Err(format!("{total} of {expected}: {}", usage.body)) }
        })
        .await
    }

    /// Seals until the statements say what was acknowledged. What is stored is sealed once its journal told the ledger, a moment later.
    pub async fn sealed_tokens(&self, platform: &str, expected: u128) {
        wait::until("the statements hold all that was acknowledged", async || {
            let force = serde_json::json!({"force": true});
            let sealed = self.operator_post(platform, "/v1/windows/seal", &force).await;
            let statements = self.operator_get(platform, "/v1/statements?limit=1000").await;
            let rows = statements.body["data"].as_array().cloned().unwrap_or_default();
            let sums =
                rows.iter().map(|row| row["sum"].as_str().unwrap_or("0").parse::<u128>().expect("digits"));
            let total: u128 = sums.sum();
            if total == expected { Ok(()) } else { Err(format!("{total} of {expected}: {}", sealed.body)) }
        })
        .await;
    }
}

/// Sends a request and reads the whole answer.
pub async fn send(request: reqwest::RequestBuilder) -> Answer {
    try_send(request).await.expect("the service answers")
}

async fn try_send(request: reqwest::RequestBuilder) -> Result<Answer, reqwest::Error> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let content_type =
        response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let bytes = response.bytes().await?;
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Ok(Answer { status, content_type, body })
}

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}
