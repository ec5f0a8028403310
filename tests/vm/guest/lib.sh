# SPDX-License-Identifier: MIT
# For the tests that run inside the VM: . /tests/vm/lib.sh
# shellcheck shell=bash
set -u
pids=()
trap 'for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

skip() {
	echo "skip: $*"
	exit 77
}

# must COMMAND...: the test fails where it does.
must() {
	"$@" || fail "$* (status $?)"
}

# Starts a program in the background; its pid is in $pid, and it does not outlive the test.
start() {
	"$@" >/dev/null 2>&1 &
	pid=$!
	pids+=("$pid")
	disown # no "Killed" in the results
	# Until it is the program, and not the shell that becomes it; where it is one, for a second.
	for _ in $(seq 50); do
		[ "$(readlink "/proc/$pid/exe")" = "$(readlink /proc/$$/exe)" ] || break
		sleep 0.02
	done
}

need_pmu() {
	[ -e /sys/bus/event_source/devices/intel_pt ] || skip "no intel_pt PMU: the module is not loaded"
}

# pt_record OPTION...: perf record of user code; -B, for reading every build id takes it seconds.
# MTC packets are of no use to perf where CPUID does not tell the crystal's ratio, and many.
pt_record() {
	perf record -q -B -e "${PT_EVENT:-intel_pt/mtc=0/u}" "$@"
}

# decodes FILE: the test fails where perf finds an error in the trace, or no instruction.
decodes() {
	perf script --itrace=i1000ie -F ip -i "$1" >decoded.txt 2>&1
	! grep 'trace error' decoded.txt || fail "perf cannot decode $1"
	grep -Eq '^ +[0-9a-f]+' decoded.txt || fail "perf finds no instruction in $1"
}

# How many instructions have been stepped.
steps() {
	cat /sys/module/softpt/parameters/steps
}

# Waits until something is stepped.
wait_for_steps() {
	local before
	for _ in $(seq 100); do
		before=$(steps)
		sleep 0.1
		[ "$(steps)" = "$before" ] || return 0
	done
	fail "no instruction is stepped"
}

# finish PID: ends a perf record and waits for it.
finish() {
	kill -INT "$1"
	for _ in $(seq 100); do
		[ -e "/proc/$1" ] || return 0
		sleep 0.1
	done
	fail "perf record does not end"
}

# True on kernels whose perf can pause an AUX event.
has_aux_pause() {
	[ "$(cat /sys/module/softpt/parameters/aux_pause 2>/dev/null)" = Y ]
}
