# SPDX-License-Identifier: MIT
# Each way out of a capture, of mtbpf's and of its target's: the target runs on at full speed, nothing is left in
# it nor in the kernel, and the recording is complete or says that it is not.

load ../helpers
load ways_out

setup() {
	[ -x "${O:?}/programs/spin" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
	! mountpoint -q "$BATS_TEST_TMPDIR/small" || umount -l "$BATS_TEST_TMPDIR/small"
	[ ! -d "${group:-}" ] || eventually 5 rmdir "$group" || true
}

# waits SOURCE ARGS: a capture of a new target that will never trigger.
waits() {
	local source=$1
	shift
	spin
	# Where other tests run, a hit may seem to take so much that its probe would be removed.
	attach -source "$source" -pid "$target" -symbol one_iter -delay-thresh 1000s -max-overhead none -o x.fxt "$@"
	holds "$attached"
}

# of_each_source COMMAND ARGS: with $source, each in a folder of its own.
of_each_source() {
	local source
	for source in sample soft; do
		mkdir "$source"
		cd "$source"
		"$@"
		cd ..
		end_started
	done
}

a_trigger() {
	spin
	attach -source "$source" -pid "$target" -symbol on_signal -o x.fxt
	holds "$attached"
	kill -WINCH "$target"
	attach_ends 20
	[ "$status" -eq 0 ]
	[[ $output == *triggered* ]]
	nothing_left "$attached"
	[ -e x.mtbpf/meta.json ]
	whole_or_said x
}

@test "a trigger" {
	of_each_source a_trigger
}

a_signal() {
	waits "$source"
	kill "-$1" "$attached"
	attach_ends 20
	[ "$status" -eq 0 ]
	nothing_left "$attached"
	[ -e x.mtbpf/meta.json ]
	whole_or_said x
	end_started
}

# The stepper has a session of its own: of that source all signals are one.
signals() {
	a_signal INT
	[ "$source" = soft ] || a_signal TERM
	[ "$source" = soft ] || a_signal HUP
}

@test "Ctrl-C, SIGTERM, SIGHUP" {
	of_each_source signals
}

killed() {
	waits "$source"
	kill -9 "$attached"
	nothing_left "$attached"
	whole_or_said x
}

@test "kill -9" {
	of_each_source killed
}

# in_group COMMAND...: becomes it, in $group.
in_group() {
	exec bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$@"
}

# As pods are that promise nothing: the first to go. Beside it somebody takes what memory there is.
oom_killed() {
	memory_group
	spin
	attach_log=$PWD/attach.log
	begin_log "$attach_log"
	in_group bash -c 'echo 1000 >/proc/self/oom_score_adj; exec "$@"' bash "$O/mtbpf" attach -source "$source" \
		-pid "$target" -symbol one_iter -delay-thresh 1000s -snapshot-size 4M -o x.fxt >"$attach_log" 2>&1 3>&- &
	attached=$!
	started+=("$attached")
	eventually 10 grep -q '^waiting' "$attach_log"
	holds "$attached"
	echo 192M >"$group/$limit"
	head -c 1G /dev/zero | in_group timeout 20 tail >/dev/null 2>&1 3>&- || true
	grep -q '^oom_kill [1-9]' "$group/$events" || skip "a limit of memory kills nobody here"
	nothing_left "$attached"
	status=0
	wait "$attached" || status=$?
	[ "$status" -eq 137 ]
	whole_or_said x
	end_started
	eventually 5 rmdir "$group"
}

# A cgroup with a limit of memory: $group, of either version of cgroups.
memory_group() {
	local root name=mtbpf-test-$$-$source
	root=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
	limit=memory.limit_in_bytes events=memory.oom_control
	if [ -z "$root" ]; then
		root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
		limit=memory.max events=memory.events
		grep -qsw memory "$root/cgroup.subtree_control" || skip "there is no cgroup with a limit of memory"
	fi
	group=$root/$name
	mkdir "$group" 2>/dev/null || skip "no cgroup can be made here"
	[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
}

# bats test_tags=slow
@test "killed for memory" {
	of_each_source oom_killed
}

# ---- what the target does

exits() {
	waits "$source"
	kill -TERM "$target"
	attach_ends 20
	[ "$status" -eq 0 ]
	says target-exited-snapshot
	nothing_left "$attached"
	whole_or_said x
}

# bats test_tags=slow
@test "the target exits" {
	of_each_source exits
}

crashes() {
	waits "$source"
	kill -USR2 "$target"
	attach_ends 20
	[ "$status" -eq 0 ]
	code=0
	wait "$target" || code=$?
	[ "$code" -eq 139 ]
	nothing_left "$attached"
	whole_or_said x
}

# bats test_tags=slow
@test "the target crashes" {
	of_each_source crashes
}

is_killed() {
	waits "$source"
	kill -9 "$target"
	attach_ends 20
	[ "$status" -eq 0 ]
	nothing_left "$attached"
	whole_or_said x
}

# bats test_tags=slow
@test "the target is killed" {
	of_each_source is_killed
}

# The code lies elsewhere then.
executes() {
	waits "$source"
	kill -USR1 "$target"
	eventually 20 has_executed
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 0 ]
	at=$(places)
	nothing_left "$attached"
	whole_or_said x
}

has_executed() {
	[ "$(tr '\0' ' ' <"/proc/$target/cmdline")" = "again $speed " ]
}

# bats test_tags=slow
@test "the target executes another program" {
	of_each_source executes
}

is_stopped() {
	grep -q '^State:[[:space:]]T ' "/proc/$target/status"
}

stays_stopped() {
	waits "$source"
	kill -STOP "$target"
	eventually 10 is_stopped_or_traced
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 0 ]
	eventually 10 is_stopped
	kill -CONT "$target"
	nothing_left "$attached"
	whole_or_said x
}

