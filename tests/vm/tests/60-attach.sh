# SPDX-License-Identifier: MIT
# The command itself, on Intel PT: caught by delay threshold, frozen by each method in turn.
# only: 6.1 newest
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 2ms

# freeze METHOD: attaches with it; the summary is in $out.
freeze() {
	out=$(mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 20ms -timeout 30s -freeze "$1" \
		-o "/tmp/$1.fxt" 2>/tmp/err) || fail "attach -freeze $1: status $? $(cat /tmp/err)"
	grep -E '^(hit|frozen|gaps)' <<<"$out"
	grep -q 'table_rehash' <<<"$out" || grep -q 'no report' <<<"$out" ||
		echo "note: another iteration than a rehash was slow"
	! grep -q '^gaps' <<<"$out" || fail "gaps"
	perf script -i "/tmp/$1.mtbpf" --itrace=e >/tmp/errors 2>&1
	! grep -qi 'error' /tmp/errors || fail "perf: $(grep -i error /tmp/errors | head -3)"
}

branches_after_hit() {
	sed -n 's/^frozen .*: \([0-9]*\) branches after the hit.*/\1/p' <<<"$out"
}

if has_aux_pause; then
	freeze pause
	grep -q 'by aux_pause' <<<"$out" || fail "not frozen by aux_pause"
	[ "$(branches_after_hit)" = 0 ] || fail "the target ran on after the pause"
	# Its own event is what the trace ends with.
	ip=$(mtbpf decode /tmp/pause.mtbpf -print branches | tail -2 | awk '$3 == "call" {to = $5} $3 == "end-async" && $4 == to {print "probe"}')
	[ "$ip" = probe ] || fail "the trace does not end at the call's target"
else
	mtbpf attach -pid "$pid" -symbol one_iter -freeze pause -timeout 1s -o /tmp/x.fxt 2>/tmp/err &&
		fail "this kernel has no aux_pause"
	cat /tmp/err
fi
freeze refresh
[ "$(branches_after_hit)" = 0 ] || fail "the target ran on after the event limit"
# The message may wake us on the target's own CPU; not each time.
for _ in 1 2 3 4 5; do
	freeze disable
	[ "$(branches_after_hit)" = 0 ] || break
done
[ "$(branches_after_hit)" -gt 0 ] || fail "user space cannot be that fast"
grep -q 'branches after the hit, [1-9]' <<<"$out" || fail "the time after the hit is missing"
freeze auto
[ "$(branches_after_hit)" = 0 ] || fail "the best method is not in the kernel"
must kill -0 "$pid"
