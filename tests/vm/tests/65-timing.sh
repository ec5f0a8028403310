# SPDX-License-Identifier: MIT
# Every timer resolution: which packets come, that perf decodes them, and that the times agree.
# only: newest
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small
# The times of the calls, as we have them and as perf has them in /tmp/perf.all: within a microsecond.
compare_times() {
	mtbpf decode /tmp/t.mtbpf -print branches >/tmp/ours.all
	awk '$3 == "call" {print $2, $4, $5}' /tmp/ours.all >/tmp/ours
	awk '$2 == "call" {
		gsub("[.:]", "", $1)
		for (to = 4; $to != "=>" && to < NF; to++)
			;
		sub("^0+", "", $1)
		print $1, $3, $(to + 1)
	}' /tmp/perf.all >/tmp/perf
	[ "$(wc -l </tmp/ours)" -gt 20 ] || fail "$1: only $(wc -l </tmp/ours) calls"
	paste -d' ' /tmp/ours /tmp/perf | awk -v name="$1" '
		$2 != $5 || $3 != $6 { print name ": call " NR " differs: " $0; wrong = 1; exit }
		{ d = $1 > $4 ? $1 - $4 : $4 - $1; if (d > max) max = d }
		END { print name ": " NR " calls, at most " max + 0 " ns from perf'"'"'s"; exit wrong ? 2 : max > 1000 }'
}
# record_and_compare RESOLUTION: status 1 if only times differ.
record_and_compare() {
	local resolution=$1
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
	perf script -i /tmp/t.mtbpf --itrace=be --ns -F time,flags,ip,addr >/tmp/perf.all 2>/tmp/errors
	! grep -qhi error /tmp/perf.all /tmp/errors || fail "$resolution: perf: $(grep -hi error /tmp/perf.all /tmp/errors | head -3)"
	echo "$resolution: $mtc MTC, $cyc CYC"
	compare_times "$resolution"
}
for resolution in low normal high custom:cyc,cyc_thresh=1 custom:mtc,mtc_period=6,noretcomp; do
	# On a loaded host the times of some recordings differ from perf's by milliseconds. It is not known whose are right, nor
	# why. Such a recording is made again.
	for try in 1 2 3 4 5; do
		record_and_compare "$resolution"
		status=$?
		[ "$status" = 1 ] || break
	done
	[ "$status" = 0 ] || fail "$resolution: times or calls differ: $(head -2 /tmp/ours /tmp/perf)"
done
kill -CONT "$pid"
! mtbpf attach -pid "$pid" -timer-resolution custom:mtc,mtc_period=4 2>/tmp/err || fail "period 4 was taken"
must grep -q 'supported: 3 6 9' /tmp/err
must kill -0 "$pid"
