# SPDX-License-Identifier: MIT
# run: a program on Intel PT from its execve on, to a trigger and to its end.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
mtbpf run -symbol one_iter -delay-thresh 20ms -timeout 40s -o /tmp/r.fxt -- \
	/build/programs/service -scale small -n 200 >/tmp/out 2>/tmp/err || fail "status $? $(cat /tmp/err)"
grep -E '^(hit|frozen|gaps)' /tmp/out
grep -q ': 0 branches after the hit' /tmp/out || fail "not frozen at the hit"
! grep -q '^gaps' /tmp/out || fail "gaps"
mtbpf run -o /tmp/t.fxt -- /bin/true >/tmp/out 2>/tmp/err || fail "true: status $? $(cat /tmp/err)"
! grep -q '^gaps' /tmp/out || fail "gaps: $(cat /tmp/out)"
mtbpf decode /tmp/t.mtbpf -print calls | grep -q '\[busybox\|\[true\|_start' || fail "true's own code is not in the trace"

# A thread that began after the execve triggers, and its own ring has recorded it. The program runs on after that.
mtbpf run -multi-thread -symbol one_iter -delay-thresh 60ms -timeout 60s -o /tmp/m.fxt -- \
	/build/programs/threads -scale small -pause 5ms -table-size 3000 >/tmp/out 2>/tmp/err &
tool=$!
for _ in {1..4}; do
	! wait_for $'\nthe program runs on' /tmp/err || break
done
program=$(sed -n 's/^the program runs on as process \([0-9]*\);.*/\1/p' /tmp/err)
kill "$program" || fail "it does not run on: $(cat /tmp/err)"
wait "$tool"
hit=$(sed -n 's/^hit .*thread \([0-9]*\):.*/\1/p' /tmp/out)
[ -n "$hit" ] && [ "$hit" != "$program" ] || fail "no worker triggered: $(cat /tmp/out /tmp/err)"
mtbpf decode /tmp/m.mtbpf -print branches | awk '{print $1}' | sort -u | grep -qx "$hit" ||
	fail "thread $hit is not in the trace: $(cat /tmp/out)"
