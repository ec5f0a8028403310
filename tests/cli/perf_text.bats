# SPDX-License-Identifier: MIT
# Text of perf script, of several versions, written by hand: no perf is needed.

load ../helpers

setup() {
	golden=$BATS_TEST_DIRNAME/../golden/perf_text
	cd "$BATS_TEST_TMPDIR"
}

@test "the text of each version gives its tree" {
	for text in "$golden"/*.txt; do
		mtbpf_run decode "$text" -print calls
		[ "$status" -eq 0 ]
		diff "${text%.txt}.calls" - <<<"$output"
	done
}

@test "from a pipe, and with its lines ended by CR LF: the same" {
	for text in "$golden"/*.txt; do
		sed 's/$/\r/' "$text" | "$O/mtbpf" decode - -print calls | diff "${text%.txt}.calls" -
		"$O/mtbpf" decode <(cat "$text") -print calls | diff "${text%.txt}.calls" -
	done
}

@test "a trace, and what was in the text beside it" {
	mtbpf_run decode "$golden/6.15-marks.txt" -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"12 instructions, 3 slices, 1 thread"* ]]
	[[ $output == *"with unknown flags, treated as jumps: 1"* ]]
	[[ $output == *"lines without branches, ignored: 2"* ]]
	[[ $output == *"not taken, left out: 1"* ]]
	[ -s x.fxt ]
	mtbpf_run decode "$golden/6.1-threads.txt" -o x.fxt
	[[ $output == *"12 branches, 6 slices, 2 threads"* ]]
	[[ $output == *"gaps: 1 (overflow), 140 ns"* ]]
	[[ $output != *"left out"* ]]
}

@test "its branches" {
	mtbpf_run decode "$golden/6.1-threads.txt" -print branches
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 13 ]
	[[ $output == *"21 8000000120 call 55aa00001010 55aa00000040"* ]]
	[[ $output == *"22 8000000130 gap 0 0 overflow"* ]]
}

@test "text without branches is refused, with what text would do" {
	echo "it was a dark and stormy night" >x.txt
	mtbpf_run decode x.txt
	[ "$status" -eq 1 ]
	complains not-perf-text x.txt 1 hint text-is-of-perf-script
	mtbpf_run decode - </dev/null
	[ "$status" -eq 1 ]
	complains not-perf-text stdin 0 s hint text-is-of-perf-script
	[ ! -e trace.fxt.gz ]
}

@test "without flags: a tree of jumps, and a warning" {
	echo "1/1 1.5: branches: 401000 main+0x0 => 402000 work+0x0" >x.txt
	mtbpf_run decode x.txt -o x.fxt
	[ "$status" -eq 0 ]
	says no-kinds-in-text
}

@test "text has no code to take along" {
	mtbpf_run decode -portable "$golden/kernel.txt" -o x.mtbpf
	[ "$status" -eq 1 ]
	complains portable-text "*kernel.txt" hint use-recording
	[ ! -e x.mtbpf ]
}

@test "names that would do something to a terminal do not" {
	printf '1/1 1.5: branches: call 401000 a\e[31m+0x0 => 402000 b\a+0x0 (\e]0;x\a)\n' >x.txt
	"$O/mtbpf" decode x.txt -print calls >out
	! grep -q $'[\e\a]' out || false
	grep -q 'a?\[31m' out
}
