# SPDX-License-Identifier: MIT
# What a recording or a trace that breaks mtbpf could do then (docs/user/rights.md): code in it that tries to write elsewhere,
# to reach other processes, to execute.

load ../helpers

setup() {
	intruder=${O:?}/programs/libintruder.so
	[ -e "$intruder" ] || skip "the sample programs are not built"
	version=$(perl -e 'print syscall(444, 0, 0, 1)')
	[ "$version" -ge 1 ] || skip "this kernel has no Landlock"
	folder=$(mktemp -d /tmp/mtbpf-confined.XXXXXX)
	chmod 755 "$folder"
	cp "$O/mtbpf" "$intruder" "$folder"
	mkdir "$folder/out" "$folder/own"
	cd "$folder/out"
	cp -r "$BATS_TEST_DIRNAME/../golden/nest" nest.mtbpf
	"$O/mtbpf" decode -q nest.mtbpf -o nest.fxt >/dev/null 2>&1
	started=()
	as=()
	sleep 1000 3>&- &
	other=$!
	started+=("$other")
	begin
}

teardown() {
	end_started
	rm -rf "${folder:-/nonexistent}"
}

begin() {
	echo hers >"$folder/own/file"
	: >"$folder/log"
	chmod 666 "$folder/log" "$folder/own/file"
	chmod 777 "$folder/own"
	variables=(LD_PRELOAD="$folder/libintruder.so" INTRUDER_LOG="$folder/log" INTRUDER_FILE="$folder/own/file"
		INTRUDER_PID="$other" ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS:-}")
}

# broken_into ARGS: mtbpf with the intruder in it; $status, $output.
broken_into() {
	rm -f "$folder/own/file.new"
	: >"$folder/log"
	run "${as[@]}" env "${variables[@]}" timeout -k 5 60 "$folder/mtbpf" "$@"
	printf '%s\n' "mtbpf $*" "$output" "-> $status"
	cat "$folder/log"
}

# refused WHO: each try of it.
refused() {
	local what
	for what in write create memory root execute; do
		grep -qx "$1 $what EACCES" "$folder/log" || return 1
	done
	[ "$version" -lt 4 ] || grep -qx "$1 connect EACCES" "$folder/log" || return 1
	[ "$version" -lt 6 ] || grep -qx "$1 signal EPERM" "$folder/log" || return 1
	! grep -q "^$1 .* done$" "$folder/log"
}

# All that reads what somebody else wrote, and ends by itself.
try_all() {
	local command
	while read -r command; do
		# shellcheck disable=SC2086
		broken_into $command
		# Of this recording there is no report, and so no difference.
		[ "$status" -eq 0 ] || [[ $command = diff* && $output = *"no report"* ]] || return 1
		refused main || return 1
	done <<-'END'
		decode nest.mtbpf -o x.fxt.gz
		decode nest.mtbpf -o x.fxt.gz
		decode nest.mtbpf -o x.txt
		decode nest.mtbpf -format text
		decode nest.mtbpf -print calls
		decode nest.mtbpf -print branches
		decode nest.mtbpf -portable -o p.mtbpf
		decode nest.mtbpf -portable -o p.mtbpf
		decode p.mtbpf -o y.fxt.zst
		report nest.mtbpf
		report nest.fxt -folded
		report p.mtbpf/data
		diff nest.fxt y.fxt.zst
		diff nest.mtbpf nest.fxt
	END
	[ -s x.fxt.gz ] && [ -s x.fxt.gz.old ] && [ -s x.txt ] && [ -d p.mtbpf.old ] && [ -s y.fxt.zst ]
}

@test "what it tries is seen where nothing is confined" {
	broken_into version
	for what in write create memory root execute signal; do
		grep -qx "main $what done" "$folder/log"
	done
	grep -qx 'main connect ECONNREFUSED' "$folder/log"
}

@test "decode, report and diff: no process and no other folder is in their reach" {
	try_all
	[ "$(cat "$folder/own/file")" = hers ]
}

@test "nor is it in that of a user who is not root" {
	[ "$(id -u)" -eq 0 ] || skip "the others are it"
	command -v setpriv >/dev/null || skip "setpriv is missing"
	as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	chown -R 65534:65534 .
	kill "$other"
	"${as[@]}" sleep 1000 3>&- &
	other=$!
	started+=("$other")
	begin
	broken_into version
	grep -qx 'main write done' "$folder/log"
	try_all
}

@test "what perf script prints" {
	perf=$BATS_TEST_DIRNAME/../golden/perf_text
	text=$(find "$perf" -name '*.txt' | head -n 1)
	[ -n "$text" ]
	broken_into decode "$text" -o x.fxt
	[ -s x.fxt ]
	refused main
}

# shows ARGS: mtbpf that serves, until it does.
shows() {
	: >"$folder/log"
	env --default-signal=INT "${variables[@]}" "$folder/mtbpf" "$@" >shown 2>&1 3>&- &
	shown=$!
	started+=("$shown")
	eventually 20 grep -q '^http' shown || { cat shown; return 1; }
	cat "$folder/log"
	eventually 5 refused child || { cat "$folder/log"; return 1; }
	kill -INT "$shown"
	wait "$shown"
}

@test "what is to be shown is read and decoded apart" {
	mkdir ui
	touch ui/index.html
	export MTBPF_PERFETTO_UI=$PWD/ui
	shows view nest.fxt -no-open
	shows decode nest.mtbpf -view -o x.fxt
	[ -s x.fxt ]
}

@test "a kernel without Landlock: as before, and -v says so" {
	variables+=(INTRUDER_NO_LANDLOCK=1)
	for command in "decode -v nest.mtbpf -o x.fxt" "report -v nest.mtbpf" "diff -v nest.fxt nest.fxt"; do
		# shellcheck disable=SC2086
		broken_into $command
		[ "$status" -eq 0 ] || [[ $command = diff* ]]
		[[ $output == *"not confined: Function not implemented"* ]]
		grep -qx 'main write done' "$folder/log"
	done
}
