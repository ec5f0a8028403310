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

# Threads that begin after the execve have rings that record at once. The program runs on after the snapshot.
mtbpf run -multi-thread -timeout 2s -o /tmp/m.fxt -- /build/programs/threads -scale small >/tmp/out 2>/tmp/err &
tool=$!
for _ in $(seq 300); do
	! grep -q '^the program runs on' /tmp/err || break
	sleep 0.1
done
kill "$(sed -n 's/^the program runs on as process \([0-9]*\);.*/\1/p' /tmp/err)" || fail "it does not run on: $(cat /tmp/err)"
wait "$tool"
threads=$(mtbpf decode /tmp/m.mtbpf -print branches | awk '{print $1}' | sort -u | wc -l)
[ "$threads" -ge 4 ] || fail "only $threads threads are in the trace: $(cat /tmp/err)"
