# SPDX-License-Identifier: MIT
# System calls as triggers: with programs on the kernel's functions where it takes them; and with Intel PT, which the
# kernel freezes.
# only: 6.1 newest
. /tests/vm/lib.sh
# Each kernel shows that its probes, programs and events do what they are to do. What mtbpf refuses or combines by itself,
# and the counter-proofs, in which user space freezes, are the same on both: 6.1 shows them, which has less to run.
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
regions=("kernel:do_nanosleep one_iter")
! shown_by 6.1 || regions=("kernel:hrtimer_nanosleep kernel:do_nanosleep" "one_iter kernel:hrtimer_nanosleep" "${regions[@]}")
for region in "${regions[@]}"; do
	mtbpf watch -pid "$pid" -start "${region% *}" -stop "${region#* }" -timeout 2s >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
	hits=$(sed -n 's/ hits .*//p' /tmp/out)
	echo "from ${region% *} to ${region#* }: $(head -1 /tmp/out)"
	[ "$hits" -gt 20 ] || fail "$hits regions"
	! grep -q 'lost:' /tmp/err || fail "$(cat /tmp/err)"
done
grep -Eq ' p50 ([5-9]|[1-9][0-9]+)[.0-9]* ms' /tmp/out || fail "it sleeps for 5 ms and more before the next one"
if shown_by 6.1; then
	mtbpf attach -source sample -pid "$pid" -start one_iter -stop kernel:hrtimer_nanosleep -timeout 60s -o /tmp/r.fxt >/tmp/out 2>/tmp/err ||
		fail "status $? $(cat /tmp/err)"
	grep '^hit [0-9]* of kernel:hrtimer_nanosleep, .* after -start' /tmp/out || fail "$(cat /tmp/out)"
	mtbpf watch -pid "$pid" -symbol kernel:no_such_function -timeout 1s 2>/tmp/err && fail "there is none"
	grep -q 'the kernel has no function of this name' /tmp/err || fail "$(cat /tmp/err)"

	# A system call that is a hit and ends a region has one program: each of its calls is one hit.
	mtbpf run -source sample -symbol syscall:clock_nanosleep -start one_iter -stop syscall:clock_nanosleep -delay-thresh 1h \
		-o /tmp/n.fxt -- /build/programs/service -scale small -n 100 -pause 1ms >/tmp/out 2>&1
	grep -q '^syscall:clock_nanosleep: 100 hits' /tmp/out || fail "$(cat /tmp/out)"
fi

need_pmu
if shown_by 6.1; then
	mtbpf attach -source pt -pid "$pid" -symbol one_iter -start one_iter -stop kernel:hrtimer_nanosleep -o /tmp/i.fxt 2>/tmp/err &&
		fail "that cannot be"
	grep -q 'cannot start or stop recording at kernel:hrtimer_nanosleep, which is in the kernel' /tmp/err || fail "$(cat /tmp/err)"
fi
# A function of the kernel is probed by perf events that the kernel freezes Intel PT by: the last that the trace has
# is the system call.
ends_in_syscall() {
	mtbpf decode "/tmp/$1.mtbpf" -format text >"/tmp/$1.text"
	perf script -i "/tmp/$1.mtbpf" --itrace=be -F ip,flags 2>&1 | grep -a 'tr end\|error' | tail -1 >"/tmp/$1.end"
	tail -1 "/tmp/$1.text"
	tail -1 "/tmp/$1.text" | grep -q '\[syscall\]$' && grep -q 'tr end *syscall' "/tmp/$1.end"
}
# function NAME ARGS: the summary is in /tmp/out.
function_hit() {
	local name=$1
	shift
	rm -rf "/tmp/$name".*
	mtbpf attach -v -source pt -pid "$pid" -timeout 60s -o "/tmp/$name.fxt" "$@" >/tmp/out 2>/tmp/err || fail "$*: status $? $(cat /tmp/err)"
	grep -E '^(hit|call|frozen)' /tmp/out
}
function_hit call -symbol kernel:hrtimer_nanosleep -duration-thresh 1ms
grep -q '^call [0-9]* of kernel:hrtimer_nanosleep, thread' /tmp/out || fail "no hit"
grep -q 'frozen in the kernel' /tmp/err || fail "$(cat /tmp/err)"
ends_in_syscall call || fail "it ran on after the call: $(tail -3 /tmp/call.text)"
function_hit hit -symbol kernel:hrtimer_nanosleep -immediate-stop
grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "it ran on after the hit"
ends_in_syscall hit || fail "it ran on after the hit: $(tail -3 /tmp/hit.text)"
if shown_by 6.1; then
	# The same from user space: the thread runs on, unless mtbpf gets its CPU first.
	for _ in {1..20}; do
		function_hit late -symbol kernel:hrtimer_nanosleep -duration-thresh 1ms -freeze disable
		ends_in_syscall late || break
		false
	done || fail "nothing follows the call, whoever freezes"
