# SPDX-License-Identifier: MIT
# A recording in, a text out: both are in the repository (tests/golden/README).

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit
	mtbpf=$(realpath "${O:-build}/mtbpf")
	cd "$BATS_TEST_DIRNAME" || exit
}

# gives TEXT RECORDING [OPTION]...: the recording's text is that file.
gives() {
	diff "$1" <("$mtbpf" decode "${@:2}" -format text)
}

@test "calls, inlined functions, and times for all of them" {
	gives nest.txt nest
}

@test "without inlined functions the same calls have the same times" {
	gives nest-no-inline.txt nest -no-inline
	inner=' (inner|outer) \[inlined\]$'
	[ "$(grep -Ec "$inner" nest.txt)" -eq 8 ]
	diff <(cut -d' ' -f3- nest-no-inline.txt) <(grep -Ev "$inner" nest.txt | cut -d' ' -f3-)
}

# Two dozen bytes behind a TSC in the second PSB's packets: no packet begins so.
@test "behind damage the trace goes on" {
	cp -r nest "$BATS_TEST_TMPDIR/damaged"
	head -c 24 /dev/zero | tr '\0' '\331' |
		dd of="$BATS_TEST_TMPDIR/damaged/data" bs=1 seek=9507 conv=notrunc status=none
	gives nest-damaged.txt "$BATS_TEST_TMPDIR/damaged"
	grep -q '\[gap' nest-damaged.txt
}

@test "the text in a file is the text on stdout" {
	"$mtbpf" decode nest -q -o "$BATS_TEST_TMPDIR/x.txt"
	cmp nest.txt "$BATS_TEST_TMPDIR/x.txt"
	"$mtbpf" decode nest -q -o "$BATS_TEST_TMPDIR/x.txt.gz"
	gzip -dc "$BATS_TEST_TMPDIR/x.txt.gz" | cmp nest.txt
	"$mtbpf" decode nest -format text -o - | cmp nest.txt
}

# By time: what the whole has there, cut at both ends. By calls: the slices of the whole between the two.
@test "a part by time, and a part by calls" {
	gives nest-filter-time.txt nest -filter 46ms..49ms
	gives nest-filter-calls.txt nest -filter ..3ms -filter twice..leaf
	diff <(awk '$3 > 46000000 && $4 < 49000000 && /(twice|leaf)$/' nest-filter-time.txt | cut -d' ' -f3-) \
		<(awk '$3 > 46000000 && $4 < 49000000 && /(twice|leaf)$/' nest.txt | cut -d' ' -f3-)
	grep -q '\[gap: outside -filter\]' nest-filter-calls.txt
	"$mtbpf" decode nest -format text -filter hit-40ms..hit | grep -q ' spin$'
	! "$mtbpf" decode nest -format text -filter ..hit-40.2ms | grep -q ' stop$'
}

# Packets of Event Trace where the program was in its code, as a CPU writes them when it is interrupted there.
@test "what interrupted the program names the time outside of it" {
	cp -r nest "$BATS_TEST_TMPDIR/events"
	../oracle/events -interrupt nest/data "$BATS_TEST_TMPDIR/events/data"
	gives nest-events.txt "$BATS_TEST_TMPDIR/events"
	for name in 'page fault 0x7f0012345678' 'page fault' NMI 'timer interrupt' int3 interrupt SMI 'VM exit' untraced; do
		[ "$(grep -c " \[$name\]$" nest-events.txt)" -eq 5 ]
	done
	# The calls are the same.
	diff <(cut -d' ' -f2,5- nest.txt) <(cut -d' ' -f2,5- nest-events.txt | grep -Ev '^[0-9]+ \[.*\]$')
}
