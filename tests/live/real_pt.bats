#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Intel PT that real CPUs made for others, raw, with the code that ran. MTBPF_REAL_PT (by default
# ../shared/data/real-pt, beside the repository) is a folder of
# these, which are not ours to give away:
#
#   hello/        pt-*.bin, image.map: a process from exec to exit (carter-yagemann/ARCUS)
#   lldb-single/  *.trace, image.map: 21 instructions (LLVM's lldb tests)
#   foo/          trace, image.map: one address range of a program (nyx-fuzz/libxdc_experiments)
#
# image.map: see wrap_pt.py. The counts are of executed instructions, as libipt's own tools give them.

load helpers

setup() {
	cd_root
	MTBPF_REAL_PT=${MTBPF_REAL_PT:-$BATS_TEST_DIRNAME/../../../shared/data/real-pt}
	[ -d "$MTBPF_REAL_PT" ] || skip "there is no $MTBPF_REAL_PT"
	command -v python3 >/dev/null || skip "python3 is missing"
}

# wrap FOLDER PT [OPTION...]: sets $data, and $branches, decoded from it.
wrap() {
	local folder=$MTBPF_REAL_PT/$1 pt=$2
	shift 2
	[ -d "$folder" ] || skip "there is no $folder"
	data=$BATS_TEST_TMPDIR/perf.data
	branches=$BATS_TEST_TMPDIR/branches
	python3 tests/live/wrap_pt.py "$@" "$folder"/$pt "$folder/image.map" "$data"
	our_branches "$data" >"$branches"
	"$O/tests/oracle/compare" "$data"
}

# count KIND...: how many branches are of these
count() {
	awk -v kinds=" $* " 'index(kinds, " " $2 " ") { n++ } END { print n + 0 }' "$branches"
}

instructions() {
	"$mtbpf" decode "$data" -o "$BATS_TEST_TMPDIR/t.fxt" |
		sed -n 's/.*: \([0-9]*\) instructions.*/\1/p'
}

expect_same_as_perf() {
	local why
	why=$(why_no_perf)
	[ -z "$why" ] || skip "$why"
	perf_branches "$data" "$BATS_TEST_TMPDIR/perf"
	[ ! -s "$BATS_TEST_TMPDIR/perf.err" ]
	awk '{ print $1, $2, $3, $4 }' "$branches" >"$BATS_TEST_TMPDIR/ours"
	sed 's/ *$//' "$BATS_TEST_TMPDIR/perf" >"$BATS_TEST_TMPDIR/theirs"
	same "$BATS_TEST_TMPDIR/theirs" "$BATS_TEST_TMPDIR/ours"
}

@test "a whole process: every instruction, call, return and jump" {
	wrap hello 'pt-*.bin'
	[ "$(instructions)" -eq 147458 ]
	[ "$(count call)" -eq 710 ]
	[ "$(count return)" -eq 706 ]
	[ "$(count jmp)" -eq 1806 ]
	[ "$(count end-syscall)" -eq 27 ]
	[ "$(count gap)" -eq 0 ]
	taken=$(count jcc) # of 27,570
	[ "$taken" -gt 10000 ] && [ "$taken" -lt 27570 ]
}

@test "a whole process: branch for branch what perf decodes" {
	wrap hello 'pt-*.bin'
	expect_same_as_perf
}

@test "a short piece of a program" {
	wrap lldb-single '*.trace' --cpu 6,79,1
	[ "$(instructions)" -eq 21 ]
	[ "$(count call return end-syscall gap)" -eq 0 ]
	[ "$(count jmp)" -eq 1 ]
	[ "$(count jcc)" -eq 4 ] # of 5
	expect_same_as_perf
}

# What leaves the range is an end; perf does not decode this one: it was a virtual machine's guest.
@test "one address range, without return compression, of code in a damaged ELF file" {
	wrap foo trace --cpu 6,94,3 --full-returns
	[ "$(instructions)" -eq 117967 ]
	[ "$(count call return jmp end)" -eq $((2840 + 2164 + 1923)) ]
	[ "$(count end-syscall gap)" -eq 0 ]
}
