# SPDX-License-Identifier: MIT
# -multi-thread: every thread has a ring, a hit of any triggers; nothing is left behind.
# only: 6.1
. /tests/vm/lib.sh
need_pmu
start /build/programs/threads -scale small -pause 5ms -table-size 3000
sleep 0.5
must mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 60ms -timeout 30s -multi-thread \
	-o /tmp/t.fxt >/tmp/out 2>/tmp/err
cat /tmp/out
threads=$(mtbpf decode /tmp/t.mtbpf -print branches | awk '{print $1}' | sort -u | wc -l)
[ "$threads" -ge 4 ] || fail "only $threads threads are in the trace"
hit=$(sed -n 's/^hit .*thread \([0-9]*\):.*/\1/p' /tmp/out)
[ -n "$hit" ] && [ "$hit" != "$pid" ] || fail "no worker triggered"
grep -q ': 0 branches after the hit' /tmp/out || fail "the thread ran on after the hit"
[ -z "$(cat /sys/kernel/tracing/uprobe_events)" ] || fail "a probe is left"
must kill -0 "$pid"

# Killed with no chance to tidy up.
mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 100s -multi-thread -o /tmp/k.fxt 2>/tmp/err &
tool=$!
for _ in $(seq 100); do
	no_probe || break
	sleep 0.1
done
sleep 0.5
[ -n "$(cat /sys/kernel/tracing/uprobe_events)" ] || fail "there was no probe to begin with"
kill -9 "$tool"
for _ in $(seq 50); do
	no_probe && break
	sleep 0.1
done
[ -z "$(cat /sys/kernel/tracing/uprobe_events)" ] || fail "a probe is left after kill -9"
must kill -0 "$pid"
