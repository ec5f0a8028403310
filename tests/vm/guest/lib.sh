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
}

need_pmu() {
	[ -e /sys/bus/event_source/devices/intel_pt ] || skip "no intel_pt PMU: the module is not loaded"
}

# True on kernels whose perf can pause an AUX event.
has_aux_pause() {
	[ "$(cat /sys/module/softpt/parameters/aux_pause 2>/dev/null)" = Y ]
}
