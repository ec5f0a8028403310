# SPDX-License-Identifier: MIT
# run -full-execution: what passes through a buffer that is far too small for it is all in the trace.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
mtbpf run -full-execution -snapshot-size 64K -o /tmp/f.fxt -- \
	/build/programs/service -scale small -n 40 >/tmp/out 2>/tmp/err || fail "status $? $(cat /tmp/err)"
cat /tmp/err /tmp/out
grep -q 'the program has ended: all that it did is recorded' /tmp/err || fail "$(cat /tmp/err)"
size=$(stat -c %s /tmp/f.mtbpf/data)
[ "$size" -gt 200000 ] || fail "$size bytes pass through 64K without coming round"
if grep -q '^lost: ' /tmp/out; then
	# The disk of a VM may be slower than its PMU: then it has to be said, and marked.
	grep -q 'was full before it was written to the disk' /tmp/err || fail "a loss that nobody told of"
else
	! grep -q '^gaps' /tmp/out || fail "gaps"
	[ "$(mtbpf decode /tmp/f.mtbpf -print calls | grep -c ' one_iter$')" -eq 40 ] || fail "not all iterations"
fi
