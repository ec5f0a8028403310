#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Perfetto's own trace processor reads what we write, and has to find exactly what we meant.

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.."
	export O=${O:-build}
	export MTBPF_TRACE_PROCESSOR=$O/trace-processor
	export WHY_SKIP=
	local said
	if ! command -v node >/dev/null; then
		WHY_SKIP="node is missing"
	elif ! said=$(tests/perfetto/get-tp.sh "$MTBPF_TRACE_PROCESSOR" 2>&1); then
		WHY_SKIP="cannot fetch Perfetto's trace processor: ${said##*$'\n'}"
	fi
}

setup() {
	[ -z "$WHY_SKIP" ] || skip "$WHY_SKIP"
	cd "$BATS_TEST_DIRNAME/../.."
}

check() {
	node tests/perfetto/check.js "$@"
}

# generate SCENARIO CALLS [SUFFIX]
generate() {
	trace=$BATS_TEST_TMPDIR/t.fxt${3:-}
	text=$BATS_TEST_TMPDIR/expected
	unwinds=$BATS_TEST_TMPDIR/unwinds
	"$O/tests/perfetto/gen_trees" "$1" "$2" "$trace" "$text" "$unwinds"
}

# The trace holds the slices of the text: same order, depths, times and names.
expect_same_tree() {
	check --tree "$trace" > "$BATS_TEST_TMPDIR/found"
	[ -s "$text" ]
	diff "$text" "$BATS_TEST_TMPDIR/found" | head -20
	cmp "$text" "$BATS_TEST_TMPDIR/found"
}

# bats test_tags=slow
@test "many calls at the same time keep their nesting" {
	generate random 200000
	expect_same_tree
}

@test "gzip: the same trace" {
	generate random 100000 .gz # several blocks
	expect_same_tree
}

# bats test_tags=slow
@test "calls deeper than the importer takes are left out, and harm no others" {
	generate deep 200000
	expect_same_tree
	[ "$(cut -d ' ' -f 2 "$text" | sort -n | tail -1)" = 511 ]
}

# bats test_tags=slow
@test "more names than the string table holds" {
	generate names 200000
	expect_same_tree
	[ "$(cut -d ' ' -f 5- "$text" | sort -u | wc -l)" -gt 32767 ]
}

# bats test_tags=slow
@test "more threads than the thread table holds" {
	generate threads 60000
	expect_same_tree
	run check --query "select count(*) from thread where name = 'worker ' || (tid - 2000)" "$trace"
	[ "$output" = 300 ]
}

@test "names that hold anything" {
	generate weird 2000
	expect_same_tree
}

@test "processes have names, and threads are theirs" {
	generate random 100
	run check --query "select p.pid, p.name, count(*) from process p join thread t using (upid)
			   where t.name is not null group by 1 order by 1" "$trace"
	[ "${lines[0]}" = '1000 gen "one" 3' ] # two workers and the hits
	[ "${lines[1]}" = '1001 gen two 2' ]
}

# Instants are slices of no length: an unwind has two of them.
# bats test_tags=slow
@test "unwinds: arrows from the call that began each to where it landed" {
	generate unwinds 20000
	expect_same_tree
	check --query "select a.ts, a.name, p.ts, p.name, b.ts from flow f
		       join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
		       join slice p on b.parent_id = p.id
		       where b.name = 'caught' and b.category = 'leap' and b.dur = 0" \
		"$trace" >"$BATS_TEST_TMPDIR/flows"
	[ "$(wc -l <"$unwinds")" -gt 500 ]
	diff <(sort "$unwinds") <(sort "$BATS_TEST_TMPDIR/flows") | head
	cmp <(sort "$unwinds") <(sort "$BATS_TEST_TMPDIR/flows")
	run check --query "select name, count(*) from slice where category = 'leap'
			   group by 1 order by 1" "$trace"
	[ "${lines[0]}" = "caught $(wc -l <"$unwinds")" ]
	[ "${lines[1]}" = "throw $(wc -l <"$unwinds")" ]
	run check --query "select distinct a.flat_key, a.display_value from slice s
			   join args a using (arg_set_id) where a.key = 'left_by'" "$trace"
	[ "$output" = "left_by throw" ]
}

@test "a program's exceptions and jumps: each arrow comes from what made it, to what took it" {
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	local rounds=13 again=22 # every third call of the recursion throws again: 0 to 4 times a round
	"$O/tests/ptgen/ptgen" -o "$BATS_TEST_TMPDIR/r.mtbpf" -- \
		"$O/tests/ptgen/programs/throws" $rounds >/dev/null
	"$O/mtbpf" decode "$BATS_TEST_TMPDIR/r.mtbpf" -o "$BATS_TEST_TMPDIR/r.fxt"
	# "from mark taker count", where taker is again, round, or else.
	run check --query "select a.name, i.name, case when h.name glob '*again*' then 'again'
				when h.name glob 'one_round*' then 'round' else 'else' end, count(*)
			   from flow f join slice a on f.slice_out = a.id
			   join slice i on f.slice_in = i.id join slice h on i.parent_id = h.id
			   group by 1, 2, 3" "$BATS_TEST_TMPDIR/r.fxt"
	echo "$output"
	[ "$(awk '$3 == "again" { n += $4 } END { print n }' <<<"$output")" = $again ]
	[ "$(awk '$2 == "caught" && $3 == "round" { n += $4 } END { print n }' <<<"$output")" = $rounds ]
	[ "$(awk '$1 == "__cxa_rethrow" { n += $4 } END { print n }' <<<"$output")" = $again ]
	[ "$(awk '$1 == "__cxa_throw" { n += $4 } END { print n }' <<<"$output")" = $rounds ]
	[ "$(awk '$1 ~ /longjmp/ { print $2, $3, $4 }' <<<"$output")" = "landed round $rounds" ]
	[[ "$output" != *else* ]]
	run check --query "select count(*) from slice s join args a using (arg_set_id)
			   where a.key = 'left_by' and s.name = '__cxa_throw'" "$BATS_TEST_TMPDIR/r.fxt"
	[ "$output" = $rounds ]
}

