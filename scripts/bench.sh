#!/usr/bin/env bash
# Builds the benchmarks optimised, runs them in a folder on this disk, and keeps the table in docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked --package contextmeter-tests --example bench
mkdir -p target/tmp
target/release/examples/bench target/tmp docs/benchmarks.md
