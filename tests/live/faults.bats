#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=slow
# Allocations, files and writes that fail: tests/trust/faults, which `make trust` runs for captures as well.
load ../helpers
load ways_out

setup() {
	[ -e "${O:?}/tests/trust/fault.so" ] || skip "fault.so is not built (make tests)"
	started=()
}

teardown() {
	end_started
}

@test "decode: whatever fails, it ends with a line, and never by a signal" {
	skip_with_sanitizers # a preloaded library would have to be before theirs
	start spin "$BATS_TEST_TMPDIR/speed"
	"$O/mtbpf" record -q -source soft -pid "${started[0]}" -symbol one_iter -after 300ms -timeout 20s \
		-o "$BATS_TEST_TMPDIR/r.mtbpf"
	end_started
	run "$BATS_TEST_DIRNAME/../trust/faults" -every "${EVERY:-1}" decode "$BATS_TEST_TMPDIR/r.mtbpf"
	echo "$output"
	[ "$status" -eq 0 ]
	# It has failed where it was told to.
	[[ "$output" =~ memory\ +decode\ +([0-9]+)\ runs:\ ([0-9]+)\ failed ]]
	[ "${BASH_REMATCH[1]}" -gt 20 ] && [ "${BASH_REMATCH[2]}" -gt 5 ]
}
