# SPDX-License-Identifier: MIT
# -cgroup: durations, snapshots one after the other, processes that join and fork, a kill; and children
# that are too many for the memory.
# only: newest
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
box=/sys/fs/cgroup/box
mkdir -p $box/inner
begin $box /build/programs/threads -pause 5ms; a=$pid
begin $box/inner /build/programs/threads -pause 5ms; b=$pid
sleep 0.5

# The return probe, and -multi-snapshot.
mtbpf attach -cgroup /box -symbol one_iter -duration-thresh 20ms -multi-snapshot 3 -timeout 60s -o d.fxt \
	>out 2>err || fail "-duration-thresh: status $? $(cat err)"
[ "$(grep -c '^snapshot . taken' err)" = 2 ] || fail "not three snapshots: $(cat err)"
[ "$(grep -c '^call [0-9]* of one_iter' out)" = 3 ] || fail "not three calls: $(cat out)"
! grep -q '^gaps' out || fail "$(grep '^gaps' out)"
no_probe || fail "a probe is left"

# A process that joins later, one that forks all the time.
begin $box /bin/busybox sh -c 'while :; do /bin/true; (exit 3); done' sh; shell=$pid
start /build/programs/service -scale small; late=$pid
: >err
mtbpf record -cgroup $box -timeout 60s -snapshot-size 64K -o join.mtbpf >out 2>err &
tool=$!
wait_for $'\nrecording' err
echo "$late" >$box/cgroup.procs
# Until it has had a CPU for a while: the rings are small.
ran() { cut -d' ' -f1 "/proc/$late/schedstat"; }
before=$(ran)
for _ in $(seq 500); do
	[ $(($(ran) - before)) -lt 20000000 ] || break
	sleep 0.1
done
kill -INT "$tool"
wait "$tool" || fail "record: status $? $(cat err)"
read_by_perf join
grep -qw "$late" <<<"$seen" || fail "the one that joined is missing"
in_their_code join "$a" "$b" "$late"
kill -9 "$shell" "$late"

# Killed with no chance to tidy up.
mtbpf record -cgroup box -symbol one_iter -delay-thresh 100s -o k.mtbpf 2>err &
tool=$!
for _ in $(seq 100); do
	no_probe || break
	sleep 0.1
done
sleep 0.5
no_probe && fail "there was no probe to begin with: $(cat err)"
disown "$tool"
kill -9 "$tool"
for _ in $(seq 50); do
	no_probe && break
	sleep 0.1
done
no_probe || fail "a probe is left after kill -9"
before=$(steps)
sleep 0.5
[ "$(steps)" = "$before" ] || fail "an event is left after kill -9"

# What starts when the memory is full of rings of the living is left out, and counted.
start /bin/busybox sh -c 'kill -STOP $$; for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait'; forks=$pid
mtbpf record -pid "$forks" -children -snapshot-size 64K -max-memory 192K -timeout 10s -o n.mtbpf 2>err &
tool=$!
wait_for $'\nrecording' err
kill -CONT "$forks"
wait "$tool"
[ $? = 3 ] || fail "-max-memory 192K: $(cat err)"
grep -q '^warning: [0-9]* threads* that started later .* not recorded: -max-memory' err || fail "$(cat err)"
for p in "$a" "$b"; do must kill -0 "$p"; done
