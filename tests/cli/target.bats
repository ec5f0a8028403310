# SPDX-License-Identifier: MIT
# The wrong process, the wrong function: said in one line, with what was probably meant, status 2.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# refused PID MESSAGE...: by each command that takes a pid, and nothing is written.
refused() {
	for args in "attach -source soft" "record -source soft" list "watch -symbol main"; do
		mtbpf_run $args -pid "$1"
		[ "$status" -eq 2 ]
		complains "${@:2}"
		[ -z "$(ls -A | grep trace)" ]
	done
}

@test "a pid that nobody has" {
	refused 2147483647 no-pid 2147483647 hint pids-listed
}

@test "a process that has ended" {
	sleep 0 3>&- &
	wait $!
	refused $! no-pid $! hint pids-listed
}

@test "a zombie" {
	# It ends when its parent is no shell any more, which would collect it.
	bash -c '(until grep -qx sleep /proc/$$/comm; do sleep 0.02; done) & echo $! >zombie; exec sleep 60' 3>&- &
	started+=($!)
	eventually 5 test -s zombie
	zombie=$(<zombie)
	eventually 5 grep -q '^State:.Z' "/proc/$zombie/status"
	refused "$zombie" is-a-zombie "$zombie" hint zombie-parent
}

@test "a kernel thread" {
	[ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ] || skip "no kernel threads are seen here"
	refused 2 is-a-kernel-thread 2 kthreadd hint add-kernel-only
}

@test "a thread: its process is named" {
	start threads -scale small -pause 10ms
	thread=$(ls "/proc/$target/task" | grep -v "^$target$" | head -1)
	refused "$thread" is-a-thread "$thread" "$target" hint use-pid "$target"
}

@test "a function that does not exist: the nearest one" {
	start service -scale small -pause 10ms
	for args in "attach -source soft" "record -source soft" watch; do
		mtbpf_run $args -pid "$target" -symbol one_itr
		[ "$status" -eq 2 ]
		complains no-function one_itr "process $target (service)" hint meant-function one_iter
		mtbpf_run $args -pid "$target" -symbol xyzzyxyzzy
		[ "$status" -eq 2 ]
		complains no-function xyzzyxyzzy hint functions-listed "$target"
		! says meant-function || false
	done
	[ -z "$(ls | grep trace)" ]
}

@test "a library that is not there, or a function that is not in it" {
	start service -scale small -pause 10ms
	mtbpf_run watch -pid "$target" -symbol libd.so.6:malloc
	[ "$status" -eq 2 ]
	complains no-module libd.so.6 hint meant-module "libc.so*"
	mtbpf_run watch -pid "$target" -symbol libc.so.6:mallok
	[ "$status" -eq 2 ]
	complains no-function libc.so.6:mallok hint meant-function malloc
}

@test "a name of two functions: both are listed, with a way to name one" {
	start cxx_service -scale small -pause 10ms
	mtbpf_run watch -pid "$target" -symbol 'shop::Rank::~Rank'
	[ "$status" -eq 2 ]
	complains ambiguous-function "shop::Rank::~Rank" 2 hint name-by-address cxx_service
	[ "$(grep -c 'hint:   0x[0-9a-f]* shop::Rank::~Rank()' <<<"$output")" -eq 2 ]
}

# The C library that the target has mapped.
libc() {
	awk '/libc\.so\.6$/ { print $6; exit }' "/proc/$target/maps"
}

@test "of a name with versions the default is meant" {
	start service -scale small -pause 10ms
	readelf -W --dyn-syms "$(libc)" >symbols
	grep -q ' realpath@@' symbols && grep -q ' realpath@[^@]' symbols || skip "realpath has one version here"
	mtbpf_run watch -pid "$target" -symbol libc.so.6:realpath -timeout 50ms
	! says ambiguous-function || false
	[[ $status -eq 0 || $output == *CAP_BPF* ]]
}

@test "a function that only chooses another (IFUNC) would never be hit again" {
	start service -scale small -pause 10ms
	readelf -W --dyn-syms "$(libc)" | grep -q ' IFUNC .* strlen@' || skip "strlen is an ordinary function here"
	mtbpf_run watch -pid "$target" -symbol libc.so.6:strlen -timeout 100ms
	[ "$status" -eq 2 ]
	complains ifunc strlen libc.so.6 hint probe-the-variant
}

@test "a program for run that is missing, is a folder, or lacks the function" {
	for name in nosuchprogram ./nosuchprogram /tmp; do
		mtbpf_run run -source soft -- $name
		[ "$status" -eq 2 ]
		complains no-program "$name" hint give-program
	done
	mtbpf_run run -source soft -symbol one_itr -- "$O/programs/crash"
	[ "$status" -eq 2 ]
	complains no-function one_itr hint meant-function-in-file one_iter
	mtbpf_run run -source soft -symbol malloc -- "$O/programs/crash"
	[ "$status" -eq 2 ]
	complains no-function malloc hint start-first
	[[ $output != *exited* ]]
	[ -z "$(ls)" ]
}

