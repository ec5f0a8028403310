#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=slow
# run -full-execution: nothing is overwritten, however small what waits for the disk.
load ../helpers
load helpers

setup() {
	cd_root
	out=$BATS_TEST_TMPDIR
}

@test "the stepper: all of a program's calls, from its first instruction to its end" {
	"$mtbpf" run -full-execution -source soft -snapshot-size 16K -truth "$out/truth" -o "$out/r.fxt" -- \
		"$O/programs/service" -scale small -n 3 >"$out/said" 2>&1 || { cat "$out/said"; false; }
	cat "$out/said"
	grep -q 'recording everything to disk' "$out/said"
	grep -q 'the program has ended: all of it is recorded' "$out/said"
	grep -q 'no gaps$' "$out/said"
	# Many times what waits: without the disk it would be the last 16 KiB.
	[ "$(stat -c %s "$out/r.mtbpf/data")" -gt 100000 ]
	"$mtbpf" decode "$out/r.mtbpf" -print branches | awk '$3 == "call"' | wc -l >"$out/calls"
	grep -c ' call ' "$out/truth" >"$out/true_calls" || true
	echo "$(cat "$out/calls") calls, $(cat "$out/true_calls") were made"
	[ "$(cat "$out/true_calls")" -gt 1000 ]
	# A "call next; pop" is one that the truth does not count.
	[ $(($(cat "$out/calls") - $(cat "$out/true_calls"))) -ge 0 ]
	[ $(($(cat "$out/calls") - $(cat "$out/true_calls"))) -le 20 ]
	[ -z "$(find "$out" -name '.mtbpf-*')" ]
}

@test "the stepper: threads that the program starts, one of which executes another program" {
	"$mtbpf" run -full-execution -source soft -o "$out/r.fxt" -- "$O/programs/thread_exec-static" \
		>"$out/said" 2>&1 || { cat "$out/said"; false; }
	cat "$out/said"
	grep -q '2 threads, no gaps$' "$out/said"
	"$mtbpf" decode "$out/r.mtbpf" -format text >"$out/text"
	main=$(awk '$5 == "wait_for" { print $1 }' "$out/text")
	[ "$(awk '$5 == "after_exec" { print $1 }' "$out/text")" = "$main" ]
	thread=$(awk '$5 == "before_exec" { print $1 }' "$out/text")
	[ -n "$main" ] && [ -n "$thread" ] && [ "$thread" != "$main" ]
	# The calls that have not returned end at the execve, before the other program's first call.
	awk -v thread="$thread" '$1 == thread && $4 > end { end = $4 }
		$5 == "after_exec" { begin = $3 } END { exit !(end && end < begin) }' "$out/text"
}

@test "a disk that is full ends the recording, not the program" {
	mkdir -p "$out/small"
	mount -t tmpfs -o size=150k tmpfs "$out/small" 2>/dev/null || skip "no tmpfs may be mounted here"
	"$mtbpf" run -full-execution -source soft -snapshot-size 16K -o "$out/small/r.fxt" -- \
		"$O/programs/service" -scale small -n 3 >"$out/said" 2>&1 || true
	umount -l "$out/small"
	cat "$out/said"
	grep -q 'cannot write more of the trace: No space left on device' "$out/said"
	grep -q 'the program exited with status 0\|the program has ended' "$out/said"
}
