# SPDX-License-Identifier: MIT
# Makes tests/bundles/vm.tar.zst: tests/vm/run 6.12 tests/vm/make-bundle.sh leaves it in build/vm/out-6.12. Its replay
# inside gives the same verdicts.
. /tests/vm/lib.sh
need_pmu
# verdicts: the lines of checks that a replay can judge.
verdicts() {
	grep '^pt ' | grep -Ev "^pt +(target afterwards|perf trace) |  skipped  " | sort
}
mtbpf selftest -source pt -bundle /out/vm.tar.zst >/tmp/made || fail "status $?: $(cat /tmp/made)"
mtbpf selftest -replay /out/vm.tar.zst >/tmp/replayed || fail "replay: status $?: $(cat /tmp/replayed)"
diff <(verdicts </tmp/made) <(verdicts </tmp/replayed) || fail "the replay differs"
tail -1 /tmp/made
