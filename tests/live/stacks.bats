# SPDX-License-Identifier: MIT
# Whole stacks, from the root on, of programs whose stacks are known: tests/stacks/judge.

load helpers

setup() {
	command -v qemu-x86_64 >/dev/null || skip "qemu-x86_64 is missing (package qemu-user)"
	O=$(realpath "${O:-build}")
	PATH=$O/tests/ptgen/programs:$O/programs:$PATH
}

# OPTIONS OF PTGEN -- PROGRAM ...: sets calls, right, gaps, soon, soon_of, later, later_of and end.
judge() {
	"$O/tests/ptgen/ptgen" -instructions 2000000 -o "$BATS_TEST_TMPDIR/r.mtbpf" \
		-truth "$BATS_TEST_TMPDIR/truth" "$@" >"$BATS_TEST_TMPDIR/out" 2>&1
	VERBOSE=1 "$O/tests/stacks/judge" "$BATS_TEST_TMPDIR/r.mtbpf" "$BATS_TEST_TMPDIR/truth" \
		>"$BATS_TEST_TMPDIR/verdict"
	cat "$BATS_TEST_TMPDIR/verdict"
	read -r _ calls _ right _ gaps _ soon _ soon_of _ later _ later_of _ end _ \
		<<<"$(tr '\n' ' ' <"$BATS_TEST_TMPDIR/verdict")"
}

@test "every stack is right, from the root on" {
	judge -timing cyc -- service -scale small
	[ "$calls" -gt 10000 ]
	[ "$right" -eq "$calls" ]
	[ "$end" = ok ]
}

@test "from the middle of a ring, every stack is right as far as it is known" {
	judge -timing cyc -snapshot-size 64K -- service -scale small
	[ "$calls" -gt 10000 ]
	[ "$right" -eq "$calls" ]
}

@test "behind overflows the frames from before go on" {
	judge -timing cyc -overflow 8K -- service -scale small
	[ "$gaps" -gt 10 ]
	[ "$right" -eq "$calls" ]
	[ "$end" = ok ]
}

@test "the same without cycle-accurate time" {
	judge -timing tsc -overflow 4K -- cxx_service -scale small
	[ "$gaps" -gt 10 ]
	[ "$((right * 100))" -ge "$((calls * 99))" ]
	[ "$later" -eq "$later_of" ]
}

@test "overflows amid exceptions: frames are right again behind them" {
	judge -timing cyc -overflow 16K -- throws 300
	[ "$gaps" -gt 10 ]
	[ "$later_of" -gt 10000 ]
	[ "$((later * 100))" -ge "$((later_of * 99))" ]
}

@test "OCaml's fibers: each keeps its frames" {
	judge -timing cyc -stack-distance 256K -- effects 1000
	[ "$calls" -gt 100000 ]
	[ "$right" -eq "$calls" ]
	[ "$end" = ok ]
}

# Where a ring begins is by chance, mostly within an unwinding.
@test "rings that begin within an unwinding: what it came to is right from there on" {
	local size all=0 all_right=0
	[ -e "$O/tests/ptgen/programs/panics" ] || skip "panics was not built: rustc is missing"
	for size in 128K 192K 256K 320K; do
		judge -instructions 5000000 -timing cyc -snapshot-size $size -- panics
		all=$((all + calls)) all_right=$((all_right + right))
	done
	[ "$all" -gt 40000 ]
	[ "$((all_right * 100))" -ge "$((all * 97))" ]
}
