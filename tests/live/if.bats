# SPDX-License-Identifier: MIT
# -if: hits count by their arguments, what a call returns, and their thread; on a program whose arguments say what each call
# does.

load ../helpers

setup() {
	[ -x "${O:?}/programs/cputime" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	start cputime
}

teardown() {
	end_started
}

# least_ms: the shortest duration's bucket of watch, in ms.
least_ms() {
	awk '/ : [0-9]/ { print int($1 * ($2 == "s" ? 1e3 : $2 == "ms" ? 1 : $2 == "us" ? 1e-3 : 1e-6)); exit }' <<<"$output"
}

# counts N TERMS: watch counts so many of 200 hits of every call, which takes one in `N` of them.
counts() {
	mtbpf_run watch -pid "$target" -symbol handle -if "$2" -timeout 2s
	[ "$status" -eq 0 ]
	[[ $output =~ ^([0-9]+)\ hits ]] || [[ $output =~ ([0-9]+)\ hits ]]
	local hits=${BASH_REMATCH[1]}
	mtbpf_run watch -pid "$target" -symbol handle -timeout 2s
	[[ $output =~ ([0-9]+)\ hits ]]
	echo "$hits of ${BASH_REMATCH[1]}, one in $1"
	[ $((hits * $1)) -gt $((BASH_REMATCH[1] / 3)) ] && [ $((hits * $1)) -lt $((BASH_REMATCH[1] * 3)) ]
}

@test "arguments: by their types, and several terms" {
	mtbpf_run watch -pid "$target" -symbol handle -durations -if '(int)arg1 == 2' -max-hits 5
	[ "$status" -eq 0 ]
	# Each of them sleeps for 30 ms.
	[ "$(least_ms)" -ge 16 ]
	counts 20 '(int)arg1 == 2'
	counts 2 '(unsigned char)arg2 & 1 && (long)arg3 < 0'
	counts 20 '(unsigned char)arg2 >= 14 && (int)arg1 != 0 && (long)arg3 <= -14 && tid == '"$target"
	mtbpf_run watch -pid "$target" -symbol handle -if '(long)arg3 > 0' -timeout 500ms
	[[ $output == *"0 hits"* ]]
}

@test "what a call returns, and the thread's name" {
	mtbpf_run attach -source sample -pid "$target" -symbol handle -if '(int)retval < 0' -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ call\ [0-9]+\ of\ handle,\ thread\ $target:\ took\ ([0-9]+)[0-9.]*\ ms ]]
	[ "${BASH_REMATCH[1]}" -ge 30 ]
	# As an unsigned number it never is.
	mtbpf_run watch -pid "$target" -symbol handle -durations -if '(unsigned)retval < 0' -timeout 500ms
	[[ $output != *" : "* ]]
	mtbpf_run attach -source sample -pid "$target" -symbol handle -if 'comm == "cputime" && (int)arg1 == 1' -o y.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"of handle, thread $target, arg1 1"* ]]
	mtbpf_run attach -source sample -pid "$target" -symbol handle -if 'comm != "cputime"' -timeout 2s -o z.fxt
	[ "$status" -eq 3 ]
	says no-hit-matched-if handle
}

@test "types by the debug info" {
	mtbpf_run watch -pid "$target" -symbol handle -durations -if 'arg1 == 2 && arg3 < 0' -max-hits 5
	[ "$status" -eq 0 ]
	[ "$(least_ms)" -ge 16 ]
	counts 2 'arg2 & 1 && arg3 < 0'
	mtbpf_run attach -source sample -pid "$target" -symbol handle -if 'retval < 0' -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ call\ [0-9]+\ of\ handle,\ thread\ $target:\ took\ ([0-9]+)[0-9.]*\ ms ]]
	[ "${BASH_REMATCH[1]}" -ge 30 ]
}

