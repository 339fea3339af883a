#!/usr/bin/env bash
# Runs programs that were not written for us against our stand-ins (`make peers`):
#   clickhouse          the official Rust client's own integration tests, against the embedded engine
#   clickhouse-connect  the official Python client: inserts and selects in each of its compressions
#   stripe              the official Python client, against the Stripe sandbox
# Everything is fetched by name and version through cargo and pip, and kept below target/peers and .tools.
#
#   scripts/peers/run.sh [clickhouse|clickhouse-connect|stripe]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
work=$repository/target/peers
cd "$repository"

fail() {
    printf 'peers: %s\n' "$*" >&2
    exit 1
}

engine_pid=
engine_data=
stop_engine() {
    if [[ -n $engine_pid ]]; then
        kill "$engine_pid" 2>/dev/null || true
        wait "$engine_pid" 2>/dev/null || true
    fi
    if [[ -n $engine_data ]]; then rm -rf "$engine_data"; fi
}
trap stop_engine EXIT

start_engine() {
    [[ -z $engine_pid ]] || return 0
    scripts/install-engine.sh
    cargo build --quiet --locked --package clickhouse-embedded --example engine
    # The official suite has this address written into it.
    if (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null; then
        fail "something listens on 127.0.0.1:8123 already"
    fi
    local log=$work/engine.log tries
    engine_data=$(mktemp -d "$work/data.XXXXXX")
    # It ends when its standard input does, so that it never outlives this script. Cargo replaces itself by it.
    # shellcheck disable=SC2034  # its input is held open by being there
    coproc ENGINE {
        exec cargo run --quiet --locked --package clickhouse-embedded --example engine -- "$engine_data" 127.0.0.1:8123 2>"$log"
    }
    # shellcheck disable=SC2154,SC2153  # coproc sets it
    engine_pid=$ENGINE_PID
    for ((tries = 0; tries < 300; tries++)); do
        if grep -q '127.0.0.1:8123' "$log" 2>/dev/null; then return 0; fi
        kill -0 "$engine_pid" 2>/dev/null || fail "the engine did not start: $(cat "$log")"
        sleep 0.1
    done
    fail "the engine did not start within 30 s: $(cat "$log")"
}

# The crate that the workspace uses, as cargo unpacked it, with its own lock file. Three test modules cannot run here and
# are left out: `arrow` wants a crate of the client's workspace that is not published with it; `cloud_jwt` and
# `https_errors` want a cloud account, and pass without testing anything where there is none. So are the benchmarks and
# examples, and with all of them the dependencies that nothing else needs.
fetch_client() {
    local manifest
    manifest=$(cargo metadata --quiet --locked --format-version 1 | python3 -c 'import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "clickhouse"))')
    rm -rf "$work/clickhouse"
    cp -r "$(dirname "$manifest")" "$work/clickhouse"
    chmod -R u+w "$work/clickhouse"
    rm -f "$work/clickhouse"/rust-toolchain* # ours applies
    awk '
        /^\[/ { skip = ($0 ~ /^\[dev-dependencies\.(arrow|arrow-schema|criterion|opentelemetry.*|tracing-opentelemetry|trybuild)\]/ ||
                        $0 ~ /^\[\[(bench|example|test)\]\]/) }
        !skip
    ' "$work/clickhouse/Cargo.toml" >"$work/clickhouse/Cargo.new"
    printf '\n[[test]]\nname = "it"\npath = "tests/it/main.rs"\n\n[workspace]\n' >>"$work/clickhouse/Cargo.new"
    mv "$work/clickhouse/Cargo.new" "$work/clickhouse/Cargo.toml"
    sed -i -E '/^mod (arrow|cloud_jwt|https_errors);$/d' "$work/clickhouse/tests/it/main.rs"
}

run_client() {
    local log=$work/clickhouse.log
    local suite=(env RUSTFLAGS="-A warnings" RUST_BACKTRACE=0 cargo test --manifest-path "$work/clickhouse/Cargo.toml"
        --target-dir "$work/target" --test it --features "inserter,uuid,time,chrono,zstd,lz4,test-util")
    fetch_client
    start_engine
    printf "peers: the official Rust client's own tests (log: %s)\n" "${log#"$repository"/}"
    "${suite[@]}" --quiet --no-run || fail "the suite does not build"
    # Failed tests are judged below, against the list of those that are expected. One test counts the rows that arrive
    # before a limit of 0.1 s, with 10 ms to spare: it runs alone, as load would decide it.
    local timed=cursor_error::wait_end_of_query
    {
        "${suite[@]}" -- --test-threads 4 --skip "$timed" || true
        "${suite[@]}" -- --exact "$timed" || true
    } >"$log" 2>&1
    python3 "$here/compare.py" "$log" "$here/clickhouse-client.expected"
}

run_connect() {
    start_engine
    "$here/python.sh" "$here/connect.py"
}

mkdir -p "$work"
case ${1:-all} in
    clickhouse) run_client ;;
    clickhouse-connect) run_connect ;;
    stripe) "$here/stripe.sh" ;;
    all)
        "$here/stripe.sh"
        run_connect
        run_client
        ;;
    *) fail "usage: scripts/peers/run.sh [clickhouse|clickhouse-connect|stripe]" ;;
esac
