#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every bundle of `mtbpf selftest -bundle` that somebody sent is a test: the decoder judges it as it did there.

load ../helpers

setup() {
	bundles=$BATS_TEST_DIRNAME/../bundles
	command -v zstd >/dev/null || skip "zstd is missing"
}

# verdicts: of results, but for those that only a running target or an installed perf has.
verdicts() {
	grep -vE "target afterwards|perf's judgement" | sort
}

@test "selftest -replay judges every bundle of tests/bundles as the machine did that made it" {
	n=0
	for bundle in "$bundles"/*.tar.zst; do
		tar --zstd -xOf "$bundle" ./results.txt | cut -f 1-3 | verdicts >"$BATS_TEST_TMPDIR/was"
		"$O/mtbpf" selftest -replay "$bundle" -json >"$BATS_TEST_TMPDIR/json" || true
		python3 3>&- - "$BATS_TEST_TMPDIR/json" <<-EOF | verdicts >"$BATS_TEST_TMPDIR/is"
			import json, sys
			for r in json.load(open(sys.argv[1])):
			    print(r["source"], r["name"], r["verdict"], sep="\t")
		EOF
		[ "$(wc -l <"$BATS_TEST_TMPDIR/was")" -gt 5 ]
		# What was skipped there left no recording.
		grep -v 'skipped$' "$BATS_TEST_TMPDIR/was" | diff - "$BATS_TEST_TMPDIR/is"
		n=$((n + 1))
	done
	[ "$n" -ge 3 ]
}

@test "README's table of what has been proven where is that of the bundles: make proven" {
	"$bundles/proven" >"$BATS_TEST_TMPDIR/table"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/table")" -ge 5 ]
	sed '/^<!-- proven: begin/,/^<!-- proven: end/!d' "$bundles/../../README.md" | grep '^|' |
		diff - "$BATS_TEST_TMPDIR/table"
}

@test "a bundle has nothing of its machine but recordings, results and facts of CPU and kernel" {
	for bundle in "$bundles"/*.tar.zst; do
		[ -z "$(tar --zstd -tf "$bundle" | grep -vE '^\./($|(facts|results)\.txt$|[a-z_-]+\.(truth|log)$|[a-z_-]+\.mtbpf/)')" ]
		[ "$(stat -c %s "$bundle")" -lt 1500000 ]
	done
}
