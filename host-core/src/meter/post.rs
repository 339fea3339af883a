use std::time::Duration;

use reqwest::{
    Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
    redirect::Policy,
};
use serde::Deserialize;
use usage::{Acknowledgement, Position};

use super::{MeterError, MeterOptions};
use crate::note::note;

/// An answer is an acknowledgement for each provider of a report, or a list of findings.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) struct Poster {
    client: reqwest::Client,
    reports: Url,
}

/// What a post came to.
pub(super) enum Answer {
    Acknowledged {
        position: Position,
        duplicate: bool,
    },
    /// The report itself is at fault.
    Refused {
        status: u16,
        code: String,
        body: Vec<u8>,
    },
    /// It may be taken another time.
    Later {
        why: String,
    },
}

/// What matters here of the answer to a report. The rest is for those who check it.
#[derive(Deserialize)]
struct Taken {
    status: Status,
    acknowledgement: Acknowledgement,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Accepted,
    Duplicate,
}

#[derive(Deserialize)]
struct Problem {
    code: String,
}

impl Poster {
    pub(super) fn new(options: &MeterOptions) -> Result<Self, MeterError> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // The HTTP client would panic without one. An error says that another thread was faster, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let reports = reports_url(&options.endpoint, options.plain_http)?;
        let mut key =
            HeaderValue::from_str(&format!("Bearer {}", options.api_key)).map_err(|_| MeterError::ApiKey)?;
        key.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, key)]);
        let mut client = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(options.timeout)
            .connect_timeout(options.timeout.min(Duration::from_secs(10)))
            .redirect(Policy::none()) // a redirect would carry the key elsewhere
            .user_agent(concat!("Contextmeter-host/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&reports) {
            client = client.no_proxy(); // else a proxy of the environment would see the key in clear
        }
        Ok(Self { client: client.build().map_err(MeterError::Client)?, reports })
    }

    pub(super) async fn post(&self, body: Vec<u8>) -> Answer {
        let request =
            self.client.post(self.reports.clone()).header(CONTENT_TYPE, "application/json").body(body);
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Answer::Later { why: chain(&error) },
        };
        let status = response.status().as_u16();
        let mut answer = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if answer.len() + chunk.len() <= ANSWER_BYTES_MAX => {
                    answer.extend_from_slice(&chunk)
                }
                Ok(Some(_)) => {
                    return Answer::Later { why: "the answer is too long to be one of ours".to_owned() };
                }
                Ok(None) => break,
                Err(error) => return Answer::Later { why: chain(&error) },
            }
        }
        judge(status, answer)
    }
}

/// Only an acknowledgement removes a report, and only a refusal of its content sets it aside. Everything else (a key that is not known
/// yet, an address that is somebody else's, a rate, an outage) can be mended without touching the report, so it waits.
fn judge(status: u16, answer: Vec<u8>) -> Answer {
    let code = serde_json::from_slice::<Problem>(&answer).ok().map(|problem| note(&problem.code));
    match (status, code) {
        (200, _) => match serde_json::from_slice::<Taken>(&answer) {
            Ok(taken) => Answer::Acknowledged {
                position: taken.acknowledgement.position(),
                duplicate: matches!(taken.status, Status::Duplicate),
            },
            Err(_) => Answer::Later { why: "the answer is 200 but no acknowledgement".to_owned() },
        },
        (400 | 409 | 413 | 415 | 422, Some(code)) if code != "platform_required" => {
            Answer::Refused { status, code, body: answer }
        }
        (_, Some(code)) => Answer::Later { why: format!("the answer is {status} {code}") },
        (_, None) => Answer::Later { why: format!("the answer is {status}") },
    }
}

fn reports_url(endpoint: &str, plain_http: bool) -> Result<Url, MeterError> {
    let refuse = |detail| Err(MeterError::Endpoint { detail });
    let Ok(mut url) = Url::parse(endpoint) else { return refuse("it is no URL") };
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        return refuse("it must have no user, query or fragment; the key goes into a header");
    }
    match url.scheme() {
        "https" => {}
        "http" if plain_http || is_loopback(&url) => {}
        "http" => return refuse("plain HTTP would show the key to the network"),
        _ => return refuse("it must begin with https:// or http://"),
    }
    let path = format!("{}/v1/reports", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An error with its causes, in one line and without the address.
fn chain(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "the service did not answer in time"
    } else {
        "the service cannot be reached"
    }
    .to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    note(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_only_where_nobody_reads_it() {
        for (endpoint, plain, good) in [
            ("https://meter.example", false, true),
            ("http://127.0.0.1:8080", false, true),
            ("http://[::1]:8080/base/", false, true),
            ("http://meter.example", false, false),
            ("http://meter.example", true, true),
            ("http://127.0.0.1.meter.example", false, false),
            ("https://key@meter.example", false, false),
            ("https://meter.example?key=1", false, false),
            ("ftp://meter.example", true, false),
            ("meter", true, false),
        ] {
            assert_eq!(reports_url(endpoint, plain).is_ok(), good, "{endpoint}");
        }
        let url = reports_url("http://[::1]:8080/base/", false).unwrap();
        assert_eq!(url.path(), "/base/v1/reports");
    }
}
