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
		exit*) says hook-exited ./hook "$PWD/d/*" 3 ;;
		*) says hook-too-slow "*" "500 ms" ;;
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
	complains needs-dir hint add-dir
	keep -no-summary
	[ "$(ls d | wc -l)" -ge 1 ]
	[ -z "$(find d -name summary.json)" ]
}

# The service's own log: which cause each of its slow iterations had.
# bats test_tags=slow
@test "five causes at known rates: the report has them in their order, as often as the service says" {
	end_started
	mkfifo asked
	"$O/programs/causes" ask lock "$PWD/none" <asked >answers 3>&- &
	target=$!
	started+=("$target")
	exec 7>asked
	eventually 10 grep -q ready answers
	# Before all others on the machine, whose turns on its CPUs would be a cause as well.
	chrt -a -f -p 10 "$target"
	mtbpf_log=$PWD/log
	"$O/mtbpf" record -source sample -pid "$target" -symbol one_iter -duration-thresh 15ms -dir d -max-per-hour 0 \
		-keep 100 -label run=soak >"$mtbpf_log" 2>&1 3>&- 7>&- &
	recorder=$!
	started+=("$recorder")
	eventually 20 grep -q '^waiting' "$mtbpf_log"
	n=0
	for cause in lock read lock tcp lock read alarm lock read tcp branch lock read lock tcp alarm lock read tcp lock read branch alarm; do
		# Between two captures the probe is away for a moment.
		sleep 1.5
		printf 'quick\nquick\nquick\nquick\n%s\n' "$cause" >&7
		echo "$cause" >>service.log
		n=$((n + 1))
		eventually 10 enough "$n" || { cat "$mtbpf_log" && false; }
	done
	exec 7>&-
	eventually 20 gone "$recorder" || kill "$recorder"
	"$O/mtbpf" report -json -label run=soak d >json
	"$O/mtbpf" report d
	[ "$(jq .captures json)" -eq "$n" ]
	# Of each the place that is its own: what is waited for, or the code that ran.
	jq -r '.causes[] | select(.captures > 0) | "\(.captures) " + (
		if .kind == "on_cpu" or .kind == "kernel" then "branch"
		elif (.of // "") | test("^futex held by") then "lock"
		elif (.of // "") | test("pipe") then "read"
		elif (.of // "") | test("TCP") then "tcp"
		elif .kind == "blocked" then "alarm" else .cause end)' json >found
	sort service.log | uniq -c | sort -rn | awk '{ print $1, $2 }' >expected
	cat found
	diff expected found
}

enough() {
	[ "$(ls d | grep -c 'mtbpf$')" -ge "$1" ]
}
