# SPDX-License-Identifier: MIT
# A thread that calls execve gets the main thread's tid: the new program is recorded under that.
# only: 6.12
. /tests/vm/lib.sh
need_pmu

mtbpf run -full-execution -multi-thread -snapshot-size 1M -o /tmp/e.fxt -- /build/programs/thread_exec-static \
	>/tmp/out 2>&1 || fail "status $? $(cat /tmp/out)"
cat /tmp/out
mtbpf decode /tmp/e.mtbpf -print calls >/tmp/calls 2>/tmp/err || fail "$(cat /tmp/err)"
tid_of() {
	awk -v name="$1" '$5 == name { print $1 }' /tmp/calls
}
main=$(tid_of wait_for) thread=$(tid_of before_exec)
[ "$main" ] && [ "$thread" ] && [ "$main" != "$thread" ] || fail "main $main, thread $thread"
[ "$(tid_of after_exec)" = "$main" ] || fail "after_exec is in $(tid_of after_exec) and not in $main"
