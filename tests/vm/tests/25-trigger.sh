# SPDX-License-Identifier: MIT
# BPF on uprobes works here: the live test of the trigger, run inside; and what -if, -key and -print read at a hit.
. /tests/vm/lib.sh
export CMOCKA_MESSAGE_OUTPUT=TAP
for test in test_trigger test_trigger_reads; do
	/build/tests/live/$test >/tmp/out 2>&1
	status=$?
	cat /tmp/out
	[ "$status" = 0 ] || fail "$test: status $status"
	# Where the verifier refuses a program the tests skip themselves. These kernels must take all of them.
	! grep -q "cannot load the trigger" /tmp/out || fail "$test: skipped, because the verifier refuses a program"
done
