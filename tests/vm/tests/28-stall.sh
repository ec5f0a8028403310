# SPDX-License-Identifier: MIT
# -stall-thresh: the clock that looks at open calls, and the iterator that says where threads are, on this kernel.
# only: 6.1 newest
. /tests/vm/lib.sh
start /build/programs/stalls deadlock
mtbpf record -source sample -pid "$pid" -symbol transfer -stall-thresh 500ms -timeout 60s -o /tmp/x.mtbpf >/tmp/log 2>&1 &
waiting=$!
wait_for 'waiting for a thread' /tmp/log
sleep 0.5
kill -USR1 "$pid"
wait "$waiting" || fail "status $? $(cat /tmp/log)"
mtbpf report /tmp/x.mtbpf >/tmp/report || fail "no report"
grep -E '^(thread|deadlock)' /tmp/report
grep -Eq '^thread [0-9]+ has been in call [0-9]+ of transfer for .*, and still is, threshold 500 ms' /tmp/report ||
	fail "not the stall: $(cat /tmp/report)"
grep -Eq '^deadlock: thread ([0-9]+) waits for a mutex held by thread ([0-9]+), which waits for one held by thread \1$' /tmp/report ||
	fail "the deadlock is not named: $(cat /tmp/report)"
grep -Eq 'waits in pause: .*main' /tmp/report || fail "the main thread is not where it waits: $(cat /tmp/report)"

# A process that is stopped is in its call for as long as it likes.
start /build/programs/stalls read
mtbpf record -source sample -pid "$pid" -symbol request_begin -delay-thresh 1000s -stall-thresh 2s -timeout 6s \
	-o /tmp/y.mtbpf >/tmp/log 2>&1 &
waiting=$!
wait_for 'also waiting for' /tmp/log
kill -STOP "$pid"
sleep 3.5
kill -CONT "$pid"
wait "$waiting"
[ $? -eq 3 ] || fail "a stopped process has triggered: $(cat /tmp/log)"

# The time off the CPU, and arguments, are known on this kernel as well.
start /build/programs/cputime
mtbpf attach -source sample -pid "$pid" -symbol handle -off-cpu-thresh 28ms -if '(int)arg1 != 1' -timeout 60s -o /tmp/z.fxt \
	>/tmp/out 2>/tmp/log || fail "status $? $(cat /tmp/log)"
grep -E '^call' /tmp/out
grep -Eq '^call [0-9]+ of handle, .* of it off the CPU, threshold 28.0 ms off the CPU' /tmp/out || fail "$(cat /tmp/out)"

# Intel PT is frozen by user space, which hears of the stall.
need_pmu
start /build/programs/stalls deadlock
mtbpf record -source pt -multi-thread -pid "$pid" -symbol transfer -stall-thresh 500ms -timeout 60s -o /tmp/p.mtbpf >/tmp/log 2>&1 &
waiting=$!
wait_for 'waiting for a thread' /tmp/log
sleep 0.5
kill -USR1 "$pid"
wait "$waiting" || fail "status $? $(cat /tmp/log)"
mtbpf report /tmp/p.mtbpf >/tmp/report || fail "no report"
cat /tmp/report
grep -Eq '^thread [0-9]+ has been in call [0-9]+ of transfer for .*, and still is, threshold 500 ms' /tmp/report || fail "not the stall"
grep -q '^deadlock: thread' /tmp/report || fail "the deadlock is not named"
