# SPDX-License-Identifier: MIT
# Every timer resolution: which packets come, and that perf finds the same branches at the same times.
# only: newest
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small
for resolution in low normal high custom:cyc,cyc_thresh=1 custom:mtc,mtc_period=6,noretcomp; do
	kill -CONT "$pid"
	mtbpf attach -pid "$pid" -timeout 1s -snapshot-size 16K -timer-resolution "$resolution" \
		-o /tmp/t.fxt >/tmp/out 2>/tmp/err
	[ $? = 3 ] || fail "$resolution: $(cat /tmp/err)"
	# Recorded without a pause, it takes no CPU from perf.
	kill -STOP "$pid"
	perf script -i /tmp/t.mtbpf -D 2>/dev/null >/tmp/dump
	mtc=$(grep -c ' MTC 0x' /tmp/dump)
	cyc=$(grep -c ' CYC 0x' /tmp/dump)
	case $resolution in
	# Before a wrapped ring's first PSB perf takes some bytes for packets that they are not.
	low | custom:mtc*) [ "$mtc" -gt 50 ] && [ "$cyc" -lt 10 ] ;;
	custom:cyc*) [ "$mtc" -lt 10 ] && [ "$cyc" -gt 100 ] ;;
	*) [ "$mtc" -gt 5 ] && [ "$cyc" -gt 100 ] ;;
	esac || fail "$resolution: $mtc MTC packets, $cyc CYC packets"
	! grep -q '^gaps' /tmp/out || fail "$resolution: $(grep '^gaps' /tmp/out)"
	same_branches /tmp/t.mtbpf
	calls=$(grep -c call /tmp/ours)
	[ "$calls" -gt 20 ] || fail "$resolution: only $calls calls"
	echo "$resolution: $mtc MTC, $cyc CYC, $calls calls"
done
kill -CONT "$pid"
! mtbpf attach -pid "$pid" -timer-resolution custom:mtc,mtc_period=4 2>/tmp/err || fail "period 4 was taken"
must grep -q 'supported: 3 6 9' /tmp/err
must kill -0 "$pid"
