# SPDX-License-Identifier: MIT
# attach and record with a command: the capture lasts as long as that runs, which is left alone.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	start service -scale small -pause 5ms
}

teardown() {
	end_started
}

@test "-- CMD: the capture ends with it, its output is untouched, its exit code is told" {
	"$O/mtbpf" record -source sample -pid "$target" -o x.mtbpf \
		-- sh -c 'echo "word  two"; echo complaint >&2; sleep 0.4; exit 7' >out 2>err
	cat err
	[ "$(<out)" = "word  two" ]
	grep -q '^complaint$' err
	grep -q '^the command has ended: the snapshot was taken now' err
	grep -q '^the program exited with status 7$' err
	[ -d x.mtbpf ]
	kill -0 "$target"
}

@test "-- CMD: a trigger that does not come while it runs is no trigger; one that does is taken, and CMD runs to its end" {
	mtbpf_run record -source sample -pid "$target" -symbol one_iter -delay-thresh 100s -o x.mtbpf -- sleep 0.3
	[ "$status" -eq 3 ]
	[[ $output == *"the command has ended before a trigger"* ]]
	mtbpf_run record -source sample -pid "$target" -symbol one_iter -o y.mtbpf -- sh -c 'sleep 4; echo whole'
	[ "$status" -eq 0 ]
	[[ $output == *"triggered"*"the program runs on as process"*"whole"* ]]
}

@test "-- CMD that cannot be run: nothing is touched where it is not found, and it is an error" {
	mtbpf_run record -source sample -pid "$target" -o x.mtbpf -- no-such-command
	[ "$status" -eq 2 ]
	complains no-program no-such-command
	[ ! -e x.mtbpf ]
	printf '\177ELF is not enough' >bad
	chmod +x bad
	mtbpf_run record -source sample -pid "$target" -o x.mtbpf -- ./bad
	[ "$status" -ne 0 ]
	says cannot-run "$PWD/bad" "Exec format error"
	mtbpf_run record -dir . -pid "$target" -- sleep 1
	[ "$status" -eq 2 ]
	complains dir-and-program
}

@test "-- CMD: a signal for mtbpf is its command's too; a killed mtbpf leaves its command alone" {
	for signal in TERM KILL; do
		"$O/mtbpf" record -source sample -pid "$target" -o "$signal.mtbpf" \
			-- sh -c 'echo $$ >pid; exec sleep 100' >log 2>&1 3>&- &
		recording=$!
		started+=("$recording")
		eventually 10 test -s pid
		eventually 10 grep -q '^recording while' log
		kill -$signal "$recording"
		eventually 10 gone "$recording"
		command=$(<pid)
		rm pid
		if [ $signal = TERM ]; then
			eventually 5 gone "$command"
			[ -e TERM.mtbpf ]
		else
			! gone "$command"
			kill "$command"
		fi
	done
}

@test "an option of another source says that it does nothing" {
	mtbpf_run record -source sample -pid "$target" -multi-thread -timer-resolution high -o x.mtbpf -- sleep 0.1
	[ "$status" -eq 0 ]
	says no-effect -multi-thread sample
	says no-effect -timer-resolution sample
	mtbpf_run record -source soft -pid "$target" -sample-rate 99 -o x.mtbpf -- sleep 0.1
	[ "$status" -eq 0 ]
	says no-effect -sample-rate soft
	[[ $output != *"-timer-resolution"* ]]
}

@test "watch: offers thresholds that can be pasted, and looks for hits in children" {
	mtbpf_run watch -pid "$target" -symbol 'one_it*' -durations -timeout 2s
	[ "$status" -eq 0 ]
	line=$(grep '^mtbpf attach' <<<"$output" | head -1)
	[[ $line == "mtbpf attach -pid $target -symbol 'one_it*' -duration-thresh "*"# p9"* ]]
	cd "$BATS_TEST_TMPDIR"
	PATH=$O:$PATH run bash -c "${line%%#*} -source sample -timeout 20ms -o offered.fxt"
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
	[ -s offered.fxt ]
	# A shell has memcpy() in its libc as everybody has, and hits it not while it waits.
	bash -c 'sleep 100; true' 3>&- &
	started+=($!)
	eventually 5 grep -q . "/proc/$!/task/$!/children"
	started+=($(<"/proc/$!/task/$!/children"))
	mtbpf_run watch -pid $! -symbol libc.so.6:fork -timeout 200ms
	[[ $output == *"process $! has children, which are not watched"*"-children follows"* ]]
	[[ $output != *"mtbpf attach"* ]]
	# Those that are forked already are not followed by -children either.
	mtbpf_run watch -pid $! -children -symbol libc.so.6:fork -timeout 200ms
	[[ $output == *"process $! forked children before mtbpf began, which are not watched"* ]]
	cd "$BATS_TEST_TMPDIR"
	mtbpf_run attach -pid $! -symbol libc.so.6:fork -source sample -timeout 200ms -o none.fxt
	[[ $output == *"process $! has children, which are not watched"* ]]
	# All of them are watched.
	mtbpf_run watch -pid "$!,$(pgrep -d, -P $!)" -symbol libc.so.6:fork -timeout 200ms
	[[ $output == *"0 hits"* && $output != *"not watched"* ]]
}

@test "watch: offers a threshold in the gap between ordinary calls and outliers" {
	"$O/programs/causes" lock >/dev/null 2>&1 3>&- &
	started+=($!)
	target=$!
	# On a busy machine, waits for a CPU may fill the gap.
	for _ in 1 2 3 4 5; do
		mtbpf_run watch -pid "$target" -symbol one_iter -durations -timeout 3s
		[ "$status" -eq 0 ]
		line=$(grep '# in the gap of the table' <<<"$output") && break
	done
	[[ $line == "mtbpf attach -pid $target -symbol one_iter -duration-thresh "*" # in the gap of the table: the "* ]]
}

@test "watch: -requests of a server without requests names other system calls" {
	mtbpf_run watch -pid "$target" -requests -timeout 200ms
	[[ $output == *"recvmmsg and sendmmsg"* ]]
}

@test "-symbol . is the program's own trigger, as magic-trace has it" {
	mtbpf_run watch -pid "$target" -symbol . -timeout 100ms
	[ "$status" -eq 2 ]
	complains no-own-snapshot hint pick-a-function
	start library
	mtbpf_run watch -pid "$target" -symbol . -timeout 300ms
	[ "$status" -eq 0 ]
	[[ $output =~ [1-9][0-9]*\ hits ]]
}
