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
	grep -vE "target afterwards|perf's judgement|perf trace" | sort
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

# add FILE: it, where it is, and what it is linked with, into the folder "clean".
add() {
	local file
	for file in "$1" $(ldd "$1" | grep -o '/[^ ]*'); do
		mkdir -p "clean$(dirname "$file")"
		cp -L "$file" "clean$file"
	done
}

@test "selftest -replay on a machine that has nothing but mtbpf, tar and zstd: the same verdicts" {
	[ "$(id -u)" = 0 ] || skip "needs root for chroot"
	cd "$BATS_TEST_TMPDIR"
	add "$(command -v tar)"
	add "$(command -v zstd)"
	add "$(realpath "$O/mtbpf")"
	mkdir -p clean/tmp && chmod 1777 clean/tmp
	cp "$bundles"/*.tar.zst clean/
	chmod 644 clean/*.tar.zst
	find clean/tmp >had # mtbpf itself, if the project is below /tmp
	for bundle in "$bundles"/*.tar.zst; do
		tar --zstd -xOf "$bundle" ./results.txt | cut -f 1-3 | verdicts | grep -v 'skipped$' >was
		# Nobody, without /proc, /sys and /dev.
		env -i PATH="$PATH:/usr/sbin" \
			chroot --userspec=65534:65534 clean "$(realpath "$O/mtbpf")" selftest -replay "/${bundle##*/}" >is 2>err || true
		[ ! -s err ] || { cat err && false; }
		# "sample  sleep, fp                 ok       ...": in columns.
		sed -En 's/^(pt|sample|soft) +(.*[^ ])  +(ok|failed)  .*/\1\t\2\t\3/p' is | verdicts | diff was -
	done
	find clean/tmp | diff had -
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
		[ "$(stat -c %s "$bundle")" -lt 2000000 ]
	done
}

# later FILE FUNCTION: the second note of this function is 30 ms later than it was.
later() {
	awk -v f="mtbpf_selftest_$2" '$4 == f && ++n == 2 { $1 = sprintf("%d", $1 + 30000000) } { print }' "$1" >"$1.new"
	mv "$1.new" "$1"
}

@test "selftest -replay: checks of samples fail if the programs' own clock tells other times" {
	cd "$BATS_TEST_TMPDIR"
	mkdir content
	tar --zstd -C content -xf "$bundles/sample.tar.zst"
	for function in time_long time_short time_sleep; do
		later content/sample-fp.truth "$function"
	done
	tar --zstd -C content -cf changed.tar.zst .
	run "$O/mtbpf" selftest -replay changed.tar.zst
	[ "$status" -eq 1 ]
	for check in "long call, fp" "short call, fp" "sleep, fp"; do
		grep -E "^sample +$check +failed " <<<"$output"
	done
	for check in "long call, dwarf" "short call, dwarf" "sleep, dwarf"; do
		grep -E "^sample +$check +ok " <<<"$output"
	done
	[[ $output == *"effect: how long functions took is wrong"*"; until fixed: try the other -unwind"* ]]
	run "$O/mtbpf" selftest -replay changed.tar.zst -only "sleep, dwarf"
	[ "$status" -eq 0 ]
	[[ $output == *"1 passed, 0 failed, 0 skipped" ]]
}

@test "selftest -replay warns of a bundle that an older or a newer mtbpf has made" {
	cd "$BATS_TEST_TMPDIR"
	mkdir content
	tar --zstd -C content -xf "$bundles/sample.tar.zst"
	for version in 0.0.1:older 99.0.0:newer; do
		sed -i "s/^mtbpf: .*/mtbpf: ${version%:*}/" content/facts.txt
		tar --zstd -C content -cf changed.tar.zst .
		run "$O/mtbpf" selftest -replay changed.tar.zst -only "sleep, dwarf"
		[ "$status" -eq 0 ]
		[[ $output == *"warning: the bundle is of mtbpf ${version%:*}, which is ${version#*:} than this one"* ]]
	done
	sed -i '/^mtbpf:/d' content/facts.txt
	tar --zstd -C content -cf changed.tar.zst .
	run "$O/mtbpf" selftest -replay changed.tar.zst -only "sleep, dwarf"
	[[ $output == *"the bundle does not tell which version"* ]]
	# An untrusted one, without recordings.
	rm -r content/*
	tar --zstd -C content -cf empty.tar.zst .
	run "$O/mtbpf" selftest -replay empty.tar.zst
	[ "$status" -eq 1 ]
	complains nothing-tested
}
