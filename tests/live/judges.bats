#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=slow
# Recordings of real programs, as others see them: perf decodes the same Intel PT, Perfetto's trace
# processor reads the trace, the stepper knows when each return was.

load helpers

programs="service cxx_service threads signals tailcalls"
triggered="$programs full_returns"
all="$triggered wrapped"

# What Perfetto is asked about each trace, and the tree; read by section().
perfetto_read() {
	local arg="extract_arg(s.arg_set_id, '%s')" address module file line inferred
	printf -v address "$arg" address
	printf -v module "$arg" module
	printf -v file "$arg" file
	printf -v line "$arg" line
	printf -v inferred "$arg" inferred_start
	check --query "select '= names'" \
		--query "select t.tid, t.name, p.pid, p.name from thread t join process p using (upid)
			where t.utid in (select utid from slice s join thread_track k
			on s.track_id = k.id) order by t.tid" \
		--query "select '= hits'" \
		--query "select t.name, s.depth, s.name, a.key, a.display_value from slice s
			join args a using (arg_set_id) join thread_track k on s.track_id = k.id
			join thread t using (utid) where s.category = 'hit' order by a.key" \
		--query "select '= beside the hits'" \
		--query "select count(*) from slice s where s.category != 'hit' and track_id in
			(select track_id from slice where category = 'hit')" \
		--query "select '= without a place'" \
		--query "select distinct s.category, s.name from slice s
			where s.category not in ('kernel', 'hit', 'trigger')
			and ($module is null or $address is null and $inferred is not null)" \
		--query "select '= sources'" \
		--query "select distinct ifnull($line, 0), ifnull($file, '-'), s.name from slice s
			where $module = '$2'" \
		--query "select '= tree'" --tree "$recordings/$1.fxt" >"$recordings/$1.tp" \
		2>"$recordings/$1.tp.err" || echo "check.js: status $?" >>"$recordings/$1.tp.err"
}

make_recordings() {
	local name
	measure_steps || return
	for name in $programs; do
		record "$name" "$name" 4000 || return
	done
	record full_returns service 4000 -no-ret-compression || return
	record_until wrapped service 1500 -snapshot-size 16K
}

setup_file() {
	local name program
	cd_root
	export WHY_NO_RECORDINGS= WHY_NO_PERF= WHY_NO_PERFETTO=
	WHY_NO_PERF=$(why_no_perf)
	WHY_NO_PERFETTO=$(why_no_perfetto)
	if [ "$(id -u)" != 0 ]; then
		WHY_NO_RECORDINGS="needs root for the probe"
		return
	fi
	make_recordings
	for name in $all; do
		program=$name
		[[ " $programs " == *" $name "* ]] || program=service
		our_branches "$recordings/$name.mtbpf" >"$recordings/$name.branches"
		[ -n "$WHY_NO_PERF" ] ||
			perf_branches "$recordings/$name.mtbpf" "$recordings/$name.perf" time
		[ -n "$WHY_NO_PERFETTO" ] || perfetto_read "$name" "$program"
	done
}

teardown_file() {
	cd_root
	stop_program
}

setup() {
	cd_root
}

needs_recordings() {
	[ -z "$WHY_NO_RECORDINGS" ] || skip "$WHY_NO_RECORDINGS"
}

needs_perf() {
	needs_recordings
	[ -z "$WHY_NO_PERF" ] || skip "$WHY_NO_PERF"
}

needs_perfetto() {
	needs_recordings
	[ -z "$WHY_NO_PERFETTO" ] || skip "$WHY_NO_PERFETTO"
}

# ---- our own decoder

@test "no recording decodes with a gap" {
	needs_recordings
	for name in $all; do
		[ "$(grep -c ' call ' "$recordings/$name.branches")" -gt 5 ]
		run grep ' gap ' "$recordings/$name.branches"
		[ "$status" -eq 1 ]
	done
}

@test "the small ring has wrapped, and no other" {
	needs_recordings
	for name in $all; do
		seen=$(grep -c ' return ' "$recordings/$name.branches")
		true=$(grep -c ' return ' "$recordings/$name.truth")
		echo "$name: $seen of $true returns"
		if [ "$name" = wrapped ]; then
			[ "$seen" -lt "$true" ]
		else
			[ "$seen" -eq "$true" ]
		fi
	done
}

