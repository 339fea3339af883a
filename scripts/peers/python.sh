#!/usr/bin/env bash
# Python with the official clients, in a virtual environment of their own: scripts/peers/python.sh SCRIPT [ARGUMENT…]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=${CONTEXTMETER_TOOLS:-$root/.tools}
CLIENTS=(clickhouse-connect==1.12.0 lz4==4.4.5 zstandard==0.25.0 stripe==16.1.0)

venv=$tools/peers
if [[ $(cat "$venv/.clients" 2>/dev/null) != "${CLIENTS[*]}" ]]; then
    mkdir -p "$tools"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${CLIENTS[@]}"
    printf '%s\n' "${CLIENTS[*]}" >"$venv/.clients"
fi
exec "$venv/bin/python" "$@"
