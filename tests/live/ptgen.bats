#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Generated streams before their judges: perf and mtbpf find the branches that the generator says it
# wrote, and neither complains.
load ../helpers
load helpers

setup() {
	cd_root
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	PATH=$O/tests/ptgen/programs:$O/programs:$PATH
	out=$BATS_TEST_TMPDIR
}

# generate OPTION... -- PROGRAM...: $out/r.mtbpf; its summary is in $out/summary.
generate() {
	"$O/tests/ptgen/ptgen" -o "$out/r.mtbpf" "$@" >"$out/summary" 2>"$out/said" 3>&- ||
		{ cat "$out/said"; return 1; }
	! grep -E '^(mtbpf|hint|warning)' "$out/said" || false
}

# said KEY: a number of the summary.
said() {
	awk -v key="$1" '$1 == key { print $2 }' "$out/summary"
}

# judge: both find the same branches, as many as there were.
judge() {
	local why ours
	our_branches "$out/r.mtbpf" >"$out/ours"
	ours=$(wc -l <"$out/ours")
	echo "generated $(said branches), decoded $ours"
	[ "$ours" -eq "$(said branches)" ]
	why=$(why_no_perf)
	[ -z "$why" ] || skip "perf does not judge: $why"
	perf_branches "$out/r.mtbpf" "$out/perf"
	[ ! -s "$out/perf.err" ] || { head "$out/perf.err"; return 1; }
	awk '{ print $1, $2, $3, $4 }' "$out/ours" >"$out/ours.flow"
	awk '{ print $1, $2, $3, $4 }' "$out/perf" >"$out/perf.flow"
	same "$out/ours.flow" "$out/perf.flow"
}

no_gap() {
	"$mtbpf" decode "$out/r.mtbpf" -o "$out/r.fxt" >"$out/decoded" 2>&1
	grep -q "thread.*, no gaps$" "$out/decoded"
}

# deviation KIND: of the times of calls and returns from the generator's clock, "least most" in ns.
deviation() {
	awk 'NR == FNR { time[NR] = $2; kind[NR] = $3; to[NR] = $4; next }
		$3 == "call" || $3 == "return" {
			n++
			if ($3 != kind[n] || "0x" $5 != to[n])
				exit 1
			off = $2 - time[n]
			if (n == 1 || off < least) least = off
			if (n == 1 || off > most) most = off
		}
		END { print least, most }' "$out/truth" <("$mtbpf" decode "$out/r.mtbpf" -print branches)
}

@test "a program from its first instruction to its last" {
	generate -- throws 20
	judge
	no_gap
}

# bats test_tags=slow
@test "time in TSC packets is right to the interval" {
	generate -tsc-interval 20us -truth "$out/truth" -instructions 1000000 -- tailcalls -scale small
	judge
	read -r least most < <(deviation)
	echo "$least $most"
	[ "$least" -ge -50000 ] && [ "$most" -le 1 ]
}

# bats test_tags=slow
@test "time in MTC packets is right to their period" {
	generate -timing mtc -truth "$out/truth" -instructions 1000000 -- tailcalls -scale small
	judge
	read -r least most < <(deviation)
	echo "$least $most"
	[ "$least" -ge -400 ] && [ "$most" -le 1 ]
	generate -timing mtc -mtc-freq 6 -truth "$out/truth" -instructions 1000000 -- tailcalls -scale small
	read -r least most < <(deviation)
	echo "$least $most"
	[ "$least" -ge -2800 ] && [ "$least" -lt -400 ]
}

@test "time in CYC packets is right to less than a packet's branches" {
	generate -timing cyc -truth "$out/truth" -instructions 1000000 -- tailcalls -scale small
	judge
	read -r least most < <(deviation)
	echo "$least $most"
	[ "$least" -ge -100 ] && [ "$most" -le 100 ]
}

@test "without return compression, with more PSBs: more bytes, the same branches" {
	generate -instructions 1000000 -- throws
	branches=$(said branches) bytes=$(said bytes)
	generate -no-ret-compression -psb-period 512 -instructions 1000000 -- throws
	judge
	[ "$(said branches)" -eq "$branches" ]
	[ "$(said bytes)" -gt $((bytes * 5 / 4)) ]
}

