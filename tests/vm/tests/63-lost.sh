# SPDX-License-Identifier: MIT
# What the kernel says it lost is a gap in the trace, in the recording too, and perf sees it there.
# only: 6.1 newest
. /tests/vm/lib.sh
need_pmu
partial=/sys/module/softpt/parameters/partial
echo N >$partial
start /build/programs/service -scale small
sleep 0.2
kill -STOP "$pid"
: >/tmp/err
mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 100s -timeout 60s \
	-timer-resolution custom:noretcomp -o /tmp/l.fxt \
	>/tmp/out 2>/tmp/err &
tool=$!
wait_for $'\nwaiting' /tmp/err
# Little runs, since perf takes its time to dump it all.
runs_a_while() {
	kill -CONT "$pid"
	wait_for_steps
	sleep 0.1
}
runs_a_while
echo Y >$partial
# Off the CPU, which ends the trace, and on.
kill -STOP "$pid"
sleep 0.1
runs_a_while
kill -STOP "$pid"
# "Now."
kill -INT "$tool"
wait "$tool"
kill -CONT "$pid"
cat /tmp/out
grep -q '^gaps: 1 (lost)' /tmp/out || fail "no gap: $(cat /tmp/out /tmp/err)"
mtbpf decode /tmp/l.mtbpf -print branches >/tmp/branches
[ "$(grep -c ' gap .* lost$' /tmp/branches)" = 1 ] || fail "not one gap among the branches"
# Tracing went on behind it.
grep -A1 ' gap ' /tmp/branches | tail -1 | grep -q ' begin ' || fail "nothing follows the gap"
perf script -i /tmp/l.mtbpf -D >/tmp/dump 2>/dev/null
grep -q 'PERF_RECORD_AUX.*flags: 0x4' /tmp/dump || fail "perf does not see it"
must kill -0 "$pid"
