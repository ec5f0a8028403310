# SPDX-License-Identifier: MIT
# Where the tool does not read for a while, the trace has a gap that is marked, and goes on.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
start /build/programs/service -scale small -pause 1ms
target=$pid
start perf record -B -e intel_pt//u -m,8K -o full.data -p "$target"
recorder=$pid
wait_for_steps
kill -STOP "$recorder"
# Each CPU has a buffer of its own.
for _ in $(seq 50); do
	before=$(steps)
	sleep 0.3
	[ "$(steps)" != "$before" ] || break
done
must test "$(steps)" = "$before"
kill -CONT "$recorder"
wait_for_steps
finish "$recorder"
must test -e "/proc/$target"
cp full.data /out/
perf script --itrace=i1000ie -F ip -i full.data >decoded.txt 2>&1
# "AUX data lost 3 times out of 99!": the records with PERF_AUX_FLAG_TRUNCATED, of all.
lost=$(grep 'AUX data lost' decoded.txt) || fail "nothing is marked as lost"
echo "$lost $(grep -Ec '^ +[0-9a-f]+' decoded.txt) thousand instructions around that"
read -r _ _ _ gaps _ _ _ all <<<"$lost"
[ "${all%!}" -gt "$gaps" ] || fail "the trace did not go on"
must grep -Eq '^ +[0-9a-f]+' decoded.txt
