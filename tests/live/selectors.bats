# SPDX-License-Identifier: MIT
# How a trigger is named: by a glob, a source line, a USDT probe, or picked at a terminal.

load ../helpers

setup() {
	[ -x "${O:?}/programs/usdt" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

watch() {
	mtbpf_run watch -pid "$target" -symbol "$1" -timeout 500ms
}

# Hits that watch counted.
hits() {
	grep -o '[0-9]* hits' <<<"$output" | tail -1 | cut -d ' ' -f 1
}

# At a terminal: script(1) is one. What FZF prints is picked.
at_terminal() {
	command -v script >/dev/null || skip "script(1) is missing"
	mkdir -p bin
	printf '#!/bin/sh\n%s\n' "$FZF" >bin/fzf
	chmod +x bin/fzf
	run timeout -k 5 20 env PATH="$PWD/bin:$PATH" script -qec "$*" /dev/null
	output=${output//$'\r'/}
	printf '%s\n' "$output" "-> $status"
}

@test "a glob that one function matches; several are listed" {
	start service -scale small
	watch 'one_it*'
	[ "$status" -eq 0 ]
	[ "$(hits)" -gt 0 ]
	watch 'table_*'
	[ "$status" -eq 2 ]
	complains ambiguous-function "table_*" hint name-by-address service
	[[ $output == *" table_rehash service"* ]]
}

@test "a source line: its code is hit" {
	start service -scale small
	line=$(grep -n 'one_iter(' "$BATS_TEST_DIRNAME/../programs/service.c" | grep TRACED | cut -d : -f 1)
	((line++)) # its brace
	watch "line:service.c:$line"
	[ "$status" -eq 0 ]
	[ "$(hits)" -gt 0 ]
	mtbpf_run list -pid "$target" "line:service.c:$line"
	[ "$status" -eq 0 ]
	[[ $output == *" service "*" one_iter"* ]]
	mtbpf_run list -pid "$target" line:nowhere.c:1
	[ "$status" -eq 2 ]
	complains no-such-source-file nowhere.c hint compile-with-g
	# A line inside it is hit, too, and delays are measured there.
	mtbpf_run attach -pid "$target" -symbol "line:programs/service.c:$((line + 1))" -delay-thresh 50us \
		-source sample -timeout 10s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"of one_iter, thread $target: "* ]]
}

@test "picked at a terminal, with fzf: what was picked is said, and can be said again" {
	start service -scale small
	FZF="grep table_rehash"
	at_terminal "$O/mtbpf" watch -pid "$target" -symbol "'table_*'" -timeout 300ms
	[ "$status" -eq 0 ]
	[[ $output =~ "picked table_rehash: -symbol '"(service:0x[0-9a-f]+)"'" ]]
	watch "${BASH_REMATCH[1]}"
	[ "$status" -eq 0 ]
	FZF="grep -E '	one_iter  service  0x[0-9a-f]+  service\.c:[0-9]+$'"
	at_terminal "$O/mtbpf" watch -pid "$target" -symbol "'?'" -timeout 300ms
	[ "$status" -eq 0 ]
	says picked one_iter
	[ "$(hits)" -gt 0 ]
	FZF="exit 130"
	at_terminal "$O/mtbpf" watch -pid "$target" -symbol "'?'" -timeout 300ms
	[ "$status" -ne 0 ]
	says no-function-picked
}

@test "picked in one of several programs, once: the others are probed where they have it by that name" {
	start service -scale small
	first=$target
	start causes branch
	printf '#!/bin/sh\necho asked >>%s/asked\ngrep "	one_iter "\n' "$PWD" >pick
	FZF=$(<pick)
	at_terminal "$O/mtbpf" watch -pid "$first,$target" -symbol "'?'" -max-hits 1
	[ "$status" -eq 0 ]
	[ "$(wc -l <asked)" -eq 1 ]
	says picked one_iter
	for stopped in "$first" "$target"; do
		kill -STOP "$stopped"
		at_terminal "$O/mtbpf" watch -pid "$first,$target" -symbol "'?'" -max-hits 1
		[ "$status" -eq 0 ]
		kill -CONT "$stopped"
	done
}

@test "without a terminal '?' says what it is for" {
	start service -scale small
	watch '?'
	[ "$status" -eq 2 ]
	complains pick-without-terminal hint list-pid "$target"
}

@test "without fzf thousands are narrowed down by what is typed" {
	command -v script >/dev/null || skip "script(1) is missing"
	start service -scale small
	mkdir bin
	for tool in script bash sh; do ln -s "$(command -v $tool)" bin/; done
	# What is typed ahead waits in the terminal, and what Enter alone means is the one that is left.
	run timeout -k 5 60 env PATH="$PWD/bin" \
		script -qec "$O/mtbpf watch -pid $target -symbol ? -timeout 300ms" /dev/null <<<$'table_rehash\n'
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"more"*"with fzf installed"*"picked table_rehash: -symbol 'service:0x"* ]]
	run timeout -k 5 60 env PATH="$PWD/bin" \
		script -qec "$O/mtbpf watch -pid $target -symbol ?" /dev/null <<<''
	printf '%s\n' "$output"
	[ "$status" -eq 2 ]
	says no-function-picked
}

