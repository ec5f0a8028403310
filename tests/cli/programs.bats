# SPDX-License-Identifier: MIT
# The sample programs keep the promises that the other tests rely on.

setup() {
	programs=${O:?}/programs
	[ -x "$programs/service" ] || skip "the sample programs are not built"
}

@test "each sample says its pid, then is quiet, and ends well at SIGTERM" {
	for name in service cxx_service threads signals tailcalls; do
		"$programs/$name" -scale small >"$BATS_TEST_TMPDIR/$name" 3>&- &
		pid=$!
		for _ in {1..100}; do
			[ -s "$BATS_TEST_TMPDIR/$name" ] && break
			sleep 0.05
		done
		sleep 0.1
		kill "$pid"
		wait "$pid"
		[ "$(cat "$BATS_TEST_TMPDIR/$name")" = "pid $pid" ]
	done
}

@test "-n ends a sample after so many iterations" {
	for name in service cxx_service threads signals tailcalls; do
		run timeout 60 "$programs/$name" -scale small -n 110 -times
		[ "$status" -eq 0 ]
		[[ ${lines[1]} == "iterations 110: "* ]]
	done
}

@test "crash ends with a segmentation fault, with -exit by exit()" {
	run "$programs/crash" -scale small
	[ "$status" -eq 139 ]
	run "$programs/crash" -scale small -exit
	[ "$status" -eq 7 ]
}

@test "every sample has one_iter, and functions under their own names" {
	for name in service cxx_service threads signals tailcalls crash; do
		run nm "$programs/$name"
		[[ $output == *" T one_iter"* ]]
		[[ $output != *" T "*.isra.* && $output != *" T "*.constprop.* ]]
	done
	[[ "$(nm "$programs/tailcalls")" == *" t use_index.cold"* ]]
}

@test "a wrong option gets the usage and status 2" {
	run "$programs/service" -scale huge
	[ "$status" -eq 2 ]
	[[ $output == *usage:* ]]
	run "$programs/service" -pause 1parsec
	[ "$status" -eq 2 ]
	run "$programs/service" -n
	[ "$status" -eq 2 ]
}
