# SPDX-License-Identifier: MIT
# Targets that exit, fork and exec while traced; two mtbpf at once; a ring that wraps; durations.
# only: 6.1
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 2ms
attach() {
	mtbpf attach -pid "$pid" -symbol one_iter -timeout 30s -o /tmp/l.fxt "$@" >/tmp/out 2>/tmp/err
}

attach -duration-thresh 15ms || fail "$(cat /tmp/err)"
grep -E '^(call|gaps)' /tmp/out
! grep -q '^gaps' /tmp/out || fail "gaps: the trampoline of the return probe is unknown"
attach -delay-thresh 20ms -snapshot-size 16K || fail "$(cat /tmp/err)"
! grep -q '^gaps' /tmp/out || fail "gaps in a wrapped ring"

mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 100s -o /tmp/a.fxt >/dev/null 2>&1 &
first=$!
sleep 1.5
attach -delay-thresh 20ms && fail "two at once on one thread"
cat /tmp/err
grep -q 'EBUSY\|in use' /tmp/err || fail "the second does not say why"
kill -INT "$first"
must wait "$first"
must test -s /tmp/a.fxt

start /build/programs/crash -scale small -n 600 -pause 5ms
attach -delay-thresh 100s || fail "$(cat /tmp/err)"
grep -q 'exited' /tmp/err || fail "its exit is not told: $(cat /tmp/err)"
must test -s /tmp/l.fxt

start /bin/busybox sh -c 'while :; do /bin/true; (exit 3); done'
mtbpf record -pid "$pid" -timeout 2s -o /tmp/f.mtbpf 2>/tmp/err; [ $? = 3 ] || fail "record: $(cat /tmp/err)"
must kill -0 "$pid"
