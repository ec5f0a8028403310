#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What perf decodes of our recordings gives, through its text, the trees that we decode of them.

load helpers

setup() {
	local why
	cd_root
	why=$(why_no_perf)
	[ -z "$why" ] || skip "$why"
	out=$BATS_TEST_TMPDIR
}

generate() {
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	PATH=$O/tests/ptgen/programs:$O/programs:$PATH \
		"$O/tests/ptgen/ptgen" -o "$out/r.mtbpf" "$@" >"$out/summary" 2>&1 3>&-
}

# perf_text [OPTION]: the text with everything in it; its errors stand in their places.
perf_text() {
	perf script "$@" -i "$out/r.mtbpf" --itrace=be --ns \
		-F comm,pid,tid,time,event,ip,sym,symoff,addr,dso,flags,ipc 2>&1 3>&-
}

# Slices as "tid depth name", a thread behind another. What has no name is called by its module and an
# address in that, which perf does not say, nor what was inlined.
slices() {
	"$mtbpf" decode "$1" -no-inline -print calls | cut -d ' ' -f 1,2,5- | by_thread | awk '{
		if ($3 ~ /^\[/ && $0 !~ /\[(gap|syscall|untraced)/)
			$0 = $1 " " $2 " [nameless]"
		print
	}'
}

# same_slices OURS PERFS PROGRAM: as many, as deep; the program's functions have the same names.
# Libraries have several for one function, of which perf takes another.
same_slices() {
	nm -C "$3" | sed -E 's/^[0-9a-f]* +[tTwW] //; t; d' >"$out/own"
	paste -d '\t' "$1" "$2" | awk -F '\t' -v own="$out/own" '
		BEGIN {
			while ((getline name <own) > 0)
				is_own[name] = 1
		}
		function split_slice(text, into,    at) {
			split(text, into, " ")
			into["name"] = substr(text, length(into[1] into[2]) + 3)
		}
		{
			split_slice($1, a)
			split_slice($2, b)
			differs = a[1] != b[1] || a[2] != b[2]
			if (a["name"] != b["name"] && (a["name"] in is_own || b["name"] in is_own))
				differs = 1
			n_own += a["name"] in is_own
			if (differs && shown++ < 5)
				print NR ": " $0
		}
		END {
			print NR " slices, of which " n_own " are the program'"'"'s own"
			exit shown || n_own < 100
		}'
}

# judge PROGRAM [OPTION]: perf's decoder against ours.
judge() {
	slices "$out/r.mtbpf" >"$out/ours"
	perf_text "${@:2}" >"$out/text"
	slices "$out/text" >"$out/perfs"
	[ "$(wc -l <"$out/ours")" -eq "$(wc -l <"$out/perfs")" ]
	same_slices "$out/ours" "$out/perfs" "$1"
}

@test "a service" {
	generate -instructions 2000000 -- service -scale small
	judge "$O/tests/ptgen/programs/service"
}

@test "tail calls" {
	generate -timing cyc -instructions 2000000 -- tailcalls -scale small
	judge "$O/tests/ptgen/programs/tailcalls"
}

# bats test_tags=slow
@test "signals" {
	generate -instructions 2000000 -- signals -scale small
	judge "$O/tests/ptgen/programs/signals"
}

@test "threads" {
	generate -instructions 2000000 -- threads -scale small
	judge "$O/tests/ptgen/programs/threads"
}

# bats test_tags=slow
@test "exceptions" {
	generate -- throws 200
	# -v: the names of C++ in full. Without, an unlikely half is called what its function is.
	judge "$O/tests/ptgen/programs/throws" -v
}

@test "a recording of the soft source" {
	recordings=$out
	start_program service
	env --default-signal=INT timeout -s INT 180 "$mtbpf" record -source soft -pid "$pid" -truth "$out/truth" \
		-o "$out/r.mtbpf" >"$out/log" 2>&1 3>&- &
	recorder=$!
	# A step takes 10 us or 1 ms, by what else the machine does.
	until [ "$(wc -l <"$out/truth")" -gt 2000 ]; do
		kill -0 "$recorder"
		sleep 0.1
	done 2>/dev/null
	kill -INT "$recorder"
	wait "$recorder"
	stop_program
	judge "$O/tests/ptgen/programs/service"
}

# samples FILE: slices as "tid:start:end depth name". The dynamic linker's _start calls where a label stands
# behind the call, which perf takes for what called.
samples() {
	"$mtbpf" decode "$1" -no-inline -print calls |
		awk '{ key = $1 ":" $3 ":" $4 " " $2; sub(/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ /, ""); sub(/^_dl_start_user$/, "_start"); print key, $0 }'
}

# judge_samples PROGRAM CMD...: stacks and switches that perf has recorded of it, as we read them,
# and as perf prints them: the same slices at the same nanoseconds.
judge_samples() {
	PATH=$O/programs:$PATH perf record -q -e cpu-clock:u -F 2000 -g --switch-events \
		-o "$out/r.data" -- "${@:2}" >"$out/log" 2>&1 3>&- || [ $? -eq 124 ]
	samples "$out/r.data" >"$out/ours"
	perf script -i "$out/r.data" --ns --show-switch-events -F +pid >"$out/text" 2>&1 3>&-
	samples "$out/text" >"$out/perfs"
	[ "$(wc -l <"$out/ours")" -eq "$(wc -l <"$out/perfs")" ]
	grep -qF '[blocked]' "$out/ours"
	same_slices "$out/ours" "$out/perfs" "$O/programs/$1"
}

@test "samples of a service" {
	# It comes before others: a busy machine would leave it too few samples.
	judge_samples service nice -n -15 timeout 2 service -pause 100us
}

@test "samples of threads" {
	judge_samples threads nice -n -15 timeout 3 threads
}

@test "text of samples says what it lacks" {
	# The program runs for less than 0.1 s: at 500 Hz hardly any sample was in one_iter, and sometimes none.
	perf record -q -e cpu-clock:u -F 4000 -g -o "$out/r.data" -- "$O/programs/service" -n 300 -exit \
		>"$out/log" 2>&1 3>&-
	perf script -i "$out/r.data" -F comm,tid,time,ip,sym >"$out/text" 2>&1 3>&-
	run "$mtbpf" decode "$out/text" -o "$out/x.fxt"
	[ "$status" -eq 0 ]
	[[ "$output" == *"no context switches in the text: time off the CPU is not shown"* ]]
	[[ "$output" == *"the text lacks process ids"* ]]
	"$mtbpf" report "$out/text" -folded | grep -q one_iter
	run "$mtbpf" decode "$out/text" -print branches
	[ "$status" -eq 1 ]
	complains samples-no-branches
}

# As many calls of each of the program's functions, but for 2 in 100: behind a gap, what ran before it
# goes on where that can be told, and each decoder finds its way back at a branch of its own.
nearly_same_calls() {
	nm -C "$3" | sed -E 's/^[0-9a-f]* +[tTwW] //; t; d' >"$out/own"
	awk -v own="$out/own" '
		BEGIN {
			while ((getline name <own) > 0)
				is_own[name] = 1
		}
		{
			name = substr($0, length($1 $2) + 3)
			if (name in is_own)
				count[name] += FNR == NR ? 1 : -1
			n += name in is_own && FNR == NR
		}
		END {
			for (name in count)
				off += count[name] < 0 ? -count[name] : count[name]
			print n " calls, " off " of them differ"
			exit n < 1000 || off * 50 > n
		}' "$1" "$2"
}

@test "overflows are gaps of their kind" {
	generate -overflow 8K -skip 2000000 -instructions 2000000 -- service -scale small
	slices "$out/r.mtbpf" >"$out/ours"
	perf_text >"$out/text"
	slices "$out/text" >"$out/perfs"
	nearly_same_calls "$out/ours" "$out/perfs" "$O/programs/service"
	n=$(awk '$1 == "overflows" { print $2 }' "$out/summary")
	[ "$n" -ge 3 ]
	"$mtbpf" decode "$out/text" -o "$out/text.fxt" | grep "gaps: $n (overflow)"
}

# bats test_tags=slow
@test "less of the text, in other shapes, gives the same tree" {
	generate -instructions 500000 -- service -scale small
	perf_text >"$out/text"
	slices "$out/text" >"$out/want"
	perf script -i "$out/r.mtbpf" --itrace=b -F tid,cpu,time,ip,sym,symoff,addr,dso,flags \
		>"$out/less" 3>&-
	slices "$out/less" >"$out/got"
	same "$out/want" "$out/got"
	perf script -i "$out/r.mtbpf" --itrace=b 3>&- \
		-F comm,pid,tid,time,event,ip,sym,symoff,addr,dso,flags,ipc,insnlen,srcline,period \
		>"$out/more"
	slices "$out/more" >"$out/got"
	same "$out/want" "$out/got"
}
