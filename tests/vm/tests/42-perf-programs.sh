# SPDX-License-Identifier: MIT
# perf decodes without an error what the sample programs do: signals, threads, exceptions, tail calls.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
for name in service signals threads tailcalls cxx_service; do
	before=$(cat /sys/module/softpt/parameters/steps)
	{ perf record -q -m,8M -e intel_pt//u -o pt.data -- timeout -s KILL 1 "/build/programs/$name" -scale small >/dev/null 2>record.txt; } 2>/dev/null
	stepped=$(($(cat /sys/module/softpt/parameters/steps) - before))
	[ "$stepped" -gt 1000 ] || fail "$name: $stepped instructions traced: $(cat record.txt)"
	perf script --itrace=e -i pt.data >script.txt 2>errors.txt
	errors=$(grep -c 'instruction trace error' script.txt errors.txt | tr '\n' ' ')
	echo "$name: $stepped instructions, $errors"
	grep -h 'instruction trace error' script.txt errors.txt | head -3
	cp pt.data "/out/$name.data"
done
! grep -q error /tmp/errors.txt
