# SPDX-License-Identifier: MIT
# Overwrite mode as perf uses it: two snapshots of a ring that has wrapped. Says how fast it steps.
# only: newest
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
start /build/programs/service -scale small
target=$pid
start perf record -B -e intel_pt//u -S65536 -m,64K -o snap.data -p "$target"
recorder=$pid
wait_for_steps
before=$(steps) began=${EPOCHREALTIME/./}
sleep 1
echo "$((($(steps) - before) * 1000 / ((${EPOCHREALTIME/./} - began) / 1000))) steps/s"
for _ in 1 2; do
	kill -USR2 "$recorder"
	sleep 0.3
done
finish "$recorder"
must test -e "/proc/$target"
cp snap.data /out/
decodes snap.data
[ "$(stat -c %s snap.data)" -ge $((2 * 65536)) ] || fail "the ring had not wrapped in two snapshots"
