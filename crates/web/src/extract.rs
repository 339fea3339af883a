//! Reading requests strictly: what is not known is refused, with a pointer.

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, FromRequestParts, Path, Request},
};
use http::{header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::{Problem, problem::codes};

/// The largest body that a route reads, put on every request by `app`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit(pub(crate) usize);

/// A JSON body of type `T`, which must be `deny_unknown_fields`.
#[derive(Debug, Clone, Copy)]
pub struct StrictJson<T>(pub T);

/// The query string as `T`, which must be `deny_unknown_fields`.
#[derive(Debug, Clone, Copy)]
pub struct StrictQuery<T>(pub T);

/// Path parameters as `T`.
#[derive(Debug, Clone, Copy)]
pub struct StrictPath<T>(pub T);

/// The whole body, bounded.
pub async fn read_body(request: Request) -> Result<Bytes, Problem> {
    let limit = request.extensions().get::<BodyLimit>().map_or(1 << 20, |limit| limit.0);
    read_limited(request.into_body(), limit).await
}

async fn read_limited(body: Body, limit: usize) -> Result<Bytes, Problem> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::new(&codes::BODY_TOO_LARGE)
            .detail(format!("The body may have {limit} bytes at the most; send reports one by one."))),
        Err(_) => {
            Err(Problem::new(&codes::MALFORMED_JSON)
                .detail("The body ended before it was whole; send it again."))
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for StrictJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let json =
            request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).is_some_and(is_json);
        if !json {
            return Err(
                Problem::new(&codes::UNSUPPORTED_MEDIA_TYPE).detail("Send `Content-Type: application/json`.")
            );
        }
        let bytes = read_body(request).await?;
        parse(&bytes).map(StrictJson)
    }
}

pub(crate) fn is_json(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (pointer, inner) = (pointer(error.path()), error.into_inner());
        let code = if inner.is_data() { &codes::INVALID_REQUEST } else { &codes::MALFORMED_JSON };
        Problem::new(code).detail(format!("{inner}; compare with /openapi.json.")).pointer(pointer)
    })?;
    reader.end().map_err(|error| {
        Problem::new(&codes::MALFORMED_JSON).detail(format!("{error}; send one document."))
    })?;
    Ok(value)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => String::new(),
        })
        .collect()
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        serde_urlencoded::from_str(parts.uri.query().unwrap_or_default())
            .map(StrictQuery)
            .map_err(|error| Problem::new(&codes::INVALID_REQUEST).detail(format!("In the query: {error}.")))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for StrictPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Path::from_request_parts(parts, state)
            .await
            .map(|Path(value)| StrictPath(value))
            .map_err(|error| Problem::new(&codes::INVALID_REQUEST).detail(format!("In the path: {error}.")))
    }
}
