# SPDX-License-Identifier: MIT
# Where a thread may lose its CPU within a probe's program, and another one hits the same probe there, durations are
# still right: none of seconds.
# tests/live/test_trigger.c, which 25-trigger runs on each kernel, checks where such programs have their stacks. This test
# needs chance and many hits to see a stack that two of them share.
# only: newest
# nightly
. /tests/vm/lib.sh
cd /tmp || exit 1
mount -t debugfs none /sys/kernel/debug 2>/dev/null
before=$(sed 's/.*(\(.*\)).*/\1/' /sys/kernel/debug/sched/preempt) || skip "this kernel's preemption cannot be set"
clean_up() { echo "$before" >/sys/kernel/debug/sched/preempt; }
echo full >/sys/kernel/debug/sched/preempt || skip "this kernel cannot be preempted"
start /build/programs/threads -scale native
mtbpf attach -source sample -pid "$pid" -symbol fill_block,do_job -duration-thresh 100s -timeout 15s -max-overhead none \
	-o n.fxt >out 2>err
[ $? = 3 ] || fail "attach: status $? $(cat err)"
grep ' hits ' err || fail "$(cat err)"
! grep -Eq 'max [0-9.]+ s' err || fail "no call takes seconds"
