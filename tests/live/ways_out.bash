# SPDX-License-Identifier: MIT
# What the ways out share: a target whose speed is known, and what must not be left in it.

# spin: the sample of that name as $target, with what it is like before anything is done to it.
spin() {
	speed=$BATS_TEST_TMPDIR/speed.$RANDOM
	start_own spin "$speed"
	at=$(places)
	[ "$(wc -w <<<"$at")" -eq 2 ]
	code_before=$(code_at)
	before_ns=0
	eventually 10 has_rounds 20
}

# Where the two functions are that may get a probe.
places() {
	"$O/mtbpf" list -pid "$target" 'on*i*' | awk '$4 == "one_iter" || $4 == "on_signal" { print $1 }'
}

# Where the probes of one_iter and on_signal would be: their first bytes, in hex.
code_at() {
	local place
	for place in $at; do
		dd if="/proc/$target/mem" bs=16 count=1 iflag=skip_bytes skip=$((16#$place)) status=none | od -An -tx1
	done
}

# look_at_round: the number of the latest, $round, and its CPU time, $ns.
look_at_round() {
	read -r round ns < <(od -An -tu8 -N16 "$speed")
	[ "${ns:-0}" -gt 0 ]
}

# The quickest of the first rounds took $before_ns.
has_rounds() {
	look_at_round || return
	[ "$before_ns" -gt 0 ] && [ "$before_ns" -le "$ns" ] || before_ns=$ns
	[ "$round" -ge "$1" ]
}

# A round took no more than three times what the quickest took before: one with a probe in it takes thousands of
# times as long, one that is stepped even more. Those that had begun when it was free do not count.
is_at_full_speed() {
	look_at_round && [ "$round" -gt "$behind" ] && [ "$ns" -le $((3 * before_ns)) ]
}

full_speed() {
	look_at_round || return
	behind=$((round + 2))
	eventually 20 is_at_full_speed || {
		echo "a round took $before_ns ns, and takes $ns ns"
		return 1
	}
}

# The BPF programs and maps that a process holds: "prog 17".
bpf_of() {
	sed -n 's/^\(prog\|map\|link\)_id:[[:space:]]*/\1 /p' "/proc/$1/fdinfo"/* 2>/dev/null | sort -u
}

is_there() {
	PATH=$PATH:/usr/sbin:/sbin bpftool "$1" show id "$2" >/dev/null 2>&1
}

# How much CPU time the target has had, in clock ticks.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$target/stat"
}

has_come_to() {
	[ "$(ticks)" -ge "$1" ]
}

# However busy the machine is: there are samples of it, and steps.
runs_a_while() {
	eventually 20 has_come_to $(($(ticks) + 5))
}

# holds PID: remembers what of the kernel's mtbpf has, and its helper processes, when the target has run a while.
holds() {
	runs_a_while
	held=$(bpf_of "$1")
	helpers=$(pgrep -P "$1") || helpers=
	[ -n "$held" ] || { echo "no BPF program is held by $1"; return 1; }
}

bpf_is_gone() {
	local kind id
	while read -r kind id; do
		! is_there "$kind" "$id" || return 1
	done <<<"$held"
}

helpers_are_gone() {
	local pid
	for pid in $helpers; do
		gone "$pid" || return 1
	done
}

# Of no thread.
no_tracer() {
	! grep -hs '^TracerPid:' "/proc/$target/task"/*/status | grep -qv '[[:space:]]0$'
}

not_stopped() {
	! grep -hs '^State:' "/proc/$target/task"/*/status | grep -q '[[:space:]][Tt] '
}

has_old_code() {
	[ "$(code_at)" = "$code_before" ]
}

# nothing_left MTBPF: of what that process had, and did, nothing is there. The target may have gone.
nothing_left() {
	eventually 10 gone "$1"
	eventually 10 helpers_are_gone || { echo "left: process $helpers"; return 1; }
	eventually 10 bpf_is_gone || { echo "left: one of $held"; return 1; }
	! grep -qs "mtbpf/probe_$1_" /sys/kernel/tracing/uprobe_events || { echo "left: a probe of tracefs"; return 1; }
	! gone "$target" || return 0
	eventually 10 no_tracer || { echo "left: a tracer"; return 1; }
	eventually 10 not_stopped || { echo "left: stopped"; return 1; }
	eventually 10 has_old_code || { echo "left: a probe"; return 1; }
	full_speed
}

# whole_or_said NAME: NAME.mtbpf is not there, is complete, or is said to be incomplete.
whole_or_said() {
	[ -e "$1.mtbpf" ] || return 0
	if [ -e "$1.mtbpf/meta.json" ]; then
		"$O/mtbpf" decode -q "$1.mtbpf" -print calls >/dev/null
	else
		mtbpf_run decode "$1.mtbpf" -o "$1.again.fxt"
		[ "$status" -eq 1 ] && complains "is incomplete"
	fi
}