@test "a ring keeps the last bytes, and begins anywhere" {
	generate -snapshot-size 16K -instructions 1000000 -- throws
	[ "$(said bytes)" -gt 16384 ]
	our_branches "$out/r.mtbpf" >"$out/ours"
	why=$(why_no_perf)
	[ -z "$why" ] || skip "perf does not judge: $why"
	perf_branches "$out/r.mtbpf" "$out/perf"
	# perf does not say where it begins.
	awk 'NR > 1 { print $1, $2, $3, $4 }' "$out/ours" >"$out/ours.flow"
	awk '{ print $1, $2, $3, $4 }' "$out/perf" >"$out/perf.flow"
	same "$out/ours.flow" "$out/perf.flow"
	[ "$(wc -l <"$out/ours")" -gt 1000 ]
	no_gap
}

@test "threads have a stream each, and their names" {
	generate -timing cyc -instructions 2000000 -- threads -scale small
	judge
	no_gap
	# On a busy machine the first worker may have run it all before the next one starts.
	grep -q '^thread .* worker-' "$out/summary"
	grep -q '^thread .* threads ' "$out/summary"
	while read -r tid n; do
		[ "$(grep -c "^$tid " "$out/ours")" -eq "$n" ]
	done < <(awk '$1 == "thread" { print $2, $NF }' "$out/summary")
}

@test "signals at any time, and what they interrupt" {
	generate -instructions 3000000 -- signals -scale small
	judge
	no_gap
}

@test "an overflow every so many bytes is a gap in each judge's eyes" {
	generate -overflow 8K -instructions 2000000 -- throws
	overflows=$(said overflows)
	[ "$overflows" -ge 5 ]
	"$mtbpf" decode "$out/r.mtbpf" -o "$out/r.fxt" >"$out/decoded" 2>&1
	grep "gaps: $overflows (overflow)" "$out/decoded"
	why=$(why_no_perf)
	[ -z "$why" ] || skip "perf does not judge: $why"
	perf_branches "$out/r.mtbpf" "$out/perf"
	[ "$(grep -c 'instruction trace error.*Overflow' "$out/perf.err")" -eq "$overflows" ]
	! grep 'instruction trace error type' "$out/perf.err" | grep -v Overflow || false
	# What the generator wrote last may be lost with what came behind it.
	off=$(($(wc -l <"$out/perf") - $(said branches)))
	echo "perf $(wc -l <"$out/perf"), generated $(said branches)"
	[ "${off#-}" -le "$overflows" ]
}

@test "what a crash left is there up to the last packets" {
	generate -- crash -scale small
	our_branches "$out/r.mtbpf" >"$out/ours"
	off=$(($(wc -l <"$out/ours") - $(said branches)))
	[ "${off#-}" -le 1 ]
	no_gap
}

@test "it begins and ends where it is told" {
	generate -instructions 2000000 -- throws
	our_branches "$out/r.mtbpf" >"$out/whole"
	generate -skip 1000000 -instructions 500000 -- throws
	judge
	[ "$(said instructions)" -ge 500000 ] && [ "$(said instructions)" -lt 500100 ]
	# The first branch there is begins it; what follows is a part of the whole.
	sed 1d "$out/ours" | awk '{ print $2, $3, $4 }' | head -n 1000 >"$out/part"
	awk '{ print $2, $3, $4 }' "$out/whole" >"$out/all"
	grep -Fxq "$(head -n 1 "$out/part")" "$out/all"
	awk 'NR == FNR { want[NR] = $0; n = NR; next }
		{ seen[FNR] = $0 }
		END {
			for (at = 1; at <= FNR - n; at++) {
				for (i = 1; i <= n && seen[at + i - 1] == want[i]; i++)
					;
				if (i > n)
					exit 0
			}
			exit 1
		}' "$out/part" "$out/all"
}

@test "child processes run, and are not recorded" {
	generate -- /bin/sh -c '(/bin/true); :'
	judge
	[ "$(grep -c '^thread' "$out/summary")" -eq 1 ]
}

