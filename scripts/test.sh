#!/usr/bin/env bash
# Everything that must be green before a commit, tier by tier, with the minutes each took.
set -euo pipefail
cd "$(dirname "$0")/.."

tiers=()
tier() { # tier NAME COMMAND…
  local name=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  "$@"
  tiers+=("$(printf '%-12s %5d s' "$name" $((SECONDS - start)))")
}

nextest() { scripts/with-tools.sh cargo nextest run --locked --profile "${NEXTEST_PROFILE:-default}" "$@"; }

tier setup scripts/setup.sh engine postgres python nextest deny
tier lint scripts/lint.sh
tier build scripts/with-tools.sh cargo nextest run --locked --workspace --all-targets --no-run
tier unit nextest --workspace --lib --bins
tier integration nextest --workspace --exclude contextmeter --tests --no-tests=warn -E 'kind(test)'
tier docs cargo test --locked --workspace --doc --quiet
tier end-to-end nextest --package contextmeter -E 'kind(test)'

printf '\n== minutes\n'
printf '%s\n' "${tiers[@]}"
