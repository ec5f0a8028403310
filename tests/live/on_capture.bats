#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What record -dir does with each recording once it is whole: a summary, and the user's program.

load ../helpers

setup() {
	[ -x "${O:?}/programs/causes" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	begin_log told
	start causes read
}

teardown() {
	end_started
}

# hook LINES: a program that tells what it was given, and then does LINES.
hook() {
	cat >hook <<-END
		#!/bin/sh
		echo "\$# \$(cd "\$1" && [ -s meta.json ] && [ -s summary.json ] && pwd)" >>$PWD/told
		$1
	END
	chmod +x hook
}

# keep ARGS: recordings of slow calls for three seconds, in d.
keep() {
	mtbpf_run record -source sample -pid "$target" -symbol one_iter -duration-thresh 15ms -dir d -timeout 3s \
		-max-per-hour 0 -keep 100 "$@"
}

@test "the program runs with each recording's path, once it is whole and has its summary; report reads these" {
	hook ''
	keep -on-capture ./hook
	echo "$output"
	[ "$status" -eq 0 ]
	ls -d "$PWD"/d/*.mtbpf | sed 's/^/1 /' >expected
	[ "$(wc -l <expected)" -ge 1 ]
	diff expected told
	chmod -w d/*.mtbpf
	"$O/mtbpf" report -json d >json
	# Whatever else is slow on this machine, the answer comes late in each.
	[ "$(jq '[.causes[] | select(.kind == "blocked" and .of == "read of pipe:[*]" and .path == ["one_iter", "read"])
		| .captures + .also_in] | add' json)" -ge 1 ]
	[ "$(jq -r '.files | map(.no_report) | unique | tostring' json)" = '[null]' ]
}

# bats test_tags=slow
@test "one that fails, hangs, or is not there: said, counted, ended; no capture waits for it" {
	for line in 'exit 3' 'sleep 60'; do
		rm -rf d
		hook "$line"
		keep -on-capture ./hook -on-capture-timeout 500ms -metrics unix:m
		echo "$output"
		[ "$status" -eq 0 ]
		[ "$(ls d | wc -l)" -ge 1 ]
		case $line in
		exit*) [[ $output == *"-on-capture: ./hook $PWD/d/"*" exited with 3"* ]] ;;
		*) [[ $output == *"takes longer than 500 ms: it is ended"* ]] ;;
		esac
	done
	! pgrep -f "^sleep 60$" || false
	rm -rf d
	keep -on-capture ./none
	[ "$status" -eq 0 ]
	[[ $output == *"cannot run ./none: No such file"* ]]
	[ "$(ls d | wc -l)" -ge 1 ]
}

@test "without -dir there is nothing to run it for; -no-summary decodes nothing" {
	mtbpf_run record -pid "$target" -on-capture true -timeout 1s
	[ "$status" -eq 2 ]
	complains "need a folder" "-dir"
	keep -no-summary
	[ "$(ls d | wc -l)" -ge 1 ]
	[ -z "$(find d -name summary.json)" ]
}
