# SPDX-License-Identifier: MIT
# -source sample: who lets a lock go, who answers, and who takes the CPU, which the kernel's tracepoints tell.
# only: 6.1 newest
. /tests/vm/lib.sh
cd /tmp || exit 1
# Copies of stacks have a program of their own, which this kernel's verifier has to pass.
CMOCKA_MESSAGE_OUTPUT=TAP must /build/tests/live/test_switch_stack

# finds CAUSE REASON: the program's slow iteration has that reason. It comes first on its CPU, but for who is to take it.
finds() {
	start /build/programs/causes "$1"
	[ "$1" = hog ] || chrt -a -f -p 10 "$pid" || fail "no real-time priority"
	mtbpf attach -source sample -pid "$pid" -symbol one_iter -duration-thresh 20ms -timeout 60s -o "$1.fxt" >out 2>err ||
		fail "attach: status $? $(cat err)"
	grep '^reason' out
	grep -Eq "$2" out || fail "$1: $(cat out)"
	grep -q 'on CPU .* · interrupts .* · throttled ' out || fail "interrupts are not counted: $(cat out)"
	kill "$pid"
}

finds lock '\[blocked\] in .*: futex held by helper \([0-9]+\), woken by (.*, )?helper \([0-9]+\)'
finds read '\[blocked\] in read: read of pipe:\[[0-9]+\] \(fd [0-9]+\), woken by (.*, )?helper \([0-9]+\)'
finds hog '\[(preempted|runnable)\] in .*, by (.*, )?hog \([0-9]+\)'
no_probe || fail "a probe is left"
