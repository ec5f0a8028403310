#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The copy of the stack in a recording: perf unwinds it, and it is only there where it was wanted.

load helpers

setup() {
	cd_root
	[ "$(id -u)" = 0 ] || skip "needs root for the probe"
	SECRET_OF_THE_TEST=do-not-tell start_program nofp
}

teardown() {
	stop_program
}

# hit NAME OPTION...: records $pid up to its next hit
hit() {
	local name=$1
	shift
	timeout 60 "$mtbpf" record -source soft -pid "$pid" -symbol one_iter -timeout 30s \
		-o "$recordings/$name.mtbpf" "$@" >"$recordings/$name.log" 2>&1 3>&- ||
		{ cat "$recordings/$name.log"; return 1; }
}

# perf_callers NAME: the names at the hit, the innermost first
perf_callers() {
	perf script -i "$recordings/$1.mtbpf" --no-itrace --no-inline -F ip,sym 2>/dev/null 3>&- |
		awk 'NF > 1 { print $2 }'
}

@test "perf unwinds a hit to _start, without frame pointers" {
	[ -z "$(why_no_perf)" ] || skip "$(why_no_perf)"
	hit whole
	perf_callers whole >"$recordings/callers"
	cat "$recordings/callers"
	[ "$(head -7 "$recordings/callers" | tr '\n' ' ')" = \
		"one_iter visit relay_inner relay_outer handle serve main " ]
	[ "$(tail -1 "$recordings/callers")" = _start ]
}

@test "without a copy perf shows what frame pointers give" {
	[ -z "$(why_no_perf)" ] || skip "$(why_no_perf)"
	hit chain -no-stack-copy
	perf_callers chain >"$recordings/callers"
	cat "$recordings/callers"
	[ "$(head -2 "$recordings/callers" | tr '\n' ' ')" = "one_iter visit " ]
	[ -z "$(grep main "$recordings/callers")" ]
}

@test "a recording holds memory of the program only with a copy of its stack" {
	hit much -stack-copy 60K
	grep -q do-not-tell "$recordings/much.mtbpf/data"
	hit nothing -no-stack-copy
	[ -z "$(grep -rl do-not-tell "$recordings/nothing.mtbpf")" ]
	hit zero -stack-copy 0
	[ -z "$(grep -rl do-not-tell "$recordings/zero.mtbpf")" ]
}
