# SPDX-License-Identifier: MIT
# -cgroup: one ring per CPU, of all threads in the cgroup and of nobody else; perf tells them apart.
# only: 6.1 newest
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
box=/sys/fs/cgroup/box
mkdir -p $box/inner

begin $box /build/programs/threads -pause 5ms; a=$pid
begin $box/inner /build/programs/threads -pause 5ms; b=$pid
start /build/programs/threads -scale small -pause 5ms; decoy=$pid
sleep 0.5

# ends_with_hit NAME: by what perf has printed, the thread that hit ran no branch behind that where it hit. (It may have
# gone on on another CPU, which was not stopped yet, and others on this one, while it was in the probe's handler.)
ends_with_hit() {
	awk '
		{ gsub(/[^0-9.]/, "", $3); who = $1 " on CPU " $2 }
		/mtbpf:hit/ { hit = who; at = $3 }
		/branches/ { last[who] = $3 }
		END { print "hit of", hit, "at", at ", its last branch at", last[hit]
			exit !hit || last[hit] - at > 0.0001 }' "$1.all" >judged || fail "$1: $(cat judged)"
	cat judged
}

# A thread that was stopped hits too late: not as soon as recording begins, as one that waits for a CPU may.
hit_late() {
	wait_for $'\nwaiting' err
	sleep 1
	kill -STOP "$a" "$b"
	sleep 0.8
	kill -CONT "$a" "$b"
}

# Each on one kernel: those that newer ones have as well are shown by the older.
methods="refresh disable"
if has_aux_pause; then methods=pause; fi
for method in $methods; do
	: >err
	mtbpf attach -cgroup box -symbol one_iter -delay-thresh 600ms -timeout 30s -freeze "$method" \
		-v -o "$method.fxt" >out 2>err &
	tool=$!
	hit_late
	wait "$tool" || fail "attach -freeze $method: status $? $(cat err)"
	! grep -q '^warning' err || fail "$(cat err)"
	# Nobody else's hit has ended it: each CPU was recorded for a second.
	! grep -Eq 'pt: CPU .* running [0-9]{1,7} ns' err || fail "$(grep 'pt: CPU' err)"
	no_probe || fail "a probe is left"
	grep -E '^(hit|frozen)' out
	! grep -q '^gaps' out || fail "$(grep '^gaps' out)"
	grep -q '^hit [0-9]* of one_iter' out || fail "the hit has no name"
	read_by_perf "$method"
	[ "$method" = disable ] || ends_with_hit "$method"
	[ "$(xargs -n1 <<<"$seen" | sort | xargs)" = "$(printf '%s\n' "$a" "$b" | sort | xargs)" ] ||
		fail "processes $seen were recorded, not $a and $b ($decoy is the decoy)"
	in_their_code "$method" "$a" "$b"
done

# Regions that do not pause Intel PT go with rings per CPU as well. Its workers never sleep. On one kernel: it takes
# five minutes on 7.3.
if ! has_aux_pause; then
	begin $box /build/programs/service -pause 5ms; service=$pid
	mtbpf attach -source pt -cgroup box -start one_iter -stop 'syscall:*nanosleep' -duration-thresh 1us -skip 3 -timeout 60s \
		-o region.fxt >out 2>err || fail "status $? $(cat err)"
	grep -q '^hit [0-9]* of syscall:[a-z_]*nanosleep, .* after -start' out || fail "$(cat out)"
	! grep -q 'outside -start' out || fail "it was paused: $(cat out)"
	kill "$service"
	wait "$service" 2>/dev/null
fi

# The decoy's slow calls are nobody's; those of the cgroup are.
kill -STOP "$a" "$b"
mtbpf record -cgroup box -symbol one_iter -delay-thresh 1ms -timeout 60s -o s.mtbpf >out 2>err &
tool=$!
sleep 4
must kill -0 "$tool"
kill -CONT "$a" "$b"
wait "$tool" || fail "no trigger: $(cat err)"
grep -q '^triggered' err || fail "$(cat err)"
hit=$(perf script -i s.mtbpf -F event,pid | awk '/mtbpf:hit/ { print $1 }')
[ "$hit" = "$a" ] || [ "$hit" = "$b" ] || fail "the hit is of process $hit"

# Said in a line.
refused() {
	local text=$1
	shift
	mtbpf record -o r.mtbpf "$@" 2>err && fail "$* is taken"
	[ $? = "$code" ] || fail "$*: another code than $code: $(cat err)"
	grep -q "$text" err && grep -q '^hint: ' err || fail "$*: $(cat err)"
}
code=2
refused "function 'one_itr'" -cgroup box -symbol one_itr
refused "cannot open the cgroup 'nowhere'" -cgroup nowhere
refused 'is not a cgroup' -cgroup /tmp
# A limit, as locked memory and open files are.
code=1
refused 'max-memory allows 4.0 MiB' -cgroup box -max-memory 4M
grep -q 'snapshot-size 2048K fits' err || fail "$(cat err)"
refused '6 threads with\|5 threads with\|4 threads with\|7 threads with' -pid "$a" -multi-thread -max-memory 4M
grep -q -- '-cgroup takes one ring per CPU' err || fail "$(cat err)"

for p in "$a" "$b" "$decoy"; do must kill -0 "$p"; done
