//! A folder of Markdown pages as a provider over standard streams: `docs_provider FOLDER`.

use std::io;

use host_core::{providers::DocsProvider, serve_standard_streams};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let folder =
        std::env::args_os().nth(1).ok_or_else(|| io::Error::other("give a folder of Markdown pages"))?;
    let docs = DocsProvider::open(folder).map_err(io::Error::other)?;
    serve_standard_streams(&docs).await
}
