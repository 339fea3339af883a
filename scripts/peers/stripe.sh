#!/usr/bin/env bash
# Runs the official Python client against the stand-in: scripts/peers/stripe.sh [base URL of a running one].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ $# -gt 0 ]]; then
    exec scripts/peers/python.sh scripts/peers/stripe_client.py "$1"
fi

cargo build --quiet --locked --package stripe-sandbox --example sandbox
said=$(mktemp)
cargo run --quiet --locked --package stripe-sandbox --example sandbox -- 127.0.0.1:0 >"$said" &
sandbox=$!
trap 'kill "$sandbox" 2>/dev/null || true; rm -f "$said"' EXIT
# The first line is its address.
for ((tries = 0; tries < 200; tries++)); do
    if [[ -s $said ]]; then break; fi
    kill -0 "$sandbox" 2>/dev/null || break
    sleep 0.05
done
[[ -s $said ]] || { echo "peers: the sandbox did not start" >&2; exit 1; }
scripts/peers/python.sh scripts/peers/stripe_client.py "$(head -n 1 "$said")"
