# SPDX-License-Identifier: MIT
# perf decodes what the sample programs do, who live on: signals, threads, exceptions, tail calls.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1

# A moment of it.
trace_program() {
	start "/build/programs/$1" -scale small
	local before
	before=$(steps)
	# perf does not hear of mappings made between its reading of them and its start, and tailcalls
	# maps a library again and again: so nothing runs until perf does.
	kill -STOP "$pid"
	must pt_record -m,4M -o "$1.data" -p "$pid" -- bash -c "kill -CONT $pid; sleep 0.1"
	stepped=$(($(steps) - before))
	must test -e "/proc/$pid"
	kill -9 "$pid"
	cp "$1.data" /out/
}

for name in service signals threads tailcalls cxx_service; do
	trace_program $name
	echo "$name: $stepped instructions"
	[ "$stepped" -gt 1000 ] || fail "$name was not traced"
	decodes $name.data
done
