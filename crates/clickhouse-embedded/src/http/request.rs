use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method};

use super::Access;
use super::encoding::Encoding;
use crate::Exception;
use crate::library::connection::Parameters;

/// A request, less its body.
pub(super) struct Ask {
    pub(super) query: String,
    pub(super) database: Option<String>,
    pub(super) default_format: String,
    pub(super) settings: Vec<(String, String)>,
    pub(super) parameters: Parameters,
    pub(super) session: Option<SessionAsk>,
    pub(super) query_id: String,
    /// The whole answer before its first byte, so that an error is a status.
    pub(super) wait_end: bool,
    pub(super) encoding: Encoding,
    pub(super) content_encoding: Option<String>,
    pub(super) native_blocks: bool,
    pub(super) boundary: Option<String>,
    pub(super) read_only: bool,
    /// A GET may not change anything, but may set settings.
    pub(super) get: bool,
}

pub(super) struct SessionAsk {
    pub(super) id: String,
    pub(super) must_exist: bool,
    pub(super) timeout: Duration,
    pub(super) close: bool,
}

const DEFAULT_SESSION_TIMEOUT: u64 = 60;
const MAX_SESSION_TIMEOUT: u64 = 3600;

impl Ask {
    pub(super) fn read(head: &http::request::Parts, access: &Access) -> Result<Self, Exception> {
        let text = |name: &str| header(&head.headers, name);
        let mut ask = Self {
            query: String::new(),
            database: text("x-clickhouse-database"),
            default_format: text("x-clickhouse-format").unwrap_or_else(|| "TabSeparated".to_owned()),
            settings: Vec::new(),
            parameters: Vec::new(),
            session: None,
            query_id: String::new(),
            wait_end: false,
            encoding: Encoding::Identity,
            content_encoding: text(CONTENT_ENCODING.as_str()),
            native_blocks: false,
            boundary: boundary(text(CONTENT_TYPE.as_str()).as_deref()),
            read_only: access.read_only(),
            get: head.method == Method::GET,
        };
        let mut login = Login::from_headers(&head.headers);
        let (mut session, mut must_exist, mut timeout, mut close) =
            (None, false, DEFAULT_SESSION_TIMEOUT, false);
        let (mut native_answer, mut http_answer) = (false, true);

        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(head.uri.query().unwrap_or_default())
            .map_err(|error| {
            Exception::new(36, "BAD_ARGUMENTS", format!("The address cannot be read: {error}"))
        })?;
        for (name, value) in pairs {
            match name.as_str() {
                "query" => ask.query.push_str(&value),
                "database" => ask.database = Some(value),
                "default_format" => ask.default_format = value,
                "user" => login.user = value,
                "password" => login.password = value,
                "query_id" => ask.query_id = value,
                "session_id" => session = Some(value),
                "session_check" => must_exist = flag(&value),
                "session_timeout" => timeout = seconds(&value)?,
                "close_session" => close = flag(&value),
                "wait_end_of_query" => ask.wait_end = flag(&value),
                "compress" => native_answer = flag(&value),
                "decompress" => ask.native_blocks = flag(&value),
                "role" => {
                    return Err(Exception::new(511, "UNKNOWN_ROLE", "The embedded engine has no roles"));
                }
                // Of a server's buffers and quotas; without meaning here.
                "buffer_size" | "quota_key" | "stacktrace" | "client_protocol_version" => {}
                "enable_http_compression" => http_answer = flag(&value),
                // How hard a server compresses its answers.
                "http_zlib_compression_level" => {}
                _ => match name.strip_prefix("param_") {
                    Some(parameter) => ask.parameters.push((parameter.to_owned(), value)),
                    None => ask.settings.push((name, value)),
                },
            }
        }
        if let Access::Tcp(known) = access
            && !known.admits(&login.user, &login.password)
        {
            return Err(Exception::new(
                516,
                "AUTHENTICATION_FAILED",
                "Authentication failed: password is incorrect, or there is no user with such name",
            ));
        }
        if ask.query_id.is_empty() {
            ask.query_id = uuid::Uuid::new_v4().to_string();
        }
        if native_answer {
            ask.encoding = Encoding::NativeBlocks;
        } else if http_answer && accepts_lz4(text(ACCEPT_ENCODING.as_str()).as_deref()) {
            ask.encoding = Encoding::Lz4Frame;
        }
        // Each way in has sessions of its own.
        let room = match access {
            Access::Full => "memory",
            Access::Tcp(_) if ask.read_only => "reader",
            Access::Tcp(_) => "tcp",
        };
        ask.session = session.filter(|id| !id.is_empty()).map(|id| SessionAsk {
            id: format!("{room}:{id}"),
            must_exist,
            timeout: Duration::from_secs(timeout),
            close,
        });
        Ok(ask)
    }
}

struct Login {
    user: String,
    password: String,
}

impl Login {
    fn from_headers(headers: &HeaderMap) -> Self {
        let basic = header(headers, AUTHORIZATION.as_str()).and_then(|value| {
            let encoded = value.strip_prefix("Basic ").or_else(|| value.strip_prefix("basic "))?;
            let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
            let (user, password) = decoded.split_once(':')?;
            Some((user.to_owned(), password.to_owned()))
        });
        let (user, password) = basic.unwrap_or_else(|| {
            (
                header(headers, "x-clickhouse-user").unwrap_or_else(|| "default".to_owned()),
                header(headers, "x-clickhouse-key").unwrap_or_default(),
            )
        });
        Self { user, password }
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

fn flag(value: &str) -> bool {
    matches!(value, "1" | "true")
}

fn seconds(value: &str) -> Result<u64, Exception> {
    let seconds: Option<u64> = value.parse().ok();
    seconds.filter(|seconds| *seconds <= MAX_SESSION_TIMEOUT).ok_or_else(|| {
        let text =
            format!("session_timeout is a number of seconds up to {MAX_SESSION_TIMEOUT}, not '{value}'");
        Exception::new(374, "INVALID_SESSION_TIMEOUT", text)
    })
}

fn accepts_lz4(accepted: Option<&str>) -> bool {
    let names = accepted.unwrap_or_default().split(',');
    names.filter_map(|name| name.split(';').next()).any(|name| name.trim().eq_ignore_ascii_case("lz4"))
}

fn boundary(content_type: Option<&str>) -> Option<String> {
    let content_type = content_type?;
    let (kind, rest) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let mut parts = rest.split(';').filter_map(|part| part.trim().split_once('='));
    let (_, value) = parts.find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    Some(value.trim_matches('"').to_owned())
}
