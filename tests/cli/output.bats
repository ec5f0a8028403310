# SPDX-License-Identifier: MIT
# Where the results go: names and places that do not do are known before the target is touched.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	chmod -R u+w "$BATS_TEST_TMPDIR"
	end_started
}

@test "a name that is neither a trace's nor a recording's" {
	for name in x.txt x .fxt x.fxt.xz x.fxt/ ""; do
		mtbpf_run attach -pid $$ -source soft -o "$name"
		[ "$status" -eq 2 ]
		complains not-an-output-name "$name" hint output-suffixes
	done
	mtbpf_run decode x.mtbpf -o x.json
	[ "$status" -eq 2 ]
	complains not-an-output-name x.json
}

@test "a name that is too long" {
	mtbpf_run attach -pid $$ -source soft -o "$(printf '%05000d' 0).fxt"
	[ "$status" -eq 2 ]
	complains output-name-too-long 5004
}

@test "a folder that does not exist, or a file in its place" {
	mtbpf_run attach -pid $$ -source soft -o missing/x.fxt
	[ "$status" -eq 2 ]
	complains cannot-create-recording missing/x.mtbpf "No such file*" hint folder-must-exist
	touch file
	mtbpf_run attach -pid $$ -source soft -o file/x.fxt
	[ "$status" -eq 1 ]
	complains cannot-create-recording file/x.mtbpf "Not a directory" hint choose-another-place
	mkdir x.fxt
	mtbpf_run attach -pid $$ -source soft -o x.fxt
	[ "$status" -eq 2 ]
	complains cannot-overwrite x.fxt hint choose-another-name
}

@test "an attempt that fails leaves earlier results where they are, and no litter" {
	start service -scale small -pause 10ms
	mkdir trace.mtbpf trace.mtbpf.old
	echo 1 >trace.mtbpf/data
	echo 2 >trace.mtbpf.old/data
	echo 3 >trace.fxt.gz
	ls -1A >before
	for args in "attach -pid $target -source soft -symbol nosuchfunction" \
		"record -pid 2147483647 -source soft" "run -source soft -symbol nosuch -- true"; do
		mtbpf_run $args
		[ "$status" -eq 2 ]
	done
	ls -1A | diff before -
	[ "$(cat trace.mtbpf/data trace.mtbpf.old/data trace.fxt.gz | tr -d '\n')" = 123 ]
}

@test "decode -ocaml-traps: a line that is no address is named, before the recording is looked at" {
	printf '0x1000\ncamlFoo__bar\n' >traps
	mtbpf_run decode -ocaml-traps traps missing.mtbpf
	[ "$status" -eq 2 ]
	complains not-an-address traps 2 camlFoo__bar hint address-per-line
	mtbpf_run decode -ocaml-traps nothing missing.mtbpf
	[ "$status" -eq 2 ]
	complains cannot-read nothing "No such file*"
	echo 0x1000 >traps
	mtbpf_run decode -ocaml-traps traps missing.mtbpf
	complains cannot-open missing.mtbpf
}

@test "decode: what is no recording says what it is and what would be one" {
	mtbpf_run decode missing.mtbpf
	[ "$status" -eq 2 ]
	complains cannot-open missing.mtbpf "No such file*" hint name-recording
	echo gibberish >gibberish
	mtbpf_run decode gibberish
	[ "$status" -eq 1 ]
	complains not-perf-text gibberish 1 hint text-is-of-perf-script
	printf 'gib\0berish' >gibberish
	mtbpf_run decode gibberish
	[ "$status" -eq 1 ]
	complains cannot-read gibberish hint decode-reads
	mkdir empty.mtbpf
	mtbpf_run decode empty.mtbpf
	[ "$status" -eq 1 ]
	complains recording-without-data empty.mtbpf hint name-recording
	: >empty.mtbpf/data
	mtbpf_run decode empty.mtbpf
	[ "$status" -eq 1 ]
	complains incomplete-recording empty.mtbpf hint killed-or-disk-full
	mtbpf_run decode /dev/null
	[ "$status" -eq 1 ]
	complains not-a-recording /dev/null
	printf 'gib\0berish' >x.fxt.gz
	mtbpf_run decode x.fxt.gz
	[ "$status" -eq 1 ]
	complains is-a-trace x.fxt.gz hint report-reads-traces x.fxt.gz
}

@test "a recording that is somebody else's is not said to be damaged" {
	local as=()
	[ "$(id -u)" -ne 0 ] || as=(setpriv --bounding-set=-dac_override,-dac_read_search)
	command -v setpriv >/dev/null || skip "setpriv is missing"
	mkdir -p theirs.mtbpf
	echo '{}' >theirs.mtbpf/meta.json
	chmod 0 theirs.mtbpf
	for command in decode report; do
		run "${as[@]}" "$O/mtbpf" "$command" theirs.mtbpf
		printf '%s\n' "$output"
		[ "$status" -ne 0 ]
		complains cannot-read-meta "*" "Permission denied" hint made-with-sudo
	done
	chmod 700 theirs.mtbpf
}

# Its begin is on the disk long before its end: mostly it is told in between, and else it is whole.
@test "a decoder that is told to end leaves no half of a trace" {
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	"$O/tests/ptgen/ptgen" -o r.mtbpf -- "$O/tests/ptgen/programs/throws" 13 >/dev/null
	"$O/mtbpf" decode r.mtbpf -q -o whole.fxt
	for i in {1..10}; do
		rm -f r.fxt
		"$O/mtbpf" decode r.mtbpf -q -o r.fxt >out 2>&1 3>&- &
		until compgen -G 'r.fxt*' >/dev/null; do
			gone $! && break
		done
		kill -TERM $! 2>/dev/null || true
		wait $! || [ $? -eq 143 ]
		! compgen -G 'r.fxt.*' || false
		[ ! -e r.fxt ] || cmp r.fxt whole.fxt
	done
}

@test "a portable recording that is told to end leaves nothing of itself, and the one before" {
	qemu-x86_64 -help 2>/dev/null | grep -qe -plugin || skip "there is no qemu-x86_64 that takes plugins (package qemu-user up to Debian 12)"
	"$O/tests/ptgen/ptgen" -o r.mtbpf -- "$O/tests/ptgen/programs/throws" 13 >/dev/null
	"$O/mtbpf" decode r.mtbpf -portable -q -o whole.mtbpf
	cp -r whole.mtbpf p.mtbpf
	echo 1 >p.mtbpf/before
	for i in {1..10}; do
		"$O/mtbpf" decode r.mtbpf -portable -q -o p.mtbpf >out 2>&1 3>&- &
		until compgen -G 'p.mtbpf.part*' >/dev/null; do
			gone $! && break
		done
		kill -TERM $! 2>/dev/null || true
		wait $! || [ $? -eq 143 ]
		! compgen -G 'p.mtbpf.part*' || false
		# Whole, or the one before, as whole as it was; it is kept then.
		diff -r -x before whole.mtbpf p.mtbpf
		[ -e p.mtbpf/before ] || [ -e p.mtbpf.old/before ] || [ "$i" -gt 1 ]
	done
}
