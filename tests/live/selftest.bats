#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mtbpf selftest: its own programs, recorded and judged by each source that works here.

load ../helpers

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root for the probe"
	cd "$BATS_TEST_TMPDIR" || return
}

# is VERDICT SOURCE NAME: that line of the output.
is() {
	grep -Eq "^$2 +$3 +$1 " <<<"$output" || { echo "$output" && false; }
}

# verdicts: the results on stdin, but for those that only a running target has.
verdicts() {
	grep -E '^(pt|sample|soft) ' | grep -vE 'target afterwards|perf trace' | sed -E 's/  +/ /g' | sort
}

@test "selftest -source soft: every program's calls are at their depth, the recordings stay with -keep, -replay judges them the same" {
	bundle=()
	! command -v zstd >/dev/null || bundle=(-bundle soft.tar.zst)
	# It comes before others: each step is a turn of two processes, and selftest waits for three minutes at most.
	run nice -n -15 "$O/mtbpf" selftest -source soft -keep kept "${bundle[@]}"
	[ "$status" -eq 0 ]
	for name in calls "tail calls" recursion exceptions "forced unwinding" longjmp signals threads fork libraries "code without file" \
		"system calls" "page faults" traps "second stack" times gaps "target afterwards"; do
		is ok soft "$name"
	done
	grep -Eq '^soft +calls +ok +10 of 10 calls at the right depth$' <<<"$output"
	[[ $output == *"20 passed, 0 failed, 0 skipped" ]] || { ! command -v perf && [[ $output == *"18 passed, 0 failed, 2 skipped" ]]; }
	"$O/mtbpf" decode -q kept/soft.mtbpf -o soft.fxt
	[ -s soft.fxt ]
	[ -z "${bundle[*]}" ] || [ "$(verdicts <<<"$output")" = "$("$O/mtbpf" selftest -replay soft.tar.zst | verdicts)" ]
}

@test "selftest -source sample: times of functions and of a sleep are those of the program's own clock" {
	run "$O/mtbpf" selftest -source sample
	[ "$status" -eq 0 ]
	[[ $output == *"8 passed, 0 failed, 0 skipped" ]]
	[ -z "$(ls)" ]
}

@test "selftest -only with a name that no check has: nothing was tested, because of that" {
	run "$O/mtbpf" selftest -source sample -only no-such-check
	[ "$status" -eq 1 ]
	complains only-leaves-nothing hint without-only
}

@test "selftest -source pt without Intel PT: skipped with the reason, and nothing was tested" {
	! has_pt || skip "this machine has Intel PT"
	run "$O/mtbpf" selftest -source pt
	[ "$status" -eq 1 ]
	is skipped pt all
	[[ $output == *"0 passed, 0 failed, 1 skipped"* ]]
	complains nothing-tested hint check-says
}

@test "selftest -json: an array of results" {
	run "$O/mtbpf" selftest -source sample -source pt -json
	[ "$status" -eq 0 ]
	python3 - 3>&- <<-EOF
		import json
		results = json.loads('''$output''')
		assert {r["source"] for r in results} == {"sample", "pt"}, results
		assert all(set(r) == {"source", "name", "verdict", "found", "loss", "meanwhile"} for r in results)
	EOF
}

@test "selftest: a recording that cannot be made is a failed check that says why" {
	# The stepper works without rights, but the probe does not.
	own=$(mktemp -d /tmp/mtbpf-selftest-own.XXXXXX)
	cp "$O/mtbpf" "$own"
	chmod 755 "$own" "$own/mtbpf"
	run env TMPDIR=/tmp setpriv --reuid 65534 --regid 65534 --clear-groups "$own/mtbpf" selftest -source soft
	rm -rf "$own"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output =~ soft\ +recording\ +failed\ +soft:\ .mtbpf\ record.\ ended\ with\ 1:\ mtbpf:\ .+ ]]
}

