#!/usr/bin/env bash
# A long campaign of the durability test: more kills, other seeds. Every seed is printed and replays with SEED=….
# usage: scripts/soak.sh [ROUNDS]   (default 5 rounds of 12 kills)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
for ((round = 1; round <= rounds; round++)); do
  seed=${SEED:-$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')}
  printf '\n== round %d of %d: SEED=%s\n' "$round" "$rounds" "$seed"
  SEED=$seed KILLS=${KILLS:-12} scripts/with-tools.sh cargo nextest run --locked --package contextmeter \
    --no-capture -E 'test(g1_what_was_acknowledged)'
done
