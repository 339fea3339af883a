//! How a command reaches the service: over HTTP when a process has the data folder open, in process when nobody does.
//!
//! Both ways go through the same router, so that a command can do nothing that a request could not.

use anyhow::{Context as _, bail};
use axum::{Router, body::Body};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::{
    config::Config,
    folder::{Folder, FolderError},
    roles::{Roles, Rooms},
};

/// The header by which the operator names a platform.
const PLATFORM: &str = "contextmeter-platform";

/// A way in, with the operator's token.
pub(crate) struct Door {
    way: Way,
    token: String,
}

enum Way {
    Remote(Api),
    Local { router: Router, rooms: Box<Rooms> },
}

/// A service somewhere, asked over HTTP.
pub(crate) struct Api {
    http: reqwest::Client,
    url: String,
}

impl Api {
    pub(crate) fn new(url: &str) -> Api {
        Api { http: reqwest::Client::new(), url: url.to_owned() }
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        token: &str,
        platform: Option<&str>,
        body: Vec<u8>,
    ) -> anyhow::Result<Answer> {
        let url = format!("{}{path}", self.url);
        let mut request = self
            .http
            .request(method, &url)
            .bearer_auth(token)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        if let Some(platform) = platform {
            request = request.header(PLATFORM, platform);
        }
        let response = request.send().await.with_context(|| format!("calling {url}"))?;
        let status = response.status();
        Ok(Answer { status, body: parse(&response.bytes().await?) })
    }
}

/// What the service said.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of a success; a problem becomes an error that says what the service said.
    pub(crate) fn ok(self) -> anyhow::Result<Value> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let code = self.body["code"].as_str().unwrap_or("no_code");
        let detail = self.body["detail"].as_str().or(self.body["title"].as_str()).unwrap_or("no detail");
        bail!("{detail} ({code}, {})", self.status.as_u16())
    }
}

impl Door {
    /// Finds the running service of the data folder, or opens the folder.
    pub(crate) async fn open(config: &Config) -> anyhow::Result<Door> {
        let folder = Folder::new(&config.data.folder);
        match folder.open() {
            Ok(open) => {
                let token = open.operator_key_or_create()?;
                let rooms = Rooms::open(config, open, Roles::ALL_QUIET).await?;
                Ok(Door { way: Way::Local { router: rooms.router(), rooms: Box::new(rooms) }, token })
            }
            Err(taken @ FolderError::Taken { .. }) => {
                let (Some(run), Some(token)) = (folder.run_info(), folder.operator_key()?) else {
                    return Err(taken).context("the process that has it is not ready to answer yet");
                };
                Ok(Door { way: Way::Remote(Api::new(&run.url)), token })
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn get(&self, platform: &str, path: &str) -> anyhow::Result<Answer> {
        self.call(Method::GET, platform, path, None).await
    }

    pub(crate) async fn post(&self, platform: &str, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.call(Method::POST, platform, path, Some(body)).await
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        platform: &str,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Answer> {
        let bytes = match &body {
            Some(body) => serde_json::to_vec(body)?,
            None => Vec::new(),
        };
        match &self.way {
            Way::Remote(api) => api.call(method, path, &self.token, Some(platform), bytes).await,
            Way::Local { router, .. } => {
                let request = Request::builder()
                    .method(method)
                    .uri(path)
                    .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
                    .header(PLATFORM, platform)
                    .header(header::CONTENT_TYPE, "application/json")
                    .body(Body::from(bytes))?;
                let response = router.clone().oneshot(request).await?;
                let status = response.status();
                Ok(Answer { status, body: parse(&response.into_body().collect().await?.to_bytes()) })
            }
        }
    }

    /// Closes the folder if we opened it.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        match self.way {
            Way::Remote(_) => Ok(()),
            Way::Local { rooms, .. } => rooms.close().await,
        }
    }
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}
