#!/usr/bin/env bash
# The checks that need no service. Each fails with its own output.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
scripts/with-tools.sh cargo deny --locked check bans licenses sources
