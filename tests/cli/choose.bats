# SPDX-License-Identifier: MIT
# Whom a command is about: several pids, a name, or one that is picked at a terminal.

load ../helpers

# Nobody else's, who may run the tests at the same time.
me=mtbpf-$$

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# named NAME: a program of that name, and nobody else's: $target.
named() {
	cp "$O/programs/service" "$1"
	"./$1" -scale small -pause 10ms >"$1.log" 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' "$1.log"
}

# At a terminal: what is typed there is stdin. script(1) is the terminal.
at_terminal() {
	command -v script >/dev/null || skip "script(1) is missing"
	run timeout -k 5 20 script -qec "$*" /dev/null
	printf '%s\n' "$output" "-> $status"
}

@test "a name is a process's own, or its file's, which may be longer" {
	long=$me-chosen-by-its-long-name
	named "$long"
	for name in "${long:0:15}" "$long" "$me*long-name"; do
		mtbpf_run list -name "$name" 'one_*'
		[ "$status" -eq 0 ]
		says is-process "*" "$target"
		[[ $output == *one_iter* ]]
	done
}

@test "a name that nobody has: the nearest one" {
	named "${me}n"
	for args in "attach -source soft" record list "watch -symbol main"; do
		mtbpf_run $args -name "${me}m"
		[ "$status" -eq 2 ]
		complains no-process-named "${me}m" hint meant "${me}n"
		mtbpf_run $args -name "${me:1}"
		[ "$status" -eq 2 ]
		complains no-process-named "${me:1}"
	done
}

@test "several of a name are listed; soft takes one" {
	named "$me"
	first=$target
	"./$me" -scale small -pause 10ms >/dev/null 2>&1 3>&- &
	started+=($!)
	mtbpf_run list -name "${me:0:-1}*" 'one_*'
	[ "$status" -eq 0 ]
	[[ $output == *"are 2 processes"*"  $first ./$me -scale small"* ]]
	mtbpf_run attach -source soft -name "$me"
	[ "$status" -eq 2 ]
	complains soft-traces-one hint choose-one-with-pid
}

@test "of several pids each must be a number; who has exited is named" {
	named "$me"
	for pids in "1,x" "1," ",1" "1 2"; do
		mtbpf_run list -pid "$pids"
		[ "$status" -eq 2 ]
		complains not-a-pid "*" "$pids" hint find-pid
	done
	mtbpf_run record -pid "$target,2147483647"
	[ "$status" -eq 2 ]
	complains no-pid 2147483647
}

@test "two ways to say whom" {
	for args in "-pid 1 -name x" "-name x -container y" "-container x -cgroup y" "-k8s-pod x -pid 1"; do
		mtbpf_run record $args
		[ "$status" -eq 2 ]
		set -- $args
		complains not-both
		[[ $output == *"$1"* && $output == *"$3"* ]]
	done
}

@test "no such container, no such pod" {
	mtbpf_run record -container no-such-container
	[ "$status" -eq 2 ]
	complains container-not-running-here container no-such-container hint give-id-or-name
	mtbpf_run record -k8s-pod no-such-pod
	[ "$status" -eq 2 ]
	complains container-not-running-here pod default/no-such-pod hint give-pod
}

@test "at a terminal, none given: fzf is asked, with a line a process" {
	named "$me"
	mkdir bin
	printf '#!/bin/bash\ngrep -w %s | head -1\n' "$me" >bin/fzf
	chmod +x bin/fzf
	PATH=$PWD/bin:$PATH at_terminal "$O/mtbpf" list one_iter
	[ "$status" -eq 0 ]
	[[ $output == *one_iter* ]]
	# Left without a choice.
	printf '#!/bin/bash\nexit 130\n' >bin/fzf
	PATH=$PWD/bin:$PATH at_terminal "$O/mtbpf" list one_iter
	[ "$status" -eq 2 ]
	says no-process-picked
}

@test "without fzf: a numbered list" {
	named "$me"
	mkdir bin
	for tool in script bash sh; do ln -s "$(command -v $tool)" bin/ || skip "script(1) is missing"; done
	cat >ask <<-EOF
		"$O/mtbpf" list one_iter
		echo "code \$?"
	EOF
	# The number is read off the list, as a person would.
	run timeout -k 5 60 bash -c '
		coproc PATH=$PWD/bin script -qec "bash ask" /dev/null
		# Its own are closed as soon as it ends, read or not.
		exec 5<&"${COPROC[0]}" 6>&"${COPROC[1]}"
		while read -r -t 10 line <&5; do
			printf "%s\n" "$line"
			[[ $line != *"  '$me' "* ]] || number=${line%%[!0-9]*}
			[[ $line != "(with fzf installed"* ]] || echo "$number" >&6
			[[ ! $line =~ ^code\ [0-9] ]] || break
		done'
	printf '%s\n' "$output"
	[[ $output == *"with fzf installed"* ]]
	[[ $output == *"$me"*one_iter*"code 0"* ]]
}