@test "a script has no functions; a file that is no program says so" {
	printf '#!/bin/sh\ntrue\n' >script
	echo gibberish >gibberish
	chmod +x script gibberish
	mtbpf_run run -source soft -symbol main -- ./script
	[ "$status" -eq 2 ]
	complains is-a-script "*script" hint run-interpreter
	mtbpf_run run -source soft -symbol main -- ./gibberish
	[ "$status" -eq 2 ]
	complains not-x86-64
	mtbpf_run run -source soft -- ./gibberish
	[ "$status" -eq 1 ]
	says cannot-run "*gibberish" "Exec format error"
	says file-says "*gibberish"
	[[ $output != *exited\ with* ]]
	[ -z "$(ls | grep trace)" ]
}

@test "list: address, size, module and name; a glob chooses" {
	start service -scale small -pause 10ms
	mtbpf_run list -pid "$target" 'one_*'
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ ${lines[0]} =~ ^[0-9a-f]{16}\ +[0-9]+\ service\ +one_iter$ ]]
	mtbpf_run list -pid "$target" '*'
	[ "${#lines[@]}" -gt 1000 ]
	mtbpf_run list -pid "$target" iter
	[ "$status" -eq 1 ]
	complains no-match "*" "*" iter hint globs-match-all "" iter
	# The prefix stays in front of the glob.
	mtbpf_run list -pid "$target" jit:foo
	[ "$status" -eq 1 ]
	[[ $output == *"try 'jit:*foo*'"* ]]
}

# runs PID FILE: the process has executed the file.
runs() {
	[ "$(readlink -f "/proc/$1/exe")" = "$(readlink -f "$2")" ]
}

# background CMD...: $target, which has begun to run it.
background() {
	"$@" >/dev/null 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 runs "$target" "$1"
}

@test "a function of a script: what shows it, and nothing about symbols that are stripped" {
	[ -x /usr/bin/python3 ] || skip "no Debian python3"
	background /usr/bin/python3 -c 'import time
while True: time.sleep(0.1)'
	mtbpf_run watch -pid "$target" -symbol '*no_such_handler*'
	[ "$status" -eq 2 ]
	complains no-function "*no_such_handler*"
	[[ $output == *"runs Python"*"python3 -X perf"*"3.12 or later"* ]]
	[[ $output != *stripped* ]]
	mtbpf_run list -pid "$target" '*no_such_handler*'
	[ "$status" -ne 0 ]
	[[ $output == *"no function"*"runs Python"* ]]
	[[ $output != *stripped* ]]
	# What is found natively may not be what was meant.
	mtbpf_run list -pid "$target" 'PyObject_Call*'
	[ "$status" -eq 0 ]
	[[ $output == *PyObject_Call*"runs Python"* ]]
	# Known by its symbols where the file has another name.
	mkdir bin
	cp "$(readlink -f /usr/bin/python3)" bin/app
	background bin/app -c 'import time
while True: time.sleep(0.1)'
	mtbpf_run list -pid "$target" '*no_such_handler*'
	[[ $output == *"app runs Python"* ]]
}

@test "a stripped program: its build id, and the package that has its symbols" {
	objcopy --strip-all "$O/programs/service" stripped
	background ./stripped -scale small -pause 10ms
	mtbpf_run watch -pid "$target" -symbol one_iter
	[ "$status" -eq 2 ]
	id=$(readelf -n stripped | sed -n 's/.*Build ID: //p')
	[ -n "$id" ]
	[[ $output == *"stripped is stripped"*"(build id $id)"* ]]
	[[ $output == *"hint: system calls need no symbols: -symbol syscall:fsync"* ]]
	[[ $output != *"belongs to the package"* && $output != *" runs "* ]]
	DEBUGINFOD_URLS=https://localhost/ mtbpf_run watch -pid "$target" -symbol one_iter
	says debuginfod "$id"
	# What was fetched is used.
	mkdir -p "cache/$id"
	objcopy --only-keep-debug "$O/programs/service" "cache/$id/debuginfo"
	DEBUGINFOD_CACHE_PATH=$PWD/cache mtbpf_run list -pid "$target" one_iter
	[ "$status" -eq 0 ]
	[[ $output != *hint* ]]
	sleep=$(readlink -f /usr/bin/sleep)
	dpkg -S "$sleep" /bin/sleep 2>/dev/null | grep -q ^coreutils: || return 0
	[ ! -e "/usr/lib/debug/.build-id" ] || return 0
	background "$sleep" 60
	mtbpf_run list -pid "$target" one_iter
	says package-of coreutils coreutils
}
