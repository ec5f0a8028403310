# SPDX-License-Identifier: MIT
# Twenty snapshots in a row, armed again after each, by every method that freezes in the kernel.
# only: 6.1
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 2ms
methods=refresh
if has_aux_pause; then methods="pause refresh"; fi
for method in $methods; do
	mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 5ms -timeout 45s -freeze "$method" \
		-multi-snapshot 20 -v -snapshot-size 16K -o /tmp/m.fxt >/tmp/out 2>/tmp/err ||
		fail "status $? $(cat /tmp/err)"
	hits=$(grep -c '^hit ' /tmp/out)
	[ "$hits" = 20 ] || fail "$hits hits"
	! grep -q '^gaps' /tmp/out || fail "gaps: $(grep '^gaps' /tmp/out)"
	grep '^frozen' /tmp/out
	grep -q ': 0 branches after the hit' /tmp/out || fail "the target ran on after the last hit"
	# One record of PT a snapshot, each of which perf decodes.
	perf script -i /tmp/m.mtbpf --itrace=e >/tmp/errors 2>&1
	! grep -qi error /tmp/errors || fail "perf: $(grep -i error /tmp/errors | head -3)"
	perf script -i /tmp/m.mtbpf -D >/tmp/dump 2>/dev/null
	records=$(grep -c 'PERF_RECORD_AUXTRACE size' /tmp/dump)
	# A hit as soon as it was armed again, whose thread was in the handler already: it says so.
	empty=$(grep -c 'triggered but was not recorded' /tmp/err)
	[ "$empty" = "$(grep -c '^hint: the hit came as soon as' /tmp/err)" ] && [ "$empty" -le 5 ] &&
		[ $((records + empty)) = 20 ] ||
		fail "$records records, $empty empty: $(grep 'pt: thread' /tmp/err)"
	[ "$empty" = 0 ] || grep 'pt: thread.* 0 bytes' /tmp/err
done
must kill -0 "$pid"
