# SPDX-License-Identifier: MIT
# mtbpf selftest with Intel PT: every check passes, but for those of the kernel and of power events, which this PMU does not record.
# The newest kernel shows all of them; 6.1 those in which the kernel freezes, tells threads apart or counts. The others are of the
# packets that the PMU is asked for, and of ways to make the same recording.
# only: newest 6.1
. /tests/vm/lib.sh
need_pmu

words=()
if [[ $(uname -r) == 6.1.* ]] && ! shows_all; then
	for check in pt "freeze: refresh" "freeze: disable" "small ring" "20 snapshots" "any thread" cgroup "perf trace" \
		"perf's judgement" "target afterwards"; do
		words+=(-only "$check")
	done
fi
began=$(date +%s)
mtbpf selftest -source pt "${words[@]}" >/tmp/out 2>&1
status=$?
cat /tmp/out
[ "$status" = 0 ] || fail "selftest: status $status"
grep 'skipped' /tmp/out | grep -Ev '^pt +(kernel|power|freeze: pause) ' | grep -v ' passed, ' && fail "something was not tested"
echo "took $(($(date +%s) - began)) s"
[ -z "$(ls -d /sys/fs/cgroup/mtbpf-selftest* 2>/dev/null)" ] || fail "a cgroup is left"
