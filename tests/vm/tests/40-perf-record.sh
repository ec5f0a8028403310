# SPDX-License-Identifier: MIT
# perf records on the PMU and decodes what it wrote: the check that the PMU is honest.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
# As everybody calls it.
PT_EVENT=intel_pt//u
must pt_record -m,4M -o true.data -- /bin/busybox true
cp true.data /out/
decodes true.data
perf script --itrace=be -F comm,tid,time,event,ip,addr,flags -i true.data >branches.txt 2>/dev/null
echo "$(wc -l <branches.txt) branches"
tail -4 branches.txt
# It ends with the system call that ends the program.
must grep -q 'tr end  syscall' <(tail -1 branches.txt)
