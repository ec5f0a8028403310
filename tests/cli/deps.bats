# SPDX-License-Identifier: MIT
# tests/deps.sh with apt-get, apt-cache, id and sudo replaced, so that nothing is installed.

setup() {
	bin=$BATS_TEST_TMPDIR/bin
	export LOG=$BATS_TEST_TMPDIR/log OS_RELEASE=$BATS_TEST_TMPDIR/os-release
	mkdir -p "$bin"
	export PATH=$bin:$PATH
	echo 'ID=debian' >"$OS_RELEASE"
	: >"$LOG"
	fake apt-get 'echo "apt-get $*" >>"$LOG"'
	fake apt-cache 'shift; printf "%s:\n  Candidate: 1.0\n" "$@"'
	fake id 'echo 0'
	"$BATS_TEST_DIRNAME/../deps.sh" -check test || skip "this machine lacks some of them"
}

fake() {
	printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}

deps() {
	run "$BATS_TEST_DIRNAME/../deps.sh" "$@"
	printf '%s\n' "$output"
}

@test "nothing is installed for a check, and a check that finds all there is silent" {
	deps -check test
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ ! -s "$LOG" ]
}

@test "a check names what is missing and says what to run" {
	CLANG=no-such-clang deps -check
	[ "$status" -eq 1 ]
	[[ $output == *"Clang: compiles the BPF programs"*"run 'make deps'"* ]]
	[ ! -s "$LOG" ]
}

@test "what only the tests need is not asked of the build" {
	CXX=no-such-g++ deps -check
	[ "$status" -eq 0 ]
	CXX=no-such-g++ deps -check test
	[ "$status" -eq 1 ]
}

@test "what is missing is installed, once apt-get update was run" {
	CLANG=no-such-clang deps
	[[ $output == *"deps: clang: compiles the BPF programs"* ]]
	[[ "$(cat "$LOG")" == *" update "*" install "*" --no-install-recommends "*clang* ]]
	[[ "$(cat "$LOG")" != *g++* ]]
	[ "$status" -eq 1 ] # the fake apt-get installed nothing
}

@test "of two package names the one that this release has is taken" {
	fake apt-cache 'printf "bpftool:\n  Candidate: (none)\nlinux-tools-generic:\n  Candidate: 1.0\n"'
	BPFTOOL=no-such-bpftool deps
	[[ "$(cat "$LOG")" == *install*linux-tools-generic* ]]
}

@test "a user who is not root installs through sudo" {
	fake id 'echo 1000'
	fake sudo 'echo "sudo $*" >>"$LOG"'
	CLANG=no-such-clang deps
	[[ "$(cat "$LOG")" == *"sudo "*"apt-get"*install*clang* ]]
}

@test "another distribution gets the list by upstream name" {
	echo 'ID=arch' >"$OS_RELEASE"
	CLANG=no-such-clang deps
	[ "$status" -eq 1 ]
	[[ $output == *"not Debian or Ubuntu"*"Clang: compiles"* ]]
	[ ! -s "$LOG" ]
}

@test "what apt-get says is shown where it fails, and only there" {
	fake apt-get 'case $* in *install*) echo Unpacking ;; esac'
	CLANG=no-such-clang deps
	[[ $output != *Unpacking* ]]
	fake apt-get 'case $* in *install*) echo "Unpacking"; echo "E: disk full" >&2; exit 100 ;; esac'
	CLANG=no-such-clang deps
	[ "$status" -eq 1 ]
	[[ $output == *"Unpacking"*"E: disk full"* ]]
}

@test "what only a few tests use is no failure where it cannot be had" {
	mkdir "$BATS_TEST_TMPDIR/few"
	ln -s /usr/bin/* "$BATS_TEST_TMPDIR/few"
	rm -f "$BATS_TEST_TMPDIR/few/zstd"
	fake apt-get 'echo "apt-get $*" >>"$LOG"; exit 100'
	PATH=$bin:$BATS_TEST_TMPDIR/few deps
	[[ "$(cat "$LOG")" == *install*zstd* ]]
	[ "$status" -eq 0 ]
}
