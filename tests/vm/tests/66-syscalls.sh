# SPDX-License-Identifier: MIT
# System calls as triggers: with programs on the kernel's functions where it takes them; and with Intel PT, which user
# space freezes then.
. /tests/vm/lib.sh
start /build/programs/service -scale small -pause 5ms

mtbpf watch -pid "$pid" -symbol 'syscall:*nanosleep' -durations -timeout 2s >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
cat /tmp/out /tmp/err
hits=$(sed -n 's/ hits .*//p' /tmp/out)
! grep -q 'takes no probes on its functions' /tmp/err || fail "Debian's kernels have fentry"
[ "$hits" -gt 20 ] || fail "$hits hits"
grep -q ' p50 [5-9][.0-9]* ms' /tmp/out || fail "it sleeps for 5 ms and more"

# The kernel's functions: one alone; two of which one calls the other; and one that has no probe.
mtbpf watch -v -pid "$pid" -symbol kernel:hrtimer_nanosleep -durations -timeout 3s >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
cat /tmp/out
grep 'kernel functions are probed by' /tmp/err || fail "by what?"
single=$(sed -n 's/ hits .*//p' /tmp/out)
[ "$single" -gt 20 ] || fail "$single hits"
grep -q ' p50 [5-9][.0-9]* ms' /tmp/out || fail "it sleeps for 5 ms and more"
mtbpf watch -pid "$pid" -symbol kernel:hrtimer_nanosleep,kernel:do_nanosleep -durations -timeout 3s >/tmp/out 2>/tmp/err ||
	fail "$(cat /tmp/err)"
cat /tmp/out
hits=$(sed -n 's/ hits .*//p' /tmp/out)
measured=$(awk -F ' : ' '/ - / { n += $2 } END { print n + 0 }' /tmp/out)
# The last call of each may still be open.
[ "$hits" -gt 40 ] && [ $((hits - measured)) -le 4 ] || fail "$hits hits, $measured measured"
grep -q ' p50 [5-9][.0-9]* ms' /tmp/out || fail "both take 5 ms and more"
# Regions: within one system call, and from or to a function of the program. Each round has one of them.
for region in "kernel:hrtimer_nanosleep kernel:do_nanosleep" "one_iter kernel:hrtimer_nanosleep" "kernel:do_nanosleep one_iter"; do
	mtbpf watch -pid "$pid" -start "${region% *}" -stop "${region#* }" -timeout 2s >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
	hits=$(sed -n 's/ hits .*//p' /tmp/out)
	echo "from ${region% *} to ${region#* }: $(head -1 /tmp/out)"
	[ "$hits" -gt 20 ] || fail "$hits regions"
	! grep -q 'lost:' /tmp/err || fail "$(cat /tmp/err)"
done
grep -Eq ' p50 ([5-9]|[1-9][0-9]+)[.0-9]* ms' /tmp/out || fail "it sleeps for 5 ms and more before the next one"
mtbpf attach -source sample -pid "$pid" -start one_iter -stop kernel:hrtimer_nanosleep -timeout 60s -o /tmp/r.fxt >/tmp/out 2>/tmp/err ||
	fail "status $? $(cat /tmp/err)"
grep '^hit [0-9]* of kernel:hrtimer_nanosleep, .* after -start' /tmp/out || fail "$(cat /tmp/out)"
mtbpf watch -pid "$pid" -symbol kernel:no_such_function -timeout 1s 2>/tmp/err && fail "there is none"
grep -q 'the kernel has no such function' /tmp/err || fail "$(cat /tmp/err)"

need_pmu
mtbpf attach -source pt -pid "$pid" -symbol 'syscall:*nanosleep' -delay-thresh 1ms -timeout 60s -o /tmp/s.fxt >/tmp/out 2>/tmp/err ||
	fail "status $? $(cat /tmp/err)"
cat /tmp/out
grep -q '^hit [0-9]* of syscall:[a-z_]*nanosleep, thread' /tmp/out || fail "no hit"
mtbpf attach -source pt -pid "$pid" -symbol syscall:write -immediate-stop -o /tmp/i.fxt 2>/tmp/err && fail "that cannot be"
grep -q 'cannot freeze Intel PT at syscall:write' /tmp/err || fail "$(cat /tmp/err)"
mtbpf attach -source pt -pid "$pid" -start one_iter -stop kernel:hrtimer_nanosleep -o /tmp/i.fxt 2>/tmp/err && fail "that cannot be"
grep -q 'cannot begin and end at kernel:hrtimer_nanosleep' /tmp/err || fail "$(cat /tmp/err)"
mtbpf attach -source pt -pid "$pid" -symbol kernel:hrtimer_nanosleep -duration-thresh 1ms -timeout 60s -o /tmp/function.fxt >/tmp/out 2>/tmp/err ||
	fail "status $? $(cat /tmp/err)"
cat /tmp/out
grep -q '^call [0-9]* of kernel:hrtimer_nanosleep, thread' /tmp/out || fail "no hit"