# bats test_tags=slow
@test "selftest -bundle: -replay judges it the same, and it has nothing but mtbpf's own recordings" {
	command -v zstd >/dev/null || skip "zstd is missing"
	# All checks of the stepper are replayed above: stepping takes half a minute.
	checks=(-only calls -only "system calls" -only "perf's judgement")
	for check in "long call" "short call" sleep; do checks+=(-only "$check, fp" -only "$check, dwarf"); done
	mkdir -p secretuser/tmp
	cp "$O/mtbpf" secretuser/
	cp "$(command -v bash)" secretcomm
	others=
	for _ in $(seq "$(nproc)"); do
		./secretcomm -c 'while [ -d secretuser ]; do sleep 0.01; done' 3>&- &
		others="$others $!"
	done
	SECRET=secretenv TMPDIR=$PWD/secretuser/tmp unshare --uts sh -c 'hostname secrethost
		exec secretuser/mtbpf selftest -source soft -source sample "$@" -bundle all.tar.zst' sh "${checks[@]}" >made
	kill $others
	[ "$(stat -c %a all.tar.zst)" = 600 ]
	"$O/mtbpf" selftest -replay all.tar.zst "${checks[@]}" >replayed
	[ "$(verdicts <made)" = "$(verdicts <replayed)" ]
	mkdir content
	tar --zstd -C content -xf all.tar.zst
	[ "$(ls content | sed 's/\..*//' | sort -u | tr '\n' ' ')" = "facts results sample-dwarf sample-fp soft soft-perf " ]
	grep -q '^kernel: Linux' content/facts.txt
	# Nothing of the user's: the host's name, the folders, the environment, and the processes that took the CPU.
	! grep -raE 'secret(host|user|env|comm)' content
	# One call that the program did not note: the replay tells.
	sed -i '0,/calls_leaf/{/calls_leaf/d}' content/soft.truth
	tar --zstd -C content -cf changed.tar.zst .
	run "$O/mtbpf" selftest -replay changed.tar.zst
	[ "$status" -eq 1 ]
	grep -Eq '^soft +calls +failed' <<<"$output"
	run "$O/mtbpf" selftest -replay /etc/passwd
	[ "$status" -eq 1 ]
	complains cannot-read /etc/passwd "tar has failed" hint give-bundle
}

# bats test_tags=slow
@test "selftest that is ended by a signal leaves no process and no folder" {
	mkdir tmp
	env --default-signal=INT TMPDIR="$PWD/tmp" "$O/mtbpf" selftest -source soft >out 2>&1 3>&- &
	selftest=$!
	eventually 10 grep -q . out || true
	[ -n "$(ls tmp)" ]
	children=$(pgrep -P "$selftest" | tr '\n' ' ')
	[ -n "$children" ]
	kill -INT "$selftest"
	wait "$selftest" || true
	for child in $children; do
		eventually 5 gone "$child"
	done
	[ -z "$(ls tmp)" ]
}

@test "selftest refuses what it does not know" {
	run "$O/mtbpf" selftest -source perf
	[ "$status" -eq 2 ]
	complains bad-source perf
	run "$O/mtbpf" selftest -keep /nonexistent/folder
	[ "$status" -ne 0 ]
	complains cannot-make-folder /nonexistent/folder hint choose-with-keep
}

# probe_offset FILE FUNCTION: where in the file the function is.
probe_offset() {
	nm "$1" | perl -e '
		my ($file, $name) = @ARGV;
		my $at;
		while (<STDIN>) { $at = hex $1 if /^([0-9a-f]+) \w \Q$name\E$/ }
		for (`readelf -Wl $file`) {
			next unless /^\s*LOAD\s+(0x\S+)\s+(0x\S+)\s+\S+\s+(0x\S+)/;
			my ($offset, $start, $size) = (hex $1, hex $2, hex $3);
			printf "0x%x\n", $at - $start + $offset if $at >= $start && $at < $start + $size;
		}' "$1" "$2"
}

@test "a probe that is left in a program is noticed" {
	tracing=/sys/kernel/tracing
	[ -w "$tracing/uprobe_events" ] || skip "no tracefs"
	cp "$O/mtbpf" copy
	echo "p:selftest_$$/left $PWD/copy:$(probe_offset copy mtbpf_hit)" >>"$tracing/uprobe_events"
	echo 1 >"$tracing/events/selftest_$$/left/enable"
	run ./copy selftest -source sample -only "target afterwards, fp"
	echo 0 >"$tracing/events/selftest_$$/left/enable"
	echo "-:selftest_$$/left" >>"$tracing/uprobe_events"
	[ "$status" -eq 1 ]
	[[ $output == *"failed   a probe is left in the target"* ]]
}