# told TIMING...: what is written while one thread is decoded is what the text says of its tree
told() {
	rm -rf "$BATS_TEST_TMPDIR/r".*
	"$O/tests/ptgen/ptgen" -o "$BATS_TEST_TMPDIR/r.mtbpf" "$@" -- \
		"$O/tests/ptgen/programs/throws" 13 >/dev/null
	"$O/mtbpf" decode "$BATS_TEST_TMPDIR/r.mtbpf" -o "$BATS_TEST_TMPDIR/r.fxt" >"$BATS_TEST_TMPDIR/said"
	"$O/mtbpf" decode "$BATS_TEST_TMPDIR/r.mtbpf" -format text >"$BATS_TEST_TMPDIR/r.txt"
	check --tree "$BATS_TEST_TMPDIR/r.fxt" >"$BATS_TEST_TMPDIR/tree"
	cmp "$BATS_TEST_TMPDIR/r.txt" "$BATS_TEST_TMPDIR/tree"
	grep -q " $(wc -l <"$BATS_TEST_TMPDIR/tree") slices" "$BATS_TEST_TMPDIR/said"
}

# bats test_tags=slow
@test "what is written while it is decoded: the same slices as in the text" {
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	told -timing cyc
	# Many begin and end at one time.
	told -timing tsc -tsc-interval 1ms -overflow 20K
}

@test "each hit has an arrow to a mark on its thread" {
	generate calm 5000
	run check --query "select a.category, b.category, count(*), sum(a.name = b.name), sum(h.tid = 2000)
			   from flow f join slice a on f.slice_out = a.id
			   join slice b on f.slice_in = b.id join thread_track k on b.track_id = k.id
			   join thread h using (utid) group by 1, 2" "$trace"
	[ "$output" = "hit trigger 500 500 500" ]
}

# Times, depths and names of all slices, as SQL finds them and as the text has them. Coroutines have
# ids of their own in the one, behind all threads', and "TID.N" in the other.
# bats test_tags=slow
@test "Perfetto's slices of every program's trace are those of its text" {
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	local program r=$BATS_TEST_TMPDIR/r
	for program in switches effects longjmps jit spawns goroutines panics raises; do
		[ -x "$O/tests/ptgen/programs/$program" ] || continue
		rm -rf "$r".*
		"$O/tests/ptgen/ptgen" -o "$r.mtbpf" -- "$O/tests/ptgen/programs/$program" 2 >/dev/null
		"$O/mtbpf" decode -q "$r.mtbpf" >/dev/null
		"$O/mtbpf" decode -q "$r.mtbpf" -format text >"$r.txt"
		{ grep -v '^[0-9]*\.' "$r.txt"; sed -n 's/^[0-9]*\.[0-9]* /coroutine /p' "$r.txt"; } >"$r.expected"
		check --tree "$r.fxt.gz" | sed 's/^21307[0-9]* /coroutine /' >"$r.found"
		echo "$program: $(wc -l <"$r.found") slices"
		[ "$(wc -l <"$r.found")" -gt 100 ]
		cmp "$r.expected" "$r.found"
	done
}

@test "arguments arrive" {
	generate calm 5000
	run check --query "select distinct a.flat_key from slice s join args a using (arg_set_id)
			   order by 1" "$trace"
	[ "$(echo "$output" | tr '\n' ' ')" = "address by_jump call_file call_ip call_line cut_short delay_ns \
file inferred_end inferred_start insns line module sequence tid " ]
	run check --query "select distinct display_value from args where key = 'module'
			   order by 1" "$trace"
	[ "$(echo "$output" | tr '\n' ' ')" = "libfoo.so.1 main " ]
	run check --query "select count(*) from args where key = 'address'
			   and display_value not glob '0x4*'" "$trace"
	[ "$output" = 0 ]
}

# write_words WORD...: a trace of the head, thread 1 (pid 1, tid 2), and these words
write_words() {
	trace=$BATS_TEST_TMPDIR/wrong-on-purpose/t.fxt # tests/perfetto/run leaves that folder out
	mkdir -p "${trace%/*}"
	node -e 'const [path, ...words] = process.argv.slice(1);
		 fs.writeFileSync(path, Buffer.from(new BigUint64Array(words.map(BigInt)).buffer));' \
		"$trace" 0x0016547846040010 0x21 1000000000 0x10033 1 2 "$@"
}

@test "the check fails where a slice is not closed" {
	write_words 0x01020024 5
	run check "$trace"
	[ "$status" = 1 ]
	[[ "$output" == *"unfinished slice"* ]]
}

@test "the check fails where a thread has no name" {
	write_words 0x01020024 5 0x01030024 6
	run check "$trace"
	[ "$status" = 1 ]
	[[ "$output" == *"no name: thread 2"* ]]
}

@test "the check fails where a slice was dropped" {
	write_words 0x01040034 5 10 0x01040034 7 12
	run check "$trace"
	[ "$status" = 1 ]
	[[ "$output" == *slice_drop_overlapping_complete_event* ]]
}

@test "the check fails where a record is broken" {
	write_words 0
	run check "$trace"
	[ "$status" = 1 ]
}
