# SPDX-License-Identifier: MIT
# perf records on the PMU and decodes what it wrote: the check that the PMU is honest.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
steps=/sys/module/softpt/parameters/steps
before=$(cat $steps)
began=${EPOCHREALTIME/./}
must perf record -q -m,4M -e intel_pt//u -o pt.data -- /bin/busybox true
took=$((${EPOCHREALTIME/./} - began))
echo "$(($(cat $steps) - before)) instructions in $took us"
cp pt.data /out/
perf script --itrace=be -F comm,pid,time,event,ip,sym,addr,flags -i pt.data >script.txt 2>errors.txt
cat errors.txt
echo "$(wc -l <script.txt) branches, $(grep -c 'instruction trace error' script.txt) errors"
head -5 script.txt
tail -5 script.txt
