# SPDX-License-Identifier: MIT
# What tests of the whole program share: targets that are ended with the test, mtbpf, its messages.

# shellcheck source=tests/messages.bash
source "${BASH_SOURCE[0]%/*}/messages.bash"

# mtbpf_run ARGS: like run, but ends after LIMIT seconds, so that no test waits for ever. The exit code is $status,
# stdout and stderr $output. With BARE=1 the environment is empty but for PATH: libc reads all of it before main(),
# which takes a single-stepped program 20,000 instructions.
mtbpf_run() {
	local env=()
	[ -z "${BARE:-}" ] || env=(env -i PATH="$PATH")
	run timeout -k 5 "${LIMIT:-180}" "${env[@]}" "$O/mtbpf" "$@"
	printf '%s\n' "mtbpf $*" "$output" "-> $status"
}

# start NAME ARGS: a sample program in the background that has said its pid: $target.
start() {
	local name=$1
	shift
	start_file "$O/programs/$name" "$@"
}

# start_own NAME ARGS: the same, but of a copy. A probe of another test's may be for all processes, as in a cgroup;
# the kernel sets it in each that runs that file.
start_own() {
	local name=$1 folder
	shift
	folder=$(mktemp -d "$BATS_TEST_TMPDIR/own.XXXXXX")
	cp "$O/programs/$name" "$folder"
	start_file "$folder/$name" "$@"
}

start_file() {
	local log
	log=$(mktemp "$BATS_TEST_TMPDIR/${1##*/}.XXXXXX")
	"$@" >"$log" 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' "$log"
}

# attach ARGS: mtbpf attach in the background, $attached, that has begun to wait; its lines are in
# $attach_log. It gets its signals as in a terminal: bash ignores SIGINT for what runs behind it. NICE is its niceness.
attach() {
	attach_log=$(mktemp "$BATS_TEST_TMPDIR/attach.XXXXXX")
	nice -n "${NICE:-0}" env --default-signal=INT,HUP "$O/mtbpf" attach -source soft "$@" >"$attach_log" 2>&1 3>&- &
	attached=$!
	started+=("$attached")
	eventually 10 grep -Eq '^(waiting|recording;)' "$attach_log"
}

# attach_ends SECONDS: waits for it; $status and $output as after run.
attach_ends() {
	eventually "$1" gone "$attached"
	status=0
	wait "$attached" || status=$?
	output=$(<"$attach_log")
	printf '%s\n' "$output" "-> $status"
}

# Exited, or collected: a zombie is gone.
gone() {
	! grep -qs '^State:[[:space:]][^ZX]' "/proc/$1/status"
}

# begin_log FILE: one whose name was used before says nothing old. What runs in the background opens it
# at a time of its own, and who waits for a line may look before that.
begin_log() {
	: >"$1"
}

# captured_of PID N: record -dir has told in $log of so many captures of that process.
captured_of() {
	[ "$(grep -c "^20.* pid $1 .*\.mtbpf$" "$log")" -ge "$2" ]
}

# eventually SECONDS COMMAND: true as soon as the command is. The seconds are those of a machine that
# has nothing else to do; another may take five times as long.
eventually() {
	local left=$(($1 * 250))
	shift
	until "$@"; do
		((left-- > 0)) || return 1
		sleep 0.02
	done
}

# take_breakpoints: until the test has ended, and what it started. A CPU has four breakpoints, for all processes; a test
# that uses some waits here for those that other tests use.
take_breakpoints() {
	exec {breakpoints}</sys/bus/event_source/devices/breakpoint
	flock -w 300 "$breakpoints" || echo "# other tests have used breakpoints for 300 s"
}

# End what a test started: by pid, and nothing else.
end_started() {
	local pid
	for pid in "${started[@]}"; do
		kill -CONT "$pid" 2>/dev/null || continue
		kill "$pid" 2>/dev/null
	done
	for pid in "${started[@]}"; do
		eventually 5 gone "$pid" || kill -9 "$pid" 2>/dev/null
	done
	started=()
}

# For what a build with sanitizers cannot do: they need /proc, and are none of lintian's business.
skip_with_sanitizers() {
	! ldd "$O/mtbpf" | grep -q libasan || skip "mtbpf was built with sanitizers"
}

has_pt() {
	[ -e /sys/bus/event_source/devices/intel_pt ]
}

# python_perf: sets $python to one that writes a map (3.12 and later); false if there is none.
python_perf() {
	local minor
	for minor in 12 13 14 15; do
		for python in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python3."$minor"; do
			"$python" -X perf -c 'import sys; sys.exit(not sys.is_stack_trampoline_active())' 2>/dev/null && return
		done
	done
	return 1
}
