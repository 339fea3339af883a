#!/bin/sh
# Runs the official Python client against the stand-in: scripts/peers/stripe.sh [base URL of a running one].
set -eu
cd "$(dirname "$0")/../.."

venv=target/peers/stripe
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "stripe==16.1.0"

if [ $# -gt 0 ]; then
    exec "$venv/bin/python" scripts/peers/stripe_client.py "$1"
fi

cargo build --quiet -p stripe-sandbox --example sandbox
said=$(mktemp)
target/debug/examples/sandbox 127.0.0.1:0 >"$said" &
sandbox=$!
trap 'kill "$sandbox"; rm -f "$said"' EXIT
# The first line is its address.
tries=0
while [ ! -s "$said" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the sandbox did not start" >&2; exit 1; }
    sleep 0.05
done
"$venv/bin/python" scripts/peers/stripe_client.py "$(head -n 1 "$said")"
