# SPDX-License-Identifier: MIT
# Somebody else's probes on long nops, which newer kernels turn into calls to a page of their own: Intel PT
# records what runs there, and the trace has no gap.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
clean_up() {
	echo 0 >/sys/kernel/tracing/events/nops/enable
	echo '-:nops/at1' >>/sys/kernel/tracing/uprobe_events
	echo '-:nops/at2' >>/sys/kernel/tracing/uprobe_events
} 2>/dev/null
start /build/programs/longnops
places=$(mtbpf list -pid "$pid" 'begins_with_*' | awk '{ print $1 }')
[ "$(wc -w <<<"$places")" = 2 ] || fail "its functions are not found: $places"
read -r from offset < <(awk '$2 ~ /x/ && /longnops/ { split($1, at, "-"); print at[1], $3; exit }' "/proc/$pid/maps")
n=0
for place in $places; do
	n=$((n + 1))
	printf 'p:nops/at%d /build/programs/longnops:%#x\n' $n $((16#$place - 16#$from + 16#$offset)) \
		>>/sys/kernel/tracing/uprobe_events
	# One of ten bytes has a prefix that kernels before 7.2 take no probe on.
	echo 1 2>/dev/null >/sys/kernel/tracing/events/nops/at$n/enable || echo "no probe can be set on nop $n"
done
sleep 0.5
# Otherwise the nop is run in a slot of [uprobes], of which nobody can tell what somebody else's holds.
grep -q 'uprobes-trampoline' "/proc/$pid/maps" || skip "this kernel turns no probe into a call"
mtbpf attach -pid "$pid" -symbol one_iter -skip 50 -timeout 60s -snapshot-size 64K -o n.fxt >out 2>err ||
	fail "attach: status $? $(cat err)"
grep -E '^(hit|frozen|gaps)' out
! grep -q '^gaps' out || fail "gaps"
mtbpf decode n.mtbpf -print calls | awk '{ print $5 }' | sort | uniq -c >calls
cat calls
for f in one_iter begins_with_5 begins_with_10; do
	grep -q " $f$" calls || fail "$f is not in the trace"
done
must kill -0 "$pid"
clean_up
no_probe || fail "a probe is left"
