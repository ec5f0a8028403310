# SPDX-License-Identifier: MIT
# Where the tool reads too slowly, the trace has a gap that is marked, and goes on.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
start /build/programs/service -scale small
must pt_record -m,8K -o full.data -p "$pid" -- sleep 0.5
cp full.data /out/
perf script -D -i full.data >dump.txt 2>/dev/null
echo "$(grep -c 'PERF_RECORD_AUX ' dump.txt) AUX records, $(grep -c 'PERF_RECORD_AUX .*\[T\]' dump.txt) truncated"
must grep -q 'PERF_RECORD_AUX .*\[T\]' dump.txt
must grep -q 'PERF_RECORD_AUX .*flags: 0 ' dump.txt
perf script --itrace=e -i full.data >errors.txt 2>&1
cat errors.txt | head -5
must test -e "/proc/$pid"
