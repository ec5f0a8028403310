# SPDX-License-Identifier: MIT
# System calls as triggers: with programs on the kernel's functions where it takes them; and with Intel PT, which user
# space freezes then.
. /tests/vm/lib.sh
start /build/programs/service -scale small -pause 5ms

mtbpf watch -pid "$pid" -symbol 'syscall:*nanosleep' -durations -timeout 2s >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
cat /tmp/out /tmp/err
hits=$(sed -n 's/ hits .*//p' /tmp/out)
[ "$hits" -gt 20 ] || fail "$hits hits"
grep -q ' p50 [5-9][.0-9]* ms' /tmp/out || fail "it sleeps for 5 ms and more"

need_pmu
mtbpf attach -source pt -pid "$pid" -symbol 'syscall:*nanosleep' -delay-thresh 1ms -timeout 60s -o /tmp/s.fxt >/tmp/out 2>/tmp/err ||
	fail "status $? $(cat /tmp/err)"
cat /tmp/out
grep -q '^hit [0-9]* of syscall:[a-z_]*nanosleep, thread' /tmp/out || fail "no hit"
grep -q 'from user space' /tmp/out || fail "who froze it?"
mtbpf attach -source pt -pid "$pid" -symbol syscall:write -immediate-stop -o /tmp/i.fxt 2>/tmp/err && fail "that cannot be"
grep -q 'cannot freeze Intel PT at a system call' /tmp/err || fail "$(cat /tmp/err)"
