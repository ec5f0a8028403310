# SPDX-License-Identifier: MIT
# Overwrite mode as perf uses it: two snapshots of a ring that has wrapped. Says how fast it steps.
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
	sleep 0.5
done
kill -INT "$recorder"
for _ in $(seq 50); do
	[ -e "/proc/$recorder" ] || break
	sleep 0.1
done
must test -e "/proc/$target"
cp snap.data /out/
decodes snap.data
snapshots=$(perf script --show-task-events -D -i snap.data 2>/dev/null | grep -c 'PERF_RECORD_AUXTRACE size: 0x10000 ')
echo "$snapshots buffers of 64 KiB"
[ "$snapshots" -ge 2 ] || fail "the ring had not wrapped in two snapshots"