fi
if has_aux_pause; then
	function_hit threads -symbol kernel:hrtimer_nanosleep -delay-thresh 1ms -multi-thread
	grep -q '^frozen in the kernel, by aux_pause: 0 branches after the hit' /tmp/out || fail "it ran on after the hit"
	function_hit several -symbol kernel:hrtimer_nanosleep,one_iter -skip 3
	grep -q '^frozen in the kernel, by aux_pause: 0 branches after the hit' /tmp/out || fail "it ran on after the hit"
fi
# Regions do not pause Intel PT inside the kernel: it records all the time, and their ends freeze it.
stops=(kernel:hrtimer_nanosleep)
! shown_by 6.1 || stops+=('syscall:*nanosleep')
for stop in "${stops[@]}"; do
	function_hit measured -start one_iter -stop "$stop" -duration-thresh 1us -skip 3 -immediate-stop
	grep -q ' cannot start or stop recording at .*: mtbpf records all the time' /tmp/err || fail "$(cat /tmp/err)"
	grep -q '^hit [0-9]* of [a-z]*:[a-z_]*nanosleep, .* after -start' /tmp/out || fail "$(cat /tmp/out)"
	grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "$stop: it ran on after the hit"
	ends_in_syscall measured || fail "it ran on after the hit: $(tail -3 /tmp/measured.text)"
	[ "$(grep -c ' one_iter$' /tmp/measured.text)" -gt 1 ] || fail "it was paused"
	! grep -q 'gap: outside' /tmp/measured.text || fail "it was paused"
done
# A tracepoint has no event of its own, and freezes as a system call does. It is reached in an interrupt, too.
function_hit traced -start one_iter -stop tracepoint:raw_syscalls:sys_enter -duration-thresh 1us -skip 3 -immediate-stop
grep -q '^hit [0-9]* of tracepoint:raw_syscalls:sys_enter, .* after -start' /tmp/out || fail "$(cat /tmp/out)"
grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "it ran on after the hit"
if shown_by 6.1; then
	mtbpf watch -pid "$pid" -start tracepoint:raw_syscalls:sys_enter -stop tracepoint:sched:sched_switch -timeout 2s >/tmp/out 2>/tmp/err ||
		fail "$(cat /tmp/err)"
	hits=$(sed -n 's/ hits .*//p' /tmp/out)
	echo "from a system call to a switch: $(head -1 /tmp/out)"
	[ "$hits" -gt 20 ] || fail "$hits regions"
fi
mtbpf watch -pid "$pid" -start one_iter -stop tracepoint:irq_vectors:local_timer_entry -timeout 2s >/tmp/out 2>/tmp/err ||
	fail "$(cat /tmp/err)"
grep -q '^0 hits' /tmp/out || fail "an interrupt has ended a region: $(cat /tmp/out)"
grep -q 'lost: .*hit in an interrupt' /tmp/err || fail "no interrupt: $(cat /tmp/err)"
service=$pid
start /build/programs/causes faults
mtbpf watch -pid "$pid" -start tracepoint:exceptions:page_fault_user -stop tracepoint:raw_syscalls:sys_enter \
	-max-hits 3 -timeout 20s >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
