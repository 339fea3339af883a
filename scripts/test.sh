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
tier unit nextest --workspace --all-targets -E 'kind(lib) or kind(bin)'
# One selection of packages for all tiers: another one would build every dependency with other features, anew.
tier integration nextest --workspace --all-targets -E 'kind(test) and not package(contextmeter)'
tier docs cargo test --locked --workspace --doc --quiet
tier end-to-end nextest --workspace --all-targets -E 'kind(test) and package(contextmeter)'

printf '\n== minutes\n'
printf '%s\n' "${tiers[@]}"
