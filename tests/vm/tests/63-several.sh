# SPDX-License-Identifier: MIT
# Several functions are one trigger: each has an event in Intel PT's groups, and any of them freezes it.
# only: 6.1 newest
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 2ms

# attach NAME ARGS: on either of two functions; the summary is in $out.
attach() {
	local name=$1
	shift
	out=$(mtbpf attach -pid "$pid" -timeout 30s -o "/tmp/$name.fxt" "$@" 2>/tmp/err) ||
		fail "attach $*: status $? $(cat /tmp/err)"
	grep -E '^(hit|call|frozen|gaps)' <<<"$out"
}

if has_aux_pause; then
	attach two -symbol table_rehash,table_grow -freeze pause
	grep -Eq '^hit .* of table_(rehash|grow),' <<<"$out" || fail "neither of the two hit"
	grep -q ': 0 branches after the hit' <<<"$out" || fail "the target ran on after the pause"
else
	attach two -symbol table_rehash,table_grow -freeze disable
	grep -Eq '^hit .* of table_(rehash|grow),' <<<"$out" || fail "neither of the two hit"
fi
# One event alone can lead the group of Intel PT.
mtbpf attach -pid "$pid" -symbol one_iter,table_rehash -freeze refresh -timeout 1s -o /tmp/x.fxt \
	2>/tmp/err && fail "two events cannot both lead a group"
grep -q 'supports one probe, not 2' /tmp/err || fail "it does not say why"
attach calls -symbol one_iter -symbol table_rehash -duration-thresh 1us
grep -Eq '^call .* of (one_iter|table_rehash),' <<<"$out" || fail "no call of either was measured"
attach insns -symbol one_iter -duration-thresh 1us -return-probes ret-insns
grep -q '^call .* of one_iter,' <<<"$out" || fail "no call was measured"
attach threads -symbol one_iter,table_rehash -multi-thread
[ -z "$(cat /sys/kernel/tracing/uprobe_events)" ] || fail "a probe is left"
must kill -0 "$pid"
