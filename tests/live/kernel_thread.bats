#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A kernel thread as the target: its stacks are the kernel's.
load ../helpers
load helpers

setup() {
	cd_root
	out=$BATS_TEST_TMPDIR
	thread=$(pgrep -x 'rcu_preempt|rcu_sched' | head -1)
	[ -n "$thread" ] || skip "no kernel threads are seen here"
}

@test "samples of a kernel thread, at its switches too" {
	"$mtbpf" record -source sample -trace-include-kernel -pid "$thread" -timeout 2s \
		-o "$out/r.mtbpf" >"$out/said" 2>&1 || [ $? -eq 3 ] || { cat "$out/said"; false; }
	"$mtbpf" decode "$out/r.mtbpf" -format text >"$out/text"
	cat "$out/text" | head
	grep -Eq "^$thread [0-9]+ [0-9]+ [0-9]+ (kthread|rcu_gp_kthread|ret_from_fork)" "$out/text"
	grep -q '\[blocked\]$' "$out/text"
	! grep -Eq ' (main|_start)$' "$out/text"
}

@test "without the kernel, or with a function of a program, it is refused" {
	run "$mtbpf" record -source sample -pid "$thread" -timeout 1s -o "$out/r.mtbpf"
	[ "$status" -eq 2 ]
	complains is-a-kernel-thread hint add-kernel-only
	run "$mtbpf" record -source sample -trace-include-kernel -pid "$thread" -symbol main -timeout 1s -o "$out/r.mtbpf"
	[ "$status" -eq 2 ]
	complains kernel-thread-no-function
}
