# SPDX-License-Identifier: MIT
# For the tests that run inside the VM: . /tests/vm/lib.sh
# shellcheck shell=bash
set -u
# GNU's tools read what perf and the kernel print several times faster than busybox does.
export PATH=/gnu:$PATH
pids=()
# What a test sets up beyond processes, it takes away in this.
clean_up() { :; }
trap 'clean_up; for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done' EXIT

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
	for _ in {1..50}; do
		[ "/proc/$pid/exe" -ef "/proc/$$/exe" ] || break
		sleep 0.02
	done
}

# A test that says something of kernels that are too old for mtbpf sets takes_any_kernel before it is here.
[[ $(uname -r) != [1-5].* ]] || [ -n "${takes_any_kernel:-}" ] || skip "mtbpf does not work on Linux $(uname -r)"

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
	local n
	read -r n </sys/module/softpt/parameters/steps
	echo "$n"
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

# needs_pauses ARGS: a kernel that cannot resume Intel PT refuses these regions of $pid, and the test ends there.
needs_pauses() {
	has_aux_pause && return
	mtbpf attach -pid "$pid" "$@" -timeout 1s -o /tmp/x.fxt 2>/tmp/err
	[ $? -eq 2 ] || fail "a kernel that cannot resume is no reason to refuse: $(cat /tmp/err)"
	grep -q 'cannot resume Intel PT' /tmp/err || fail "it does not say why: $(cat /tmp/err)"
	exit 0
}

# attach_regions NAME OUTSIDE ARGS: the summary is in $out, and the calls are in /tmp/NAME.text. Functions that match
# OUTSIDE run between regions, and are not in the trace.
attach_regions() {
	local name=$1 outside=$2
	shift 2
	out=$(mtbpf attach -pid "$pid" -timeout 60s -o "/tmp/$name.fxt" "$@" 2>/tmp/err) ||
		fail "attach $*: status $? $(cat /tmp/err)"
	grep -E '^(hit|frozen|gaps|not recorded)' <<<"$out"
	! grep -q '^gaps' <<<"$out" || fail "gaps"
	mtbpf decode "/tmp/$name.mtbpf" -format text >"/tmp/$name.text"
	! grep -Eq " ($outside)\$" "/tmp/$name.text" || fail "what follows the stop is in the trace"
}

# begin GROUP PROGRAM...: starts a sample program in a cgroup, by its directory.
begin() {
	start bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$@" -scale small
}

# True with run's -all: each kernel shows everything then.
shows_all() {
	grep -qw 'vm\.all' /proc/cmdline
}

# shown_by SERIES: true on the kernel that shows what does not depend on the kernel, and on each with run's -all.
shown_by() {
	[[ $(uname -r) == "$1".* ]] || shows_all
}

# True where no probe is left in tracefs.
no_probe() {
	! read -r _ </sys/kernel/tracing/uprobe_events
}

# wait_for PATTERN FILE: for twenty seconds and more, until the file matches; each of its lines follows a newline. Without
# a program: to run one takes a twentieth of a second here, which what it waits for does not get.
wait_for() {
	local text=
	for _ in {1..200}; do
		[ ! -e "$2" ] || read -r -d '' text <"$2"
		[[ ! $'\n'$text =~ $1 ]] || return 0
		sleep 0.1
	done
	return 1
}

# Where the program's own code is in a process: "PID START END".
code_of() {
	awk -v pid="$1" '$2 ~ /x/ && /programs\// { split($1, at, "-"); print pid, at[1], at[2] }' "/proc/$1/maps"
}

# read_by_perf NAME: perf decodes NAME.mtbpf without an error; all that it prints is in NAME.all ("PID/TID [CPU] TIME:
# EVENT: ..."), the branches in NAME.txt, their processes in $seen.
# An end has the time of the interrupt's return here, when somebody else may be on already.
read_by_perf() {
	perf script -i "$1.mtbpf" --itrace=be --ns -F pid,tid,cpu,time,event,ip,flags >"$1.all" 2>"$1.err"
	! grep -qi error "$1.all" "$1.err" || fail "perf: $(grep -hi error "$1.all" "$1.err" | head -3)"
	awk '$1 ~ /^[0-9]+\/[0-9]+$/ && !/ tr end / {
		split($1, id, "/")
		for (i = 2; i <= NF; i++) if ($i ~ /^[0-9a-f]+$/ && length($i) > 5) {
			print id[1], id[2], $i; next } }' "$1.all" >"$1.txt"
	seen=$(awk '{ print $1 }' "$1.txt" | sort -u | tr '\n' ' ')
	echo "$1: processes $seen: $(wc -l <"$1.txt") branches of $(awk '{ print $2 }' "$1.txt" | sort -u | wc -l) threads"
}

# same_branches RECORDING: perf finds the same near branches at the same times, to the nanosecond; they are in /tmp/ours
# and /tmp/perf. A recording for which that is not so is kept.
same_branches() {
	perf script -i "$1" --itrace=be --ns -F time,flags,ip,addr >/tmp/perf.all 2>/tmp/errors
	! grep -qhi error /tmp/perf.all /tmp/errors || fail "$1: perf: $(grep -hi error /tmp/perf.all /tmp/errors | head -3)"
	mtbpf decode "$1" -print branches 2>/dev/null | awk '$3 ~ /^(call|return|jcc|jmp)$/ { print $2, $3, $4, $5 }' >/tmp/ours
	awk '$2 ~ /^(call|return|jcc|jmp)$/ {
		gsub("[.:]", "", $1)
		for (to = 4; $to != "=>" && to < NF; to++)
			;
		sub("^0+", "", $1)
		print $1, $2, $3, $(to + 1) }' /tmp/perf.all >/tmp/perf
	[ -s /tmp/ours ] && cmp -s /tmp/ours /tmp/perf && return
	cp -r "$1" /tmp/ours /tmp/perf /out
	fail "$1: ours and perf's branches: $(diff /tmp/ours /tmp/perf | head -6)"
}

# in_their_code NAME PID...: no branch of one process is in the code of another.
in_their_code() {
	local name=$1
	shift
	for p; do code_of "$p"; done >ranges
	awk 'NR == FNR { from[$1] = $2; to[$1] = $3; next }
		{ at = sprintf("%16s", $3)
		for (p in from) if (at >= sprintf("%16s", from[p]) && at < sprintf("%16s", to[p])) {
			if (p == $1) right++; else { wrong++; print "wrong:", $0, "is in", p } } }
		END { print right + 0, "in their code"; exit wrong > 0 || right < 100 }' ranges "$name.txt" >judged ||
		fail "$name: $(tail -5 judged)"
	tail -1 judged
}

# live_test FILE [FILTER]: the tests of tests/live/FILE.bats whose names match, as they run outside. They take
# longer here, and so have more time.
live_test() {
	command -v bats >/dev/null || skip "bats is not installed where the image was made"
	(
		export LIMIT=100 O=/build
		cd / && timeout "${3:-200}" bats --tap -f "${2:-.}" "/tests/live/$1.bats"
	) >/tmp/live.tap 2>&1
	status=$?
	cat /tmp/live.tap
	[ "$status" = 0 ] || fail "tests/live/$1.bats: status $status"
	grep -q '^ok' /tmp/live.tap || fail "no test of tests/live/$1.bats has run"
}