# Their calls end at the return instructions: there the register has the value.
@test "what calls return that exceptions and the collector may leave" {
	[ -x "$O/programs/rejects" ] || skip "the C++ sample is not built"
	start rejects
	# It returns one more than its argument, unless an exception leaves it: 9, 19 and so on.
	mtbpf_run attach -source sample -pid "$target" -symbol handle -if 'retval & 1' -print arg1,retval -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ of\ handle,\ thread\ $target:\ took\ .*,\ arg1\ ([0-9]+),\ retval\ ([0-9]+) ]]
	[ "${BASH_REMATCH[2]}" -eq $((BASH_REMATCH[1] + 1)) ] && [ $((BASH_REMATCH[1] % 10)) -ne 9 ] && [ $((BASH_REMATCH[2] % 2)) -eq 1 ]
	mtbpf_run watch -pid "$target" -symbol handle -durations -if 'retval < 0' -timeout 500ms
	[ "$status" -eq 0 ]
	[[ $output != *" : "* ]]
	# As chosen by the user, too.
	mtbpf_run watch -pid "$target" -symbol handle -durations -if 'retval & 1' -return-probes ret-insns -timeout 1s
	[ "$status" -eq 0 ]
	[[ $output == *" : "* ]]
	for command in attach 'watch -durations'; do
		# shellcheck disable=SC2086
		mtbpf_run $command -pid "$target" -symbol forward -if 'retval > 0'
		[ "$status" -eq 2 ]
		complains retval-after-jump -if forward forward + '*' hint leave-out-retval '*-return-probes uretprobe, which ends the program*'
	done
	! gone "$target" || false
	[ -x "$O/programs/collects" ] || return 0
	start collects
	# One call in 64 returns 1016, whose tagged form is 2033, and none 1000.
	mtbpf_run watch -pid "$target" -symbol Collects.count -durations -if '(long)retval == 2033' -timeout 2s
	[ "$status" -eq 0 ]
	[[ $output == *" : "* ]]
	mtbpf_run watch -pid "$target" -symbol Collects.count -durations -if '(long)retval == 2001' -timeout 500ms
	[ "$status" -eq 0 ]
	[[ $output != *" : "* ]]
	mtbpf_run watch -pid "$target" -symbol Collects.handle -durations -if '(long)retval == 2033'
	[ "$status" -eq 2 ]
	complains retval-after-jump hint leave-out-retval
	mtbpf_run watch -pid "$target" -symbol Collects.count -if '(long)arg1 == 1'
	[ "$status" -eq 2 ]
	complains "OCaml passes arguments in other registers"
	! gone "$target" || false
}

@test "what cannot be compared is refused" {
	local terms
	for terms in '' 'arg7 == 1' 'arg1' '(int)arg1 > ' '(int)arg1 > x' '(int)arg1 > 1.5' '(int)arg1 == 1 &&' '(int)tid == 1' \
		'comm < "a"' 'comm == a' 'comm == "sixteen letters x"' '(int)arg1 == 1 || (int)arg2 == 1' \
		'tid==1&&tid==1&&tid==1&&tid==1&&tid==1' '(int)arg1 == 99999999999999999999999'; do
		mtbpf_run attach -pid "$target" -symbol handle -if "$terms"
		[ "$status" -eq 2 ]
		complains "-if: "
	done
	# Without debug info their types have to be said.
	end_started
	cp "$O/programs/cputime" bare
	objcopy -g bare
	start_file ./bare
	for terms in 'arg1 == 1' 'retval < 0'; do
		mtbpf_run attach -pid "$target" -symbol handle -if "$terms"
		[ "$status" -eq 2 ]
		complains "its type is not known"
	done
	mtbpf_run attach -pid "$target" -symbol handle -if 'arg1->kind == 1'
	[ "$status" -eq 2 ]
	complains "need the program's debug info"
	mtbpf_run attach -pid "$target" -symbol handle+0x4 -if '(int)arg1 == 1'
	[ "$status" -eq 2 ]
	mtbpf_run attach -pid "$target" -symbol handle -delay-thresh 1ms -if '(int)retval == 1'
	[ "$status" -eq 2 ]
	complains "retval is known only when a call returns"
}