@test "a USDT probe in several places: its semaphore is raised while it is set, its arguments shown" {
	start usdt
	mtbpf_run list -pid "$target" 'usdt:app:*'
	[ "$status" -eq 0 ]
	[ "$(grep -c 'usdt:app:request' <<<"$output")" -eq 2 ]
	watch usdt:app:always
	always=$(hits)
	watch usdt:app:request
	[ "$status" -eq 0 ]
	[ "$(hits)" -gt $((always / 2)) ] # the rarer place alone has a tenth
	mtbpf_run attach -pid "$target" -source sample -symbol usdt:app:request -skip 20 -timeout 10s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"waiting for a hit of usdt:app:request"* ]]
	# One in ten is the other place's; the test below is about that.
	[[ $output =~ "hit "[0-9]+" of usdt:app:request, thread $target, in serve_small, arg1 "[0-9]+", arg2 -77, arg3 5, arg4 3" ||
	   $output =~ "thread $target, in serve_large, arg1 "[0-9]+", arg2 unknown, arg3 -6, arg4 -4" ]]
	grep -q 'hit usdt:app:request' x.fxt
	# Nobody looks any more: it is passed by.
	mtbpf_run attach -pid "$target" -source sample -symbol usdt:app:always -skip 20 -timeout 10s -o y.fxt
	[ "$status" -eq 0 ]
	[[ $output == *" of usdt:app:always, thread $target, in main"* ]]
}

@test "the other place of a USDT probe is hit too, with its own arguments" {
	start usdt -slow-every 1
	mtbpf_run attach -pid "$target" -source sample -symbol 'usdt:usdt:app:req*' -skip 20 -timeout 10s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ "of usdt:app:request, thread $target, in serve_large, arg1 "[0-9]+", arg2 unknown, arg3 -6, arg4 -4" ]]
}

@test "the semaphore falls when the probe is gone" {
	start usdt
	at=$(readelf -n "$O/programs/usdt" | sed -n 's/.*Semaphore: 0x0*\([1-9a-f][0-9a-f]*\)$/\1/p' | head -1)
	base=$(awk -F - '/programs\/usdt/ { print $1; exit }' "/proc/$target/maps")
	semaphore() {
		dd if="/proc/$target/mem" bs=2 count=1 iflag=skip_bytes skip=$((16#$base + 16#$at)) status=none |
			od -An -tu2 | tr -d ' '
	}
	[ "$(semaphore)" -eq 0 ]
	"$O/mtbpf" watch -pid "$target" -symbol usdt:app:request -timeout 3s >log 2>&1 3>&- &
	started+=($!)
	raised() { [ "$(semaphore)" -gt 0 ]; }
	fell() { [ "$(semaphore)" -eq 0 ]; }
	eventually 3 raised
	eventually 10 fell
}

@test "a USDT probe that is not there: the nearest, and where the text is wrong" {
	start usdt
	watch usdt:app:requests
	[ "$status" -eq 2 ]
	complains no-usdt-probe usdt:app:requests hint meant-usdt app:request
	watch usdt:request
	[ "$status" -eq 2 ]
	[[ $output == *"  usdt:request"$'\n'"              ^"* ]]
	for how in "watch -durations -timeout 1s" "attach -source sample -duration-thresh 1ms"; do
		# shellcheck disable=SC2086
		mtbpf_run $how -pid "$target" -symbol usdt:app:always
		[ "$status" -eq 2 ]
		complains inside-a-function usdt:app:always hint name-function-or-hits
	done
}

@test "an interpreter that a program is linked with does not hide that the program is stripped; Erlang has a hint" {
	cp "$(command -v sleep)" beam.smp
	./beam.smp 100 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q beam.smp "/proc/$target/comm"
	mtbpf_run list -pid "$target" one_iter
	[ "$status" -ne 0 ]
	says may-run beam.smp runs Erlang
	says erlang-map
	echo 'int unused;' | "${CC:-gcc}" -shared -fPIC -o libpython3.9.so -x c -
	echo '#include <stdio.h>
		#include <unistd.h>
		int main(void) { printf("pid %d\n", getpid()); fflush(stdout); return pause(); }' |
		"${CC:-gcc}" -s -o linked -x c - -x none -Wl,--no-as-needed "$PWD/libpython3.9.so"
	start_file ./linked
	mtbpf_run list -pid "$target" one_iter
	[ "$status" -ne 0 ]
	says may-run libpython3.9.so 'may run' Python
	says lacks-debug-symbols linked
	says calls-need-no-symbols
}
