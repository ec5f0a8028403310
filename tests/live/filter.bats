#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -filter of a generated recording: what perf finds in that time, and no more is decoded than that; of one by the
# stepper, and of samples.
load ../helpers
load helpers

setup_file() {
	cd_root
	command -v qemu-x86_64 >/dev/null || return 0
	"$O/tests/ptgen/ptgen" -o "$recordings/r.mtbpf" -instructions 20000000 -timing cyc -- \
		/usr/bin/python3 -c 'while True: "%d" % 5' >"$recordings/said" 2>&1 3>&-
}

setup() {
	cd_root
	out=$BATS_TEST_TMPDIR
}

need_generated() {
	command -v qemu-x86_64 >/dev/null || skip "qemu-x86_64 is missing (package qemu-user)"
	[ -d "$recordings/r.mtbpf" ] || { cat "$recordings/said"; return 1; }
}

# bytes FILTER: of Intel PT that are decoded for it, and in all.
bytes() {
	"$mtbpf" decode "$recordings/r.mtbpf" -v -filter "$1" -o "$out/b.fxt" 2>&1 |
		sed -n 's/.*debug: filter:.* \([0-9]*\) of \([0-9]*\) bytes$/\1 \2/p'
}

@test "by time it is what perf script --time finds" {
	need_generated
	local why from to t0
	why=$(why_no_perf)
	[ -z "$why" ] || skip "perf does not judge: $why"
	t0=$("$mtbpf" decode "$recordings/r.mtbpf" -print branches 2>/dev/null | awk '{ print $2; exit }' || true)
	from=$((t0 + 2000000)) to=$((t0 + 2500000))
	"$mtbpf" decode "$recordings/r.mtbpf" -print branches -filter 2ms..2.5ms |
		awk '$3 ~ /^(call|return|jmp|jcc)$/ { print $4, $5 }' >"$out/ours"
	perf script -i "$recordings/r.mtbpf" --ns --itrace=b -F time,flags,ip,addr \
		--time "$((from / 1000000000)).$(printf %09d $((from % 1000000000))),$((to / 1000000000)).$(printf %09d $((to % 1000000000)))" \
		2>"$out/perf.err" | awk '$2 ~ /^(call|return|jmp|jcc)$/ {
			for (i = 4; i < NF; i++) if ($i == "=>") print $3, $(i + 1) }' >"$out/perf"
	[ "$(wc -l <"$out/ours")" -gt 10000 ]
	diff "$out/ours" "$out/perf" >"$out/diff" || { head -20 "$out/diff"; wc -l "$out/ours" "$out/perf"; }
	# The clocks differ by some nanoseconds: at both ends, one may have a few more.
	[ "$(grep -c '^[<>]' "$out/diff")" -le 40 ]
	! grep -q '^[0-9,]*c' "$out/diff"
}

@test "a part decodes a part of the bytes" {
	need_generated
	read -r part all < <(bytes -500us..)
	echo "$part of $all"
	[ "$all" -gt 1000000 ]
	[ "$part" -lt $((all / 8)) ]
	read -r part all < <(bytes 1ms..1.2ms)
	[ "$part" -lt $((all / 8)) ]
}

@test "the stepper's recording: regions by calls, and up to the hit" {
	start_program service
	"$mtbpf" record -source soft -pid "$pid" -symbol one_iter -skip 2 -timeout 60s \
		-o "$recordings/s.mtbpf" >"$recordings/s.log" 2>&1 3>&- || true
	stop_program
	[ -d "$recordings/s.mtbpf" ] || { cat "$recordings/s.log"; return 1; }
	"$mtbpf" decode "$recordings/s.mtbpf" -format text >"$out/all"
	"$mtbpf" decode "$recordings/s.mtbpf" -format text -filter 'one_iter..one_iter' >"$out/part"
	# From its first call that was seen on, all is there that the whole has.
	first=$(awk 'NR == 1 { print $3 }' "$out/part")
	grep -q " $first [0-9]* one_iter$" "$out/all"
	[ "$(awk -v t="$first" '$3 > t' "$out/all" | wc -l)" -gt 20 ]
	diff <(awk -v t="$first" '$3 > t { print $1, $3, $4, $5 }' "$out/all") \
		<(awk -v t="$first" '$3 > t { print $1, $3, $4, $5 }' "$out/part")
	"$mtbpf" report "$recordings/s.mtbpf" -filter hit-10ms..hit >"$out/report"
	grep -q '^-filter leaves ' "$out/report"
	grep -q '^hit ' "$out/report"
	"$mtbpf" report "$recordings/s.mtbpf" -filter ..hit-1ns >"$out/report"
	grep -q '^left out by -filter: 1 hit$' "$out/report"
}

@test "samples: times cut slices, and calls are refused" {
	start_program service
	"$mtbpf" record -source sample -pid "$pid" -timeout 500ms -o "$recordings/p.mtbpf" \
		>"$recordings/p.log" 2>&1 3>&- || true
	stop_program
	[ -d "$recordings/p.mtbpf" ] || { cat "$recordings/p.log"; return 1; }
	"$mtbpf" decode "$recordings/p.mtbpf" -format text -filter 100ms..200ms >"$out/part"
	[ -s "$out/part" ]
	[ -z "$(awk '$3 < 100000000 || $4 > 200000000' "$out/part")" ]
	awk '$3 == 100000000 { found = 1 } END { exit !found }' "$out/part"
	run "$mtbpf" decode "$recordings/p.mtbpf" -o "$out/x.fxt" -filter main..one_iter
	[ "$status" -ne 0 ]
	complains samples-not-each-call
	[ ! -e "$out/x.fxt" ]
}