# The soft source writes a time where 20 us have passed.
@test "each return comes when the stepper saw it" {
	needs_recordings
	for name in $all; do
		awk '$3 == "return" { print $1, substr($4, 3), $2 }' "$recordings/$name.truth" |
			by_thread >"$BATS_TEST_TMPDIR/true"
		awk '$2 == "return" { print $1, $4, $5 }' "$recordings/$name.branches" >"$BATS_TEST_TMPDIR/seen"
		awk -v name="$name" '
		FNR == NR { to[$1, ++n[$1]] = $2; time[$1, n[$1]] = $3; next }
		{ seen_to[$1, ++m[$1]] = $2; seen[$1, m[$1]] = $3; total++ }
		END {
			for (tid in m)
				for (i = 0; i < m[tid]; i++) { # from the last: a ring may have wrapped
					late = seen[tid, m[tid] - i] - time[tid, n[tid] - i]
					if (seen_to[tid, m[tid] - i] != to[tid, n[tid] - i])
						wrong++
					else if (late > 0 || late < -20000)
						off++
				}
			printf "%s: %d returns, %d to elsewhere, %d at another time\n",
				name, total, wrong, off
			exit !total || wrong || off
		}' "$BATS_TEST_TMPDIR/true" "$BATS_TEST_TMPDIR/seen"
	done
}

@test "clock_gettime runs in the vdso" {
	needs_recordings
	"$mtbpf" decode "$recordings/service.mtbpf" -print calls >"$BATS_TEST_TMPDIR/calls"
	run grep -F '[gap' "$BATS_TEST_TMPDIR/calls"
	[ "$status" -eq 1 ]
	# The oldest call may have begun before the trace.
	awk '
	expected != "" && $0 !~ expected { print "not in the vdso: " $0; bad++ }
	{ expected = "" }
	$5 == "clock_gettime" && $3 > 0 { expected = "^" $1 " " $2 + 1 " .* __vdso_clock_gettime$"; n++ }
	END { print n " calls"; exit !n || bad || expected != "" }' "$BATS_TEST_TMPDIR/calls"
}

@test "libipt's block decoder sees every branch that we see" {
	needs_recordings
	for name in $all; do
		"$O/tests/oracle/compare" "$recordings/$name.mtbpf"
	done
}

# ---- perf

@test "perf decodes every recording without an error" {
	needs_perf
	for name in $all; do
		head "$recordings/$name.perf.err"
		[ ! -s "$recordings/$name.perf.err" ]
	done
}

# A jump under the probe is the kernel's doing: we show it, perf does not.
@test "perf sees the same calls, returns and taken conditions, thread by thread" {
	needs_perf
	for name in $all; do
		for who in branches perf; do
			awk '$2 ~ /^(call|return|jcc)$/ { print $1, $2, $3, $4 }' "$recordings/$name.$who" \
				>"$BATS_TEST_TMPDIR/$who"
		done
		echo "$name"
		same "$BATS_TEST_TMPDIR/perf" "$BATS_TEST_TMPDIR/branches"
	done
}

@test "perf sees the calls and returns at the same times, to 1 us" {
	needs_perf
	for name in $all; do
		for who in branches perf; do
			awk '$2 ~ /^(call|return)$/ { print $5 }' "$recordings/$name.$who" \
				>"$BATS_TEST_TMPDIR/$who"
		done
		paste -d ' ' "$BATS_TEST_TMPDIR/perf" "$BATS_TEST_TMPDIR/branches" | awk -v name="$name" '
		{
			off = $2 > $1 ? $2 - $1 : $1 - $2
			differ += off > 0
			if (off > most)
				most = off
		}
		END {
			printf "# %s: %d of %d times differ, by %d ns at most\n", name, differ, NR, most
			exit !NR || most >= 1000
		}' | tee -a /dev/fd/3
		[ "${PIPESTATUS[1]}" -eq 0 ]
	done
}

@test "perf shows the hit, with its stack down to main" {
	needs_perf
	for name in service cxx_service signals tailcalls full_returns; do
		perf script -i "$recordings/$name.mtbpf" --itrace= -F comm,pid,event,ip,sym \
			>"$BATS_TEST_TMPDIR/hit" 2>"$BATS_TEST_TMPDIR/err" 3>&-
		[ ! -s "$BATS_TEST_TMPDIR/err" ]
		cat "$BATS_TEST_TMPDIR/hit"
		read -r pid comm <"$recordings/$name.tasks"
		[[ $(sed -n 1p "$BATS_TEST_TMPDIR/hit") =~ ^$comm\ +$pid\ +mtbpf:hit: ]]
		[[ $(sed -n 2p "$BATS_TEST_TMPDIR/hit") == *" one_iter" ]]
		[ "$(grep -c mtbpf:hit "$BATS_TEST_TMPDIR/hit")" -eq 1 ]
		grep -Eq '^[[:space:]]*[0-9a-f]+ main(\.cold)?( \(inlined\))?$' "$BATS_TEST_TMPDIR/hit"
		# Unwound: the C library has no frame pointers.
		grep -q ' _start$' "$BATS_TEST_TMPDIR/hit"
	done
}

