//! Ratios against named limits, measured in one run: `bench FOLDER PAGE`. `make bench` runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what cannot be measured ends the run")]

mod place;
mod table;

mod accept;
mod ask;
mod books;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::place::Place;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what it is run for")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (folder, page) = arguments.next().zip(arguments.next()).context("usage: bench FOLDER PAGE")?;
    let machine = table::machine(&folder);
    let place = Place::open(&folder).await;
    let mut rows = vec![accept::measure(&place).await];
    rows.extend(books::measure(&place).await);
    rows.extend(ask::measure().await);
    place.close().await;
    let text = table::page(&rows, &machine);
    println!("{text}");
    std::fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))
}
