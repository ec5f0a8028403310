# SPDX-License-Identifier: MIT
# Several processes at once, and what one forks: a ring a thread of each, and one trigger for all of them.
# only: 6.12
. /tests/vm/lib.sh
need_pmu

# attach NAME ARGS: the summary is in $out, the threads of which something is in the trace in $seen.
attach() {
	local name=$1
	shift
	out=$(mtbpf attach -timeout 60s -snapshot-size 256K -o "/tmp/$name.fxt" "$@" 2>/tmp/err) ||
		fail "attach $*: status $? $(cat /tmp/err)"
	grep -E '^(hit|call|frozen|gaps)' <<<"$out"
	seen=" $(mtbpf decode "/tmp/$name.mtbpf" -print branches | awk '{ print $1 }' | sort -u | tr '\n' ' ') "
	no_probe || fail "a probe is left"
}

start /build/programs/service -scale small -pause 2ms
first=$pid
start /build/programs/service -scale small -pause 2ms
second=$pid
attach two -pid "$first,$second" -symbol one_iter -delay-thresh 20ms
[[ $seen == *" $first "* && $seen == *" $second "* ]] || fail "only of $seen anything was recorded"
grep -q ': 0 branches after the hit' <<<"$out" || fail "the thread ran on after the hit"
! grep -q '^gaps' <<<"$out" || fail "gaps"
must kill -0 "$first" "$second"
kill "$first" "$second"

start /build/programs/forks
# The slow call is the second thread's of a child: the third that is. The trace of each begins when its events
# are open, which is late where it is short: of the three, something is there.
attach children -pid "$pid" -children -multi-thread -symbol one_iter -duration-thresh 50ms -skip 2
tid=$(sed -nE 's/^call .*thread ([0-9]+):.*/\1/p' <<<"$out")
[ -n "$tid" ] && [ "$tid" != "$pid" ] || fail "not a child has hit: '$tid' of $pid"
[ "$(wc -w <<<"$seen")" -ge 2 ] || fail "nothing of the children is in the trace"
# No record reports whom a child has forked before its own events are open. Behind three processes that end at once the
# last one serves: it is recorded, or the summary says that it is not.
kill "$pid"
start /build/programs/forks 0 4
recorded=
for try in 1 2 3; do
	attach nested -pid "$pid" -children -multi-thread -symbol one_iter -duration-thresh 50ms -skip 2
	tid=$(sed -nE 's/^call .*thread ([0-9]+):.*/\1/p' <<<"$out")
	[[ -n $tid ]] || fail "nobody has hit: $out"
	if [[ $seen == *" $tid "* ]]; then
		recorded=1
	elif ! grep -q '^lost: 1 hit: not recorded' <<<"$out"; then
		grep -q "thread $tid triggered but was not recorded" /tmp/err || fail "nothing says that $tid is not recorded: $out"
	fi
done
[ "$recorded" ] || fail "none of three hits was recorded"
kill "$pid"
start /build/programs/forks
# Five rings are all that fit, and by the sixth slow call a dozen threads have been: those that ended make room.
attach many -pid "$pid" -children -multi-thread -max-memory 1300K -symbol one_iter -duration-thresh 50ms -skip 5
! grep -h 'that started later' /tmp/err <<<"$out" || fail "threads were left out although others had ended"
mtbpf watch -pid "$pid" -children -symbol one_iter -max-hits 20 -timeout 30s >/tmp/out 2>&1 || fail "watch: $(cat /tmp/out)"
grep -q '^2[0-9] hits' /tmp/out || fail "it forks no more: $(cat /tmp/out)"