# ---- Perfetto

@test "Perfetto reads every trace without an error" {
	needs_perfetto
	for name in $all; do
		head "$recordings/$name.tp.err"
		[ ! -s "$recordings/$name.tp.err" ]
	done
}

# calls NAME: what the trace should show
calls() {
	"$mtbpf" decode "$recordings/$1.mtbpf" -print calls | by_thread
}

@test "Perfetto shows the calls that decode prints" {
	needs_perfetto
	for name in $all; do
		calls "$name" >"$BATS_TEST_TMPDIR/calls"
		section tree "$recordings/$name.tp" |
			grep -v '^[0-9]* 0 [0-9]* [0-9]* hit one_iter$' >"$BATS_TEST_TMPDIR/tree"
		echo "$name"
		same "$BATS_TEST_TMPDIR/calls" "$BATS_TEST_TMPDIR/tree"
	done
}

@test "processes and threads have their own names and ids" {
	needs_perfetto
	for name in $programs; do
		section names "$recordings/$name.tp" | grep -v ' mtbpf hits ' >"$BATS_TEST_TMPDIR/names"
		read -r pid comm <"$recordings/$name.tasks"
		cat "$recordings/$name.tasks" "$BATS_TEST_TMPDIR/names"
		# Those that were there at the end. A helper came and went, and may have before its name was read.
		while read -r tid thread; do
			[ "$thread" = helper ] || [ -z "$thread" ] ||
				grep -qx "$tid $thread $pid $comm" "$BATS_TEST_TMPDIR/names"
		done <"$recordings/$name.tasks"
		run grep -Evx "[0-9]+ ($comm|worker-[0-3]|helper) $pid $comm" "$BATS_TEST_TMPDIR/names"
		[ "$status" -eq 1 ]
	done
}

# meta NAME KEY: of the recording's meta.json
meta() {
	sed -n "s/^[[:space:]]*\"$2\":[[:space:]]*\"\(.*\)\",*$/\1/p" "$recordings/$1.mtbpf/meta.json"
}

