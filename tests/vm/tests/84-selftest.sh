# SPDX-License-Identifier: MIT
# mtbpf selftest with Intel PT: every check passes, but for those of the kernel and of power events, which this PMU does not record.
# only: newest 6.1
. /tests/vm/lib.sh
need_pmu

began=$(date +%s)
mtbpf selftest -source pt >/tmp/out 2>&1
status=$?
cat /tmp/out
[ "$status" = 0 ] || fail "selftest: status $status"
grep 'skipped' /tmp/out | grep -Ev '^pt +(kernel|power|freeze: pause) ' | grep -v ' passed, ' && fail "something was not tested"
echo "took $(($(date +%s) - began)) s"
[ -z "$(ls -d /sys/fs/cgroup/mtbpf-selftest* 2>/dev/null)" ] || fail "a cgroup is left"
