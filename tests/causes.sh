#!/bin/bash
# SPDX-License-Identifier: MIT
# Does the report name the cause? Five services at native speed, each slow for one planted reason once in a
# hundred iterations; so many captures of each (20), and what the line "reason:" says of them.
#
#   tests/causes.sh [RUNS]
#
# What else the machine does is a cause too: the service comes first (SCHED_FIFO), and the one whose cause is
# who else runs comes first together with these.
set -u
O=$(realpath -m "${O:-$(dirname "$0")/../build}")
runs=${1:-20}
work=$(mktemp -d) || exit 1
service=
cleanup() {
	[ -z "$service" ] || { kill "$service" && wait "$service"; } 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

[ "$(id -u)" = 0 ] || { echo "causes: needs root, for the probe" >&2; exit 1; }

# start CAUSE: its pid is $service
start() {
	local alone=(chrt -f 10) i
	[ "$1" = hog ] && alone=(setsid sh -c 'echo -19 2>/dev/null >/proc/self/autogroup; exec nice -n -19 "$@"' sh)
	rm -f "$work/out"
	timeout -k 5 60 "${alone[@]}" "$O/programs/causes" "$1" >"$work/out" &
	service=$!
	for ((i = 0; i < 250; i++)); do
		grep -qs '^pid ' "$work/out" && break
		sleep 0.02
	done
	pid=$(sed -n 's/^pid //p' "$work/out")
}

stop() {
	kill "$service" 2>/dev/null
	wait "$service" 2>/dev/null
	service=
}

# reason CAUSE: of one capture
reason() {
	start "$1"
	timeout -k 5 40 "$O/mtbpf" attach -source sample -pid "$pid" -symbol one_iter \
		-duration-thresh 20ms -timeout 20s -o "$work/trace.fxt" >"$work/log" 2>&1
	stop
	sed -n 's/^reason: //p' "$work/log"
}

# count CAUSE EXPECTED: a row of the table; what it said instead, where that was something else
count() {
	local right=0 said example=
	for ((i = 0; i < runs; i++)); do
		said=$(reason "$1")
		if [[ $said =~ $2 ]]; then
			((++right))
			example=$said
		else
			echo "# $1: ${said:-$(grep '^mtbpf:' "$work/log" || echo no reason)}" >&2
		fi
	done
	printf '%-8s %3d of %3d  %s\n' "$1" "$right" "$runs" "$example"
	[ "$right" -eq "$runs" ] || failed=1
}

failed=0
count branch '^on the CPU, in .*(slow_branch|work_us|clock_gettime);'
count lock '^blocked in .*: futex held by helper \([0-9]+\), woken by helper '
count read '^blocked in .*: read of pipe:\[[0-9]+\] \(fd [0-9]+\), woken by helper '
count faults '^[0-9]{4,} page faults \([0-9]+ in an ordinary iteration\), in .*touch_pages;'
count hog '^ready to run, but its CPU was taken, by (.*, )?hog '
exit "$failed"
