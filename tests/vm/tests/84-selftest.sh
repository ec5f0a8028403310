# SPDX-License-Identifier: MIT
# mtbpf selftest with Intel PT: all is right, and what the PMU does wrong is noticed.
# only: newest 6.12 6.1
. /tests/vm/lib.sh
need_pmu
broken=/sys/module/softpt/parameters/broken
clean_up() { echo 0 >$broken; }

began=$(date +%s)
mtbpf selftest -source pt >/tmp/out 2>&1
status=$?
cat /tmp/out
[ "$status" = 0 ] || fail "selftest: status $status"
grep -q ' 0 failed, 0 skipped$' /tmp/out || fail "something was not tested"
echo "took $(($(date +%s) - began)) s"

# notices NUMBER NAME...: with the PMU broken so, one of these checks fails.
notices() {
	local name number=$1
	shift
	echo "$number" >$broken
	mtbpf selftest -source pt >/tmp/out 2>&1
	status=$?
	echo 0 >$broken
	[ "$status" = 1 ] || fail "broken=$number: status $status: $(cat /tmp/out)"
	for name; do
		! grep -Eq "^pt +$name +failed" /tmp/out || { echo "broken=$number: $(grep -E "^pt +$name +failed" /tmp/out)" && return; }
	done
	fail "broken=$number: none of $* has failed: $(cat /tmp/out)"
}
notices 1 times
notices 2 gaps
! has_aux_pause || notices 3 freeze
notices 4 calls
