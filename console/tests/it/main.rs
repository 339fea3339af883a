//! The console as a browser gets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeSet, fs, path::Path};

use axum::{Router, body::Body};
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

const SCRIPT: &str = include_str!("../../assets/app.js");
const INTERFACE: &str = include_str!("../../../docs/http-api.md");

const FILES: [(&str, &str); 3] = [
    ("/console", "text/html; charset=utf-8"),
    ("/console/app.js", "text/javascript; charset=utf-8"),
    ("/console/style.css", "text/css; charset=utf-8"),
];

async fn get(path: &str) -> (u16, HeaderMap, String) {
    let (router, _): (Router, _) = contextmeter_console::routes().split_for_parts();
    let response = router.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

/// Everything under the folders that a page is made of.
fn sources() -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for folder in ["templates", "assets"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            sources.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(sources.len() >= 4, "{sources:?}");
    sources
}

/// The paths under `/v1` that a text names.
fn paths(text: &str) -> BTreeSet<&str> {
    let of_path = |c: char| c.is_ascii_alphanumeric() || "/_{}-".contains(c);
    text.match_indices("/v1/")
        .map(|(at, _)| {
            let rest = &text[at..];
            &rest[..rest.find(|c| !of_path(c)).unwrap_or(rest.len())]
        })
        .collect()
}

/// The values of an attribute in the page.
fn attribute<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    page.split(start.as_str()).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn page_script_and_style_are_served_by_their_kind_and_let_nothing_else_in() {
    for (path, kind) in FILES {
        let (status, headers, body) = get(path).await;
        assert_eq!(status, 200, "{path}");
        assert_eq!(headers[header::CONTENT_TYPE], kind, "{path}");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        assert!(!body.is_empty(), "{path}");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        let rules: Vec<&str> = policy.split("; ").collect();
        assert!(rules.contains(&"default-src 'self'"), "{path}: {policy}");
        // A form that the browser sent by itself would put the key or a customer into an address.
        assert!(rules.contains(&"form-action 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert!(!headers.contains_key(header::SET_COOKIE), "{path}");
    }
}

#[tokio::test]
async fn the_page_takes_all_it_loads_from_the_console_itself() {
    let (_, _, page) = get("/console").await;
    let served: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
    for address in attribute(&page, "src").into_iter().chain(attribute(&page, "href")) {
        assert!(address.starts_with('#') || served.contains(&address), "{address} is not served");
    }
    assert!(!page.contains("<style") && !page.contains(" style="), "the policy forbids styles in the page");
    assert!(!page.contains(" onclick=") && !page.contains(" onsubmit="), "and scripts in it");
}

#[tokio::test]
async fn every_input_of_the_page_has_a_label_and_every_id_is_there_once() {
    let (_, _, page) = get("/console").await;
    let labelled = attribute(&page, "for");
    let ids = attribute(&page, "id");
    let once: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(once.len(), ids.len(), "{ids:?}");
    for input in page.split("<input ").skip(1).filter(|rest| !rest.starts_with("type=\"radio\"")) {
        let id = input.strip_prefix("id=\"").and_then(|rest| rest.split('"').next());
        assert!(id.is_some_and(|id| labelled.contains(&id)), "no label: {input:.60}");
        // Without a name a browser has nothing to put into an address, whatever happens to the script.
        assert!(!input.split('>').next().unwrap().contains(" name="), "{input:.80}");
    }
}

#[test]
fn values_enter_the_page_as_text_and_nothing_is_asked_elsewhere() {
    for (file, text) in sources() {
        for forbidden in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "|safe", "| safe"]
        {
            assert!(!text.contains(forbidden), "{file} has {forbidden}");
        }
        for external in ["http:", "https:", "\"//", "'//", "`//", "url(", "@import"] {
            assert!(!text.contains(external), "{file} names an external address: {external}");
        }
    }
}

#[test]
fn the_key_is_kept_in_the_tab_alone() {
    for forbidden in ["localStorage", "document.cookie", "indexedDB"] {
        assert!(!SCRIPT.contains(forbidden), "the script uses {forbidden}");
    }
    assert!(SCRIPT.contains("sessionStorage.setItem(KEY"), "the script keeps the key elsewhere");
}

#[test]
fn every_route_that_the_script_asks_is_one_that_the_interface_documents() {
    let (asked, documented) = (paths(SCRIPT), paths(INTERFACE));
    assert_eq!(
        asked.iter().copied().collect::<Vec<_>>(),
        ["/v1/conflicts", "/v1/disputes/lookup", "/v1/invoices", "/v1/statements", "/v1/usage"],
    );
    assert!(asked.is_subset(&documented), "{:?}", asked.difference(&documented).collect::<Vec<_>>());
}
