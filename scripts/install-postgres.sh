#!/usr/bin/env bash
# Makes sure that a Postgres server's programs are there: tests start one of their own, nothing is left running.
set -euo pipefail
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && exit 0
command -v initdb >/dev/null && exit 0
command -v apt-get >/dev/null || { echo "install-postgres: install the Postgres server with your package manager" >&2; exit 1; }
sudo=
[[ $(id -u) -eq 0 ]] || sudo=sudo
echo "· installing postgresql (Debian packages)" >&2
$sudo apt-get update -qq
packages() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
# The server's package would start a cluster of its own; ours are started by the tests. The setting is a file of another
# package, which has to be there first.
packages postgresql-common
$sudo sed -i -E 's/^#?create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
packages postgresql