is_stopped_or_traced() {
	grep -q '^State:[[:space:]][Tt] ' "/proc/$target/status"
}

# bats test_tags=slow
@test "the target is stopped: it stays so until somebody else lets it go on" {
	of_each_source stays_stopped
}

# ---- what happens around them

disk_fills() {
	mkdir small
	mount -t tmpfs -o size=64k none small 2>/dev/null || skip "cannot mount a tmpfs here"
	waits "$source" -o small/x.fxt
	dd if=/dev/zero of=small/fill bs=1k count=60 status=none
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 1 ]
	mapfile -t lines <<<"$output"
	complains cannot-write-recording small/x.mtbpf "No space left*" hint disk-full
	nothing_left "$attached"
	whole_or_said small/x
	umount small
}

# bats test_tags=slow
@test "the disk is full" {
	of_each_source disk_fills
}

folder_goes() {
	mkdir there
	waits "$source" -o there/x.fxt
	rmdir there
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 1 ]
	mapfile -t lines <<<"$output"
	complains cannot-create-recording there/x.mtbpf hint choose-another-place
	nothing_left "$attached"
}

# bats test_tags=slow
@test "the folder for the recording has gone" {
	of_each_source folder_goes
}

# Who reads its lines has gone: a pipe into head(1).
reader_goes() {
	spin
	mkfifo pipe
	sleep 60 <pipe 3>&- &
	reader=$!
	started+=("$reader")
	env --default-signal=PIPE,INT "$O/mtbpf" attach -source "$source" -pid "$target" -symbol one_iter \
		-delay-thresh 1000s -o x.fxt >pipe 2>&1 3>&- &
	attached=$!
	started+=("$attached")
	eventually 10 waits_for_signal "$attached"
	holds "$attached"
	kill "$reader"
	eventually 5 gone "$reader"
	kill -INT "$attached"
	nothing_left "$attached"
	[ -e x.mtbpf/meta.json ]
	whole_or_said x
}

# It sleeps in its loop, which it says in no other place.
waits_for_signal() {
	[ -n "$(bpf_of "$1")" ] && grep -q '^do_epoll_wait\|^ep_poll' "/proc/$1/wchan"
}

# bats test_tags=slow
@test "who reads its output has gone" {
	of_each_source reader_goes
}

# The terminal is closed: the first process of its session gets SIGHUP, and whatever it writes is an error.
terminal_goes() {
	command -v script >/dev/null || skip "script(1) is missing"
	spin
	script -qc "exec '$O/mtbpf' attach -source $source -pid $target -symbol one_iter -delay-thresh 1000s \
		-o x.fxt" /dev/null >terminal 2>&1 </dev/null 3>&- &
	terminal=$!
	started+=("$terminal")
	eventually 10 grep -q '^waiting' terminal
	attached=$(pgrep -P "$terminal")
	holds "$attached"
	kill -9 "$terminal"
	nothing_left "$attached"
	[ -e x.mtbpf/meta.json ]
	whole_or_said x
}

# bats test_tags=slow
@test "the terminal is closed" {
	of_each_source terminal_goes
}

no_descriptors() {
	spin
	"$O/mtbpf" attach -source "$source" -pid "$target" -symbol on_signal -o x.fxt <&- >&- 2>&- 3>&- &
	attached=$!
	started+=("$attached")
	eventually 10 waits_for_signal "$attached"
	holds "$attached"
	[ "$(readlink "/proc/$attached/fd/"{0,1,2} | sort -u)" = /dev/null ]
	kill -WINCH "$target"
	nothing_left "$attached"
	status=0
	wait "$attached" || status=$?
	[ "$status" -eq 0 ]
	[ -e x.mtbpf/meta.json ]
	whole_or_said x
}

# bats test_tags=slow
@test "started without stdin, stdout and stderr" {
	of_each_source no_descriptors
}

# ---- containers

# contained: a target in a cgroup of its own, and a capture of that which waits.
contained() {
	local root
	root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$root" ] || skip "no cgroup v2 hierarchy is mounted"
	group=$root/mtbpf-test-$$
	mkdir "$group" 2>/dev/null || skip "no cgroup can be made here"
	spin
	echo "$target" >"$group/cgroup.procs"
	attach -source sample -cgroup "${group##*/}" -symbol one_iter -delay-thresh 1000s -o x.fxt
	holds "$attached"
}

waits_for_it_again() {
	grep -q 'waiting for a process' "$attach_log"
}

# bats test_tags=slow
@test "a container is stopped, and removed" {
	contained
	kill -TERM "$target"
	eventually 5 gone "$target"
	# What captures it does not keep it.
	eventually 10 rmdir "$group"
	eventually 10 waits_for_it_again
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 1 ]
	says interrupted-before
	nothing_left "$attached"
	[ ! -e x.mtbpf ]
}

# bats test_tags=slow
@test "a container is paused" {
	contained
	[ -e "$group/cgroup.freeze" ] || skip "this kernel pauses no cgroup"
	echo 1 >"$group/cgroup.freeze"
	eventually 10 grep -q '^frozen 1' "$group/cgroup.events"
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 0 ]
	grep -q '^frozen 1' "$group/cgroup.events"
	echo 0 >"$group/cgroup.freeze"
	nothing_left "$attached"
	[ -e x.mtbpf/meta.json ]
	whole_or_said x
}