@test "code of no file is in the recording" {
	generate -- jit
	[ "$("$mtbpf" decode "$out/r.mtbpf" -print branches | wc -l)" -eq "$(said branches)" ]
	[ "$(ls "$out/r.mtbpf/images" | wc -l)" -eq 2 ]
	no_gap
}

@test "a whole trace, written a piece at a time, is one stream" {
	generate -timing cyc -instructions 1000000 -- throws
	"$mtbpf" decode "$out/r.mtbpf" -print branches >"$out/whole"
	for size in 1000 4096 40000; do
		tests/live/split_pt.py "$size" "$out/r.mtbpf/data" "$out/perf.data"
		"$mtbpf" decode "$out/perf.data" -print branches >"$out/pieces"
		same "$out/whole" "$out/pieces"
	done
}

@test "snapshots that overlap are one stream" {
	generate -timing cyc -instructions 1000000 -- throws
	"$mtbpf" decode "$out/r.mtbpf" -print branches >"$out/whole"
	tests/live/split_pt.py --overlap 8000 20000 "$out/r.mtbpf/data" "$out/perf.data"
	"$mtbpf" decode "$out/perf.data" -print branches >"$out/pieces"
	same "$out/whole" "$out/pieces"
}

@test "a recording is made portable afterwards" {
	export HOME=$out # where perf keeps copies of programs
	cp "$O/tests/ptgen/programs/throws" "$out/program"
	generate -instructions 2000000 -- "$out/program"
	"$mtbpf" decode "$out/r.mtbpf" -print calls >"$out/calls"
	grep -q ' main$' "$out/calls"
	"$mtbpf" decode -portable "$out/r.mtbpf" -o "$out/all.mtbpf"
	mv "$out/program" "$out/moved"
	run "$mtbpf" decode "$out/r.mtbpf" -print calls
	says cannot-read-code "$out/program"
	"$mtbpf" decode "$out/all.mtbpf" -print calls >"$out/calls.all"
	same "$out/calls" "$out/calls.all"
	# Another program of that name is not what ran.
	cp "$O/tests/ptgen/programs/loop" "$out/program"
	run "$mtbpf" decode -portable "$out/r.mtbpf" -o "$out/other.mtbpf"
	[ "$status" -eq 0 ]
	says changed-since "$out/program"
	run "$mtbpf" decode -portable "$out/r.mtbpf" -o "$out/r.mtbpf"
	[ "$status" -eq 2 ]
	[ -e "$out/r.mtbpf/meta.json" ]
}

@test "what cannot be run is said" {
	run "$O/tests/ptgen/ptgen" -o "$out/x.mtbpf" -- "$BATS_TEST_FILENAME"
	[ "$status" -eq 1 ]
	[[ $output == *"nothing was generated"* ]]
	run "$O/tests/ptgen/ptgen" -o "$out/x.mtbpf"
	[ "$status" -eq 2 ]
}

@test "decode -max-memory: the newest of a trace that is decoded to more" {
	skip_with_sanitizers # mallinfo2(3) knows nothing of their allocator
	generate -timing mtc -instructions 20000000 -- "$O/tests/ptgen/programs/service"
	"$mtbpf" decode "$out/r.mtbpf" -format text >"$out/all" 2>"$out/said"
	! grep -q 'left out' "$out/said" || false
	run "$mtbpf" decode "$out/r.mtbpf" -max-memory 24M -strict -o "$out/newest.txt"
	echo "$output"
	[ "$status" -eq 4 ]
	grep -q '^warning: decoding all of the recording takes more than 24.0 MiB of memory: the oldest .* are left out$' <<<"$output"
	grep -q '^hint: .*-max-memory' <<<"$output"
	grep -q '^lost: [0-9]* bytes of trace, the oldest: .*-max-memory$' <<<"$output"
	# What both have has the same names to the end.
	[ "$(wc -l <"$out/newest.txt")" -gt 1000 ]
	[ "$(wc -l <"$out/newest.txt")" -lt "$(wc -l <"$out/all")" ]
	tail -500 "$out/newest.txt" | cut -d' ' -f5 >"$out/newest.names"
	tail -500 "$out/all" | cut -d' ' -f5 >"$out/all.names"
	same "$out/newest.names" "$out/all.names"
}
