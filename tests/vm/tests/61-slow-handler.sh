# SPDX-License-Identifier: MIT
# User space may hear of the hit while the target is still in the probe's handler, before the pause:
# the target must not run on all the same. The handler is made slow for that, by probes with a stack
# trace each between the BPF program and the overflow.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
has_aux_pause || skip "this kernel cannot pause AUX events"
cd /sys/kernel/tracing || exit 1
for function in perf_trace_buf_alloc perf_tp_event perf_trace_run_bpf_submit __perf_event_overflow; do
	for i in 1 2 3 4 5 6; do
		echo "p:slow/${function}_$i $function" >>kprobe_events 2>/dev/null || continue
		must eval "echo stacktrace >events/slow/${function}_$i/trigger"
		must eval "echo 1 >events/slow/${function}_$i/enable"
	done
done
start /build/programs/service -scale small -pause 2ms
mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 5ms -timeout 60s -freeze pause -multi-snapshot 10 \
	-snapshot-size 64K -q -o /tmp/s.fxt >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
# Each snapshot ends where its hit was, at the probe. One that was hit as soon as it was armed may be empty.
mtbpf decode /tmp/s.mtbpf -print branches 2>/dev/null |
	awk '$3 ~ /^(cfe|pfa)$/ { next } / between snapshots$/ { print last } { last = $3 " " $4 }
		END { print last }' | sort | uniq -c >/tmp/ends
cat /tmp/ends
[ "$(wc -l </tmp/ends)" = 1 ] || fail "the target ran on"
awk '$1 < 8 || $2 != "end-async" { exit 1 }' /tmp/ends || fail "not the ends of ten snapshots"
echo 0 >events/slow/enable
for probe in events/slow/*/trigger; do echo '!stacktrace' >"$probe"; done
sed -n 's/^p:\(slow[^ ]*\) .*/-:\1/p' kprobe_events >/tmp/remove
must eval 'cat /tmp/remove >>kprobe_events'
must test -z "$(grep slow kprobe_events)"
