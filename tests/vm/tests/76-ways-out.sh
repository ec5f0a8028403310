# SPDX-License-Identifier: MIT
# Ways out of a capture with Intel PT: the target runs on at full speed, and no event, ring, probe or tracer is left.
# tests/live/ways_out.bats is of the other sources, and has more of them.
# only: newest
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1

# eventually COMMAND...: within ten seconds and more.
eventually() {
	for _ in {1..500}; do
		"$@" && return
		sleep 0.02
	done
	return 1
}

gone() {
	! grep -qs '^State:[[:space:]][^ZX]' "/proc/$1/status"
}

# The number of the target's latest round, $round, and its CPU time, $ns.
look_at_round() {
	# shellcheck disable=SC2046
	set -- $(od -An -tu8 -N16 speed)
	round=$1 ns=$2
}

has_rounds() {
	look_at_round
	[ "$ns" = 0 ] || [ "$ns" -gt "$before_ns" ] || before_ns=$ns
	[ "$round" -ge 20 ]
}

# The first bytes of the functions that get a probe.
code() {
	for place in $at; do
		dd if="/proc/$target/mem" bs=16 count=1 iflag=skip_bytes skip=$((16#$place)) 2>/dev/null | od -An -tx1
	done
}

# Where the functions are that get a probe.
places() {
	mtbpf list -pid "$target" 'on*i*' | awk '$4 == "one_iter" || $4 == "on_signal" { print $1 }'
}

has_executed() {
	[ "$(tr '\0' ' ' <"/proc/$target/cmdline")" = "again speed " ]
}

spin() {
	rm -f speed
	start /build/programs/spin speed
	target=$pid before_ns=999999999
	eventually has_rounds || fail "the target does not run"
	at=$(places)
	code_before=$(code)
	[ "$(wc -w <<<"$code_before")" = 32 ] || fail "its functions are not found: $at"
}

# Events of the PMU hold its module.
events() {
	cat /sys/module/softpt/refcnt
}

no_events() {
	[ "$(events)" = "$events_before" ]
}

runs() {
	! grep -q '^State:[[:space:]][Tt] ' "/proc/$target/status" && grep -q '^TracerPid:[[:space:]]0$' "/proc/$target/status"
}

has_old_code() {
	[ "$(code)" = "$code_before" ]
}

# A round that began when nothing was traced any more.
is_at_full_speed() {
	look_at_round
	[ "$round" -gt "$behind" ] && [ "$ns" -le $((3 * before_ns)) ]
}

not_stepped() {
	local before
	before=$(steps)
	sleep 0.05
	[ "$(steps)" = "$before" ]
}

# traced PID: mtbpf is that, $tool, and the target is traced. What it says is in `err`.
traced() {
	tool=$1
	pids+=("$tool")
	eventually grep -q '^waiting' err || fail "it does not begin: $(cat err)"
	wait_for_steps
	! no_events && ! has_old_code || fail "what is not to be left is not seen while it is there"
}

# record ARGS: mtbpf in the background, $tool, when the target is traced. In $box, where that is a cgroup.
record() {
	rm -rf x.mtbpf
	: >err
	(
		[ -z "$box" ] || echo 0 >"$box/cgroup.procs"
		exec mtbpf record -source pt -pid "$target" -o x.mtbpf "$@"
	) >out 2>err &
	disown
	traced $!
}

# What there is of a recording is whole.
whole() {
	must mtbpf decode -q "$1" -print calls >decoded
	grep -q one_iter decoded || fail "$way: nothing of the target is in the recording"
}

# Not a step more, although the target runs.
frozen() {
	look_at_round
	behind=$round
	not_stepped && look_at_round && [ "$round" -gt "$behind" ]
}

nothing_left() {
	eventually gone "$tool" || fail "$way: it does not end: $(cat err)"
	eventually no_events || fail "$way: $(events) events are left, $events_before before"
	no_probe || fail "$way: left in tracefs: $(cat /sys/kernel/tracing/uprobe_events)"
	! gone "$target" || { echo "$way: well"; return; }
	eventually runs || fail "$way: the target is stopped, or traced"
	eventually has_old_code || fail "$way: the target has a probe"
	eventually not_stepped || fail "$way: the target is stepped"
	look_at_round
	behind=$((round + 2))
	eventually is_at_full_speed || fail "$way: a round took $before_ns ns, and takes $ns ns"
	echo "$way: well"
}

events_before=$(events) box=
spin

way="mtbpf killed while it waits, the target stopped"
record -symbol one_iter -delay-thresh 1000s
kill -STOP "$target"
kill -KILL "$tool"
eventually gone "$tool"
grep -q '^State:[[:space:]]T ' "/proc/$target/status" || fail "$way: it is not"
kill -CONT "$target"
nothing_left

# What is frozen is held by it alone: it stands still, and is hit.
way="mtbpf killed while frozen"
record -symbol on_signal
kill -STOP "$tool"
kill -WINCH "$target"
eventually frozen || fail "$way: it is not frozen"
kill -KILL "$tool"
nothing_left

way="Ctrl-C"
record -symbol one_iter -delay-thresh 1000s
kill -INT "$tool"
nothing_left
whole x.mtbpf

way="full disk"
mkdir -p small
must mount -t tmpfs -o size=64k none small
record -symbol one_iter -delay-thresh 1000s -o small/x.mtbpf
dd if=/dev/zero of=small/fill bs=1k count=60 2>/dev/null
kill -INT "$tool"
nothing_left
grep -q 'small/x.mtbpf: No space left' err || fail "$way: it says $(cat err)"
! mtbpf decode -q small/x.mtbpf -print calls >decoded 2>&1 || fail "$way: the recording is taken for whole"
umount small

# A limit below what it has already: there is nothing that the kernel could take back.
way="killed for memory"
box=/sys/fs/cgroup/ways-out
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
# An attempt that failed may have left it, with a count of its own.
rmdir $box 2>/dev/null
must mkdir $box
record -symbol one_iter -delay-thresh 1000s
echo 0 >$box/memory.max
eventually grep -q '^oom_kill [1-9]' $box/memory.events || fail "$way: nobody is: $(cat $box/memory.events)"
nothing_left
[ ! -e x.mtbpf/meta.json ] || fail "$way: it has written a recording"
eventually rmdir $box
box=

# Its session's first process gets SIGHUP, and what it writes is an error from then on.
way="closed terminal"
rm -rf x.mtbpf
: >err
/build/programs/terminal mtbpf record -source pt -pid "$target" -o x.mtbpf -symbol one_iter -delay-thresh 1000s >err 2>&1 &
terminal=$!
pids+=("$terminal")
disown
eventually grep -q '^waiting' err || fail "$way: it does not begin: $(cat err)"
traced "$(sed -n 's/^pid \([0-9]*\).*/\1/p' err)"
kill -KILL "$terminal"
nothing_left
whole x.mtbpf

# Its code lies elsewhere then.
way="target executes"
record -symbol one_iter -delay-thresh 1000s
kill -USR1 "$target"
eventually has_executed || fail "$way: it does not"
kill -INT "$tool"
eventually gone "$tool"
at=$(places)
nothing_left
whole x.mtbpf

way="target exits"
record -symbol one_iter -delay-thresh 1000s
kill -TERM "$target"
nothing_left
must mtbpf decode -q x.mtbpf -print calls >decoded
