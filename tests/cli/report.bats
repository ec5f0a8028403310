#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mtbpf report and diff, of a recording and of the trace that was made of it.

load ../messages

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.."
	export O=$(realpath -m "${O:-build}")
	"$O/mtbpf" decode -q tests/golden/nest -o "$BATS_FILE_TMPDIR/t.fxt.zst" 2>/dev/null
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.."
	mtbpf=$O/mtbpf
	trace=$BATS_FILE_TMPDIR/t.fxt.zst
}

@test "a trace and its recording: the same hit, the same stacks" {
	run "$mtbpf" report "$trace"
	[ "$status" -eq 0 ]
	[[ "$output" = *"hit 1 of stop, thread 10101"*"looks back 131 ms: 59 slices, 1 thread"* ]]
	"$mtbpf" report -q -folded "$trace" | sort >"$BATS_TEST_TMPDIR/of_trace"
	"$mtbpf" report -q tests/golden/nest -folded 2>/dev/null | sort >"$BATS_TEST_TMPDIR/of_recording"
	grep -q '^nest;_start;begin;work;outer;leaf [1-9]' "$BATS_TEST_TMPDIR/of_trace"
	diff "$BATS_TEST_TMPDIR/of_trace" "$BATS_TEST_TMPDIR/of_recording"
}

@test "the next command, as it can be pasted" {
	run "$mtbpf" decode tests/golden/nest -o "$BATS_TEST_TMPDIR/a b'c.fxt"
	[ "$status" -eq 0 ]
	eval "set -- $(sed -n 's/^next: //p' <<<"$output")"
	[ $# -eq 3 ]
	[ "$2" = view ]
	run "$1" report "$3"
	[ "$status" -eq 0 ]
}

@test "the folded times add up to the thread's" {
	"$mtbpf" report -q -folded "$trace" | awk '{ sum += $NF } END { exit sum != 131303508 }'
}

@test "without a trigger that has a threshold there is nothing to compare" {
	run "$mtbpf" report -json "$trace"
	[ "$status" -eq 1 ]
	says no-report
	run "$mtbpf" diff "$trace" "$trace"
	[ "$status" -eq 1 ]
}

@test "what is asked for wrongly" {
	run "$mtbpf" report
	[ "$status" -eq 2 ]
	says report-which
	run "$mtbpf" diff "$trace"
	[ "$status" -eq 2 ]
	says expected-words diff 2 recording
	run "$mtbpf" report -json -folded "$trace"
	[ "$status" -eq 2 ]
	run "$mtbpf" report "$BATS_TEST_TMPDIR/none"
	[ "$status" -eq 2 ]
	[[ "$output" = *"hint: "* ]]
	run "$mtbpf" report README.md
	[ "$status" -ne 0 ]
	[[ "$output" = *"hint: "* ]]
}

# FXT's head, and a process; from others, or of a snapshot that Ctrl-C took.
@test "a trace without a hit: so it says" {
	printf '\x10\x00\x04\x46\x78\x54\x16\x00' >"$BATS_TEST_TMPDIR/t.fxt"
	run "$mtbpf" report "$BATS_TEST_TMPDIR/t.fxt"
	[ "$status" -eq 0 ]
	[[ "${lines[-1]}" = "no report: no hit "*-folded* ]]
	run "$mtbpf" report "$trace"
	! says no-report || false
}

@test "what has a trace's name, and is none" {
	echo '{"traceEvents":[]}' >"$BATS_TEST_TMPDIR/chrome.fxt"
	run "$mtbpf" report "$BATS_TEST_TMPDIR/chrome.fxt"
	[ "$status" -eq 2 ]
	complains not-fxt-in-spite "*chrome.fxt"
}

@test "a trace that was cut short is refused" {
	"$mtbpf" decode -q tests/golden/nest -o "$BATS_TEST_TMPDIR/t.fxt" 2>/dev/null
	truncate -s -8 "$BATS_TEST_TMPDIR/t.fxt"
	run "$mtbpf" report "$BATS_TEST_TMPDIR/t.fxt"
	[ "$status" -eq 1 ]
	complains damaged-trace
}

# Its slices stand in the file as they ended; many begin or end at one time.
@test "a trace that was written while it was decoded" {
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	cd "$BATS_TEST_TMPDIR"
	"$O/tests/ptgen/ptgen" -o r.mtbpf -timing tsc -tsc-interval 1ms -- \
		"$O/tests/ptgen/programs/throws" 13 >/dev/null
	"$mtbpf" decode -q r.mtbpf -o r.fxt
	"$mtbpf" report -q -folded r.fxt | sort >of_trace
	"$mtbpf" report -q -folded r.mtbpf | sort >of_recording
	[ "$(wc -l <of_trace)" -gt 100 ]
	diff of_trace of_recording
}