echo "from a page fault to a system call: $(head -1 /tmp/out)"
grep -q '^[1-9][0-9]* hits' /tmp/out || fail "a page fault is the thread's: $(cat /tmp/out)"
kill "$pid"
pid=$service
if shown_by 6.1; then
	# From the return of one system call to the entry of the next one: what is between the two.
	function_hit between -start 'syscall:*nanosleep' -stop kernel:do_nanosleep -duration-thresh 1us -skip 3
	grep -q '^hit [0-9]* of kernel:do_nanosleep, .* after -start' /tmp/out || fail "$(cat /tmp/out)"
fi
# System calls, tracepoints and signals have no event of their own: their programs call a function of the kernel, and a
# kprobe on that freezes.
moments=('syscall:*nanosleep' tracepoint:raw_syscalls:sys_enter)
! shown_by 6.1 || moments+=(kernel:hrtimer_nanosleep)
for hit in "${moments[@]}"; do
	function_hit moment -symbol "$hit" -delay-thresh 1ms
	[[ $hit != syscall:* ]] || grep -q '^hit [0-9]* of syscall:[a-z_]*nanosleep, thread' /tmp/out || fail "no hit"
	grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "$hit: it ran on after the hit"
done
function_hit syscall -symbol 'syscall:*nanosleep' -duration-thresh 1ms -immediate-stop
grep -q 'frozen in the kernel' /tmp/err || fail "from where?"
ends_in_syscall syscall || fail "it ran on after the call: $(tail -3 /tmp/syscall.text)"
service=$pid
start /build/programs/signals -scale small -pause 5ms
# The place of a signal that has interrupted code of the program is not found in the trace: an interrupt has the time of
# its return here.
for _ in $(seq 8); do
	function_hit signal -symbol signal:ALRM -skip 2
	! grep -q '^frozen' /tmp/out || break
done
grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "it ran on after the signal"
# From a signal to the end of its handler.
function_hit handler -start signal:ALRM -stop syscall:rt_sigreturn -duration-thresh 1ns -skip 2 -immediate-stop
grep -q '^hit [0-9]* of syscall:rt_sigreturn, .* after -start' /tmp/out || fail "$(cat /tmp/out)"
grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "it ran on after the hit"
if shown_by 6.1; then
	function_hit delivered -start syscall:setitimer -stop signal:ALRM -duration-thresh 1ns -skip 2 -immediate-stop
	grep -q '^hit [0-9]* of signal:ALRM, .* after -start' /tmp/out || fail "$(cat /tmp/out)"
	grep -q 'frozen in the kernel' /tmp/err || fail "$(cat /tmp/err)"
fi
rm -rf /tmp/ended.*
mtbpf run -source pt -start main -stop exit:nonzero -immediate-stop -o /tmp/ended.fxt -- /build/programs/crash -exit -n 20 >/tmp/out 2>/tmp/err
grep -q '^hit 1 of exit:nonzero, .* after -start' /tmp/out || fail "$(cat /tmp/out /tmp/err)"
grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "it ran on after the hit: $(cat /tmp/out)"
if shown_by 6.1; then
	# A call that does not wait: the thread runs on until user space has frozen the trace.
	for _ in {1..20}; do
		function_hit late -symbol syscall:write -skip 3 -freeze disable
		! grep -q '^frozen from user space: 0 branches' /tmp/out || { false; continue; }
		break
	done || fail "nothing follows it, whoever freezes"
fi
function_hit write -symbol syscall:write -skip 3
grep -q '^frozen in the kernel, by .*: 0 branches after the hit' /tmp/out || fail "it ran on after the hit"
# Together with a function of the kernel, which has an event of its own: an event limit is for one of them.
if has_aux_pause; then
	for both in syscall:write,kernel:do_nanosleep syscall:getsid,kernel:vfs_write; do
		function_hit both -symbol "$both" -skip 3 -immediate-stop
		grep -q '^frozen in the kernel, by aux_pause: 0 branches after the hit' /tmp/out || fail "$both: it ran on after the hit"
	done
fi
must kill -0 "$pid"
pid=$service
no_probe || fail "a probe is left"
[ -z "$(cat /sys/kernel/tracing/kprobe_events)" ] || fail "a kprobe is left"
must kill -0 "$pid"
