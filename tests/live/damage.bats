#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Intel PT that is damaged: mtbpf finds as much of what was there as perf, and as little that was not.
load ../helpers
load helpers

setup() {
	cd_root
	command -v qemu-x86_64 >/dev/null || skip "qemu-x86_64 is missing (package qemu-user)"
	command -v python3 >/dev/null || skip "python3 is missing"
	why=$(why_no_perf)
	[ -z "$why" ] || skip "perf does not judge: $why"
}

@test "flipped, lost and random bytes, cut streams, missing files, overflows" {
	run tests/oracle/damage -short
	echo "$output"
	[ "$status" -eq 0 ]
	# Of three sources, or of two where there is no recording of a real CPU.
	[[ ${lines[-1]} =~ ^(2[4-9]|3[0-9])' cases, mtbpf worse than perf in 0'$ ]]
}

@test "values of PTWRITE, power events and Event Trace are those that perf decodes" {
	run tests/oracle/events
	echo "$output"
	[ "$status" -eq 0 ]
}

# What the judge finds is not always the same: with most of the stream overwritten both find little.
@test "the judge sees what is lost" {
	run tests/oracle/damage -short "service:1 byte flipped" "service:5 x 200 bytes of garbage"
	echo "$output"
	[ "$status" -eq 0 ]
	awk '$2 == "1" { few = $7 } $2 == "5" { many = $10 } END { exit !(many < 0.9 * few) }' <<<"$output"
}
