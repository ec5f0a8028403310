# SPDX-License-Identifier: MIT
# run -full-execution: more than a buffer holds passes through it to the disk; what does not, is said.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
# full SIZE: of so many bytes that wait for the disk; a VM's may be slower than its PMU.
full() {
	mtbpf run -full-execution -snapshot-size "$1" -o /tmp/f.fxt -- \
		/build/programs/service -scale small -n 40 >/tmp/out 2>/tmp/err || fail "status $? $(cat /tmp/err)"
	cat /tmp/err /tmp/out
	grep -q 'the program has ended: ' /tmp/err || fail "no end"
	if grep -q '^lost: ' /tmp/out; then
		grep -q 'the disk is too slow: a buffer was full' /tmp/err || fail "a loss that nobody told of"
		grep -q 'except what was lost' /tmp/err || fail "all is said to be there"
		return 1
	fi
	! grep -q '^gaps' /tmp/out || fail "gaps"
	[ "$(mtbpf decode /tmp/f.mtbpf -print calls 2>/dev/null | grep -c ' one_iter$')" -eq 40 ] || fail "not all iterations"
}
full 32K || :
# Half of it, and a drain at each: some ten times through it.
full 256K || full 512K || full 1M || fail "the disk never keeps up"
size=$(stat -c %s /tmp/f.mtbpf/data)
[ "$size" -gt 1000000 ] || fail "$size bytes are less than what may wait"
