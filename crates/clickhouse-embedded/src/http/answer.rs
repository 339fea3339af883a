use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

use super::body::Body;
use super::encoding::Encoding;
use crate::Exception;
use crate::library::connection::Counts;

/// What every answer to a statement says of itself.
pub(super) struct Head {
    pub(super) query_id: String,
    pub(super) timezone: String,
    pub(super) encoding: Encoding,
    pub(super) started: Instant,
}

impl Head {
    pub(super) fn success(
        &self,
        body: Body,
        format: Option<&str>,
        counts: Counts,
        tag: Option<&str>,
    ) -> Response<Body> {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        let mut set = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        set("x-clickhouse-server-display-name", "embedded");
        set("x-clickhouse-query-id", &self.query_id);
        set("x-clickhouse-timezone", &self.timezone);
        set("x-clickhouse-summary", &self.summary(counts));
        if let Some(format) = format {
            set("x-clickhouse-format", format);
            set(CONTENT_TYPE.as_str(), content_type(format));
        }
        if let Some(tag) = tag {
            set("x-clickhouse-exception-tag", tag);
        }
        if let Some(encoding) = self.encoding.content_encoding() {
            set(CONTENT_ENCODING.as_str(), encoding);
        }
        response
    }

    fn summary(&self, counts: Counts) -> String {
        let elapsed = self.started.elapsed().as_nanos();
        format!(
            r#"{{"read_rows":"{}","read_bytes":"{}","written_rows":"{}","written_bytes":"{}","total_rows_to_read":"0","result_rows":"{}","result_bytes":"{}","elapsed_ns":"{elapsed}"}}"#,
            counts.read_rows,
            counts.read_bytes,
            counts.written_rows,
            counts.written_bytes,
            counts.result_rows,
            counts.result_bytes,
        )
    }
}

pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    response
}

/// An error before the first byte of an answer.
pub(super) fn failure(exception: &Exception, query_id: Option<&str>) -> Response<Body> {
    let mut response = Response::new(Body::whole(format!("{}\n", exception.message).into()));
    *response.status_mut() = status(exception.code);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    headers.insert("x-clickhouse-exception-code", HeaderValue::from(exception.code));
    if let Some(id) = query_id.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert("x-clickhouse-query-id", id);
    }
    response
}

/// An error after the first byte: the last piece of an answer. The tag, told in a header, makes it unmistakable.
pub(super) fn late_failure(exception: &Exception, tag: &str) -> Bytes {
    let message = format!("{}\n", exception.message);
    let length = message.len();
    format!("\r\n__exception__\r\n{tag}\r\n{message}{length} {tag}\r\n__exception__\r\n").into()
}

/// Sixteen letters that no data holds by chance.
pub(super) fn exception_tag() -> String {
    let bytes = *uuid::Uuid::new_v4().as_bytes();
    bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect()
}

fn content_type(format: &str) -> &'static str {
    let format = format.to_ascii_lowercase();
    if format.starts_with("json") {
        "application/json; charset=UTF-8"
    } else if format.starts_with("csv") {
        "text/csv; charset=UTF-8"
    } else if format.starts_with("tsv") || format.starts_with("tabseparated") {
        "text/tab-separated-values; charset=UTF-8"
    } else if format.starts_with("pretty") || format == "vertical" {
        "text/plain; charset=UTF-8"
    } else {
        "application/octet-stream"
    }
}

/// The status a server answers with for an exception's code.
fn status(code: u32) -> StatusCode {
    match code {
        194 => StatusCode::UNAUTHORIZED,
        164 | 192 | 193 | 291 | 497 | 516 => StatusCode::FORBIDDEN,
        11 | 46 | 47 | 50 | 51 | 57 | 60 | 73 | 81 | 115 | 372 | 511 => StatusCode::NOT_FOUND,
        159 => StatusCode::REQUEST_TIMEOUT,
        307 => StatusCode::PAYLOAD_TOO_LARGE,
        48 => StatusCode::NOT_IMPLEMENTED,
        202 | 236 | 439 => StatusCode::SERVICE_UNAVAILABLE,
        6 | 26 | 27 | 33 | 36 | 38 | 40 | 41 | 43 | 53 | 62 | 69 | 70 | 72 | 117 | 131 | 271 | 321 | 374
        | 386 | 456 | 457 => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
