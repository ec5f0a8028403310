#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Generated Intel PT of real programs: libipt's block decoder sees every branch that we see, whatever
# packets tell the time, however returns are written, and around overflows.

load helpers

setup() {
	cd_root
	command -v qemu-x86_64 >/dev/null || skip "qemu-x86_64 is missing"
}

# expect_same OPTION... -- PROGRAM...
expect_same() {
	"$O/tests/ptgen/ptgen" -o "$BATS_TEST_TMPDIR/t.mtbpf" -instructions 3000000 "$@" \
		>"$BATS_TEST_TMPDIR/log" 2>&1 3>&-
	"$O/tests/oracle/compare" "$BATS_TEST_TMPDIR/t.mtbpf"
}

@test "a program that throws, TSC" {
	expect_same -timing tsc -psb-period 4K -- "$O/tests/ptgen/programs/cxx_service" -scale small
}

@test "signals, MTC" {
	expect_same -timing mtc -psb-period 4K -- "$O/tests/ptgen/programs/signals" -scale small
}

@test "threads, CYC" {
	expect_same -timing cyc -psb-period 4K -- "$O/tests/ptgen/programs/threads" -scale small
}

@test "tail calls, every return in full" {
	expect_same -no-ret-compression -psb-period 4K -- "$O/tests/ptgen/programs/tailcalls" -scale small
}

@test "a ring that wrapped" {
	expect_same -snapshot-size 64K -psb-period 2K -- "$O/tests/ptgen/programs/service" -scale small
}

@test "an interpreter, with overflows" {
	expect_same -overflow 20K -psb-period 4K -- "$(readlink -f /bin/bash)" -c \
		'for ((i = 0; i < 20000; i++)); do x=$((x + i)); done; echo $x'
}
