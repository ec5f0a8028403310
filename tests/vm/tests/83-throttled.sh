# SPDX-License-Identifier: MIT
# -source sample: what a cgroup's quota takes is throttled, and nobody's doing. Kernels differ in when they throttle a
# thread, and in what they count: until 6.6, until 6.18 (on its way out of the kernel), and since.
# only: 6.1 6.12 newest
. /tests/vm/lib.sh
cd /tmp || exit 1
box=/sys/fs/cgroup/throttled
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control || skip "no cpu controller"
must mkdir $box
clean_up() { for p in "${pids[@]}"; do kill -9 "$p"; done 2>/dev/null; sleep 0.2; rmdir $box; }
echo "10000 100000" >$box/cpu.max || fail "no quota"

start /build/programs/phases 200 200
echo "$pid" >$box/cgroup.procs
mtbpf attach -source sample -pid "$pid" -symbol handle_request -duration-thresh 300ms -timeout 60s -o q.fxt >out 2>err ||
	fail "attach: status $? $(cat err)"
grep -E '^reason|throttled' out
grep -q '^reason: throttled.*cgroup .*/throttled, quota 10.0 ms of 100 ms' out || fail "the reason: $(cat out)"
mtbpf report -json q.fxt >q.json
slow=$(grep -o '"slow_ns":[0-9]*' q.json | head -1 | tr -dc 0-9)
part() { sed 's/.*"account":{"slow":{\([^}]*\)}.*/\1/' q.json | tr , '\n' | sed -n "s/^\"$1\"://p"; }
echo "slow $slow, throttled $(part throttled_ns), preempted $(part preempted_ns)"
[ "$(part throttled_ns)" -gt $((slow / 2)) ] || fail "hardly throttled: $(cat q.json)"
[ "$(part preempted_ns)" -lt $((slow / 4)) ] || fail "preempted, by nobody: $(cat q.json)"
grep -q 'nr_throttled [1-9]' $box/cpu.stat || fail "the kernel says: $(cat $box/cpu.stat)"