@test "the hit is on a track of its own, with its arguments" {
	needs_perfetto
	for name in $triggered; do
		section hits "$recordings/$name.tp" | tee "$BATS_TEST_TMPDIR/hits"
		[ "$(cut -d ' ' -f 1-6 "$BATS_TEST_TMPDIR/hits")" = "mtbpf hits 0 hit one_iter address
mtbpf hits 0 hit one_iter delay_ns
mtbpf hits 0 hit one_iter sequence
mtbpf hits 0 hit one_iter threshold_ns
mtbpf hits 0 hit one_iter tid
mtbpf hits 0 hit one_iter time" ]
		read -r address delay_ns sequence threshold_ns tid time < \
			<(cut -d ' ' -f 7 "$BATS_TEST_TMPDIR/hits" | paste -s -d ' ')
		[ "$address" = "$(meta "$name" probe_ip)" ]
		[ "$threshold_ns" = "$(printf %d "$(meta "$name" threshold_ns)")" ]
		[ "$delay_ns" -ge "$threshold_ns" ]
		[[ $time = 20??-??-??T??:??:??.???Z ]]
		[ "$sequence" -gt 1 ]
		grep -q "^$tid " "$recordings/$name.tasks"
		[ "$(section 'beside the hits' "$recordings/$name.tp")" = 0 ]
	done
}

@test "every function has a module, and an address where its entry was not seen" {
	needs_perfetto
	for name in $all; do
		run section 'without a place' "$recordings/$name.tp"
		echo "$name: $output"
		[ -z "$output" ]
	done
}

# What the compiler and the linker made has no line; a function's is where it is named, or the next.
@test "every function of the program has its file and line" {
	needs_perfetto
	for name in $programs; do
		section sources "$recordings/$name.tp" >"$BATS_TEST_TMPDIR/sources"
		grep -q " tests/programs/$name\.cc* one_iter" "$BATS_TEST_TMPDIR/sources"
		while read -r line file function; do
			echo "$name: $function: $file:$line"
			case "$file $function" in
			"- "*@plt | "- _"* | "- ["*) continue ;;
			/*) continue ;; # the compiler's headers
			esac
			function=${function%%[(<]*}
			function=${function##*[: ~]}
			sed -n "$((line - 1)),${line}p" "$file" | grep -qw -- "$function"
		done <"$BATS_TEST_TMPDIR/sources"
	done
}

@test "a .fxt.gz shows the same tree" {
	needs_perfetto
	"$mtbpf" decode "$recordings/signals.mtbpf" -q -o "$BATS_TEST_TMPDIR/t.fxt.gz"
	[ "$(od -An -N2 -tx1 "$BATS_TEST_TMPDIR/t.fxt.gz")" = " 1f 8b" ]
	check --tree "$BATS_TEST_TMPDIR/t.fxt.gz" >"$BATS_TEST_TMPDIR/tree"
	section tree "$recordings/signals.tp" >"$BATS_TEST_TMPDIR/expected"
	same "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/tree"
}

# ---- decode

@test "a .fxt.zst holds the same bytes" {
	needs_recordings
	command -v zstd >/dev/null || skip "zstd is missing"
	"$mtbpf" decode "$recordings/threads.mtbpf" -q -o "$BATS_TEST_TMPDIR/t.fxt.zst"
	zstd -q -d "$BATS_TEST_TMPDIR/t.fxt.zst" -o "$BATS_TEST_TMPDIR/t.fxt"
	cmp "$BATS_TEST_TMPDIR/t.fxt" "$recordings/threads.fxt"
}

@test "decode makes what attach made, and the same again" {
	needs_recordings
	for name in $all; do
		for again in 1 2; do
			"$mtbpf" decode "$recordings/$name.mtbpf" -q -o "$BATS_TEST_TMPDIR/t.fxt"
			cmp "$BATS_TEST_TMPDIR/t.fxt" "$recordings/$name.fxt"
			rm "$BATS_TEST_TMPDIR/t.fxt"
		done
	done
}

@test "decode works from elsewhere, with a slash behind, and writes beside the recording" {
	needs_recordings
	cp -r "$recordings/service.mtbpf" "$BATS_TEST_TMPDIR/copy.mtbpf"
	mkdir "$BATS_TEST_TMPDIR/elsewhere"
	cd "$BATS_TEST_TMPDIR/elsewhere"
	"$mtbpf" decode ../copy.mtbpf/ -q
	gunzip ../copy.fxt.gz
	cmp ../copy.fxt "$recordings/service.fxt"
	cd "$BATS_TEST_TMPDIR"
	rm copy.fxt
	"$mtbpf" decode copy.mtbpf// -q
	gunzip copy.fxt.gz
	cmp copy.fxt "$recordings/service.fxt"
}

# refuses PATH STATUS WORDS: one line with the words, a hint, no trace
refuses() {
	local status=0 dir=$BATS_TEST_TMPDIR
	"$mtbpf" decode "$1" -o "$dir/refused.fxt" >"$dir/stdout" 2>"$dir/stderr" || status=$?
	cat "$dir/stdout" "$dir/stderr"
	[ "$status" -eq "$2" ]
	[ ! -s "$dir/stdout" ]
	[ "$(wc -l <"$dir/stderr")" -eq 2 ]
	[[ $(sed -n 1p "$dir/stderr") == "mtbpf: "*"$1"*"$3"* ]]
	[[ $(sed -n 2p "$dir/stderr") == "hint: "* ]]
	[ -z "$(ls "$dir" | grep refused)" ]
}

@test "decode refuses what is no recording" {
	dir=$BATS_TEST_TMPDIR/in
	mkdir -p "$dir/no-data.mtbpf" "$dir/no-meta.mtbpf"
	: >"$dir/no-meta.mtbpf/data"
	: >"$dir/empty"
	echo "# a text" >"$dir/text"
	{ echo "a longer text"; seq 1000; } >"$dir/long-text"
	refuses "$dir/missing" 2 "No such file"
	refuses "$dir/no-data.mtbpf" 1 "contains neither meta.json nor data"
	refuses "$dir/no-meta.mtbpf" 1 "meta.json is missing"
	refuses "$dir/empty" 1 "empty"
	refuses "$dir/text" 1 "but no branches or stacks"
	refuses "$dir/long-text" 1 "but no branches or stacks"
	refuses /dev/null 1 "not a regular file"
}

@test "decode refuses a recording that was cut" {
	needs_recordings
	cp -r "$recordings/service.mtbpf" "$BATS_TEST_TMPDIR/cut.mtbpf"
	truncate -s -5000 "$BATS_TEST_TMPDIR/cut.mtbpf/data"
	refuses "$BATS_TEST_TMPDIR/cut.mtbpf" 1 "truncated"
}

@test "decode refuses a perf.data without Intel PT" {
	command -v perf >/dev/null || skip "perf is missing"
	perf record -q -e dummy:u -o "$BATS_TEST_TMPDIR/no-pt" true 3>&- ||
		skip "perf cannot record here"
	refuses "$BATS_TEST_TMPDIR/no-pt" 1 "neither Intel PT nor call chains"
	perf record -q -e dummy:u -o - true 2>/dev/null 3>&- | cat >"$BATS_TEST_TMPDIR/pipe"
	refuses "$BATS_TEST_TMPDIR/pipe" 1 "perf record -o -"
}
