# SPDX-License-Identifier: MIT
# One event a CPU, for all tasks and for those of a cgroup: perf tells them apart and decodes each.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
mkdir -p /sys/fs/cgroup/box
start /build/programs/tailcalls -scale small -pause 1ms
echo "$pid" >/sys/fs/cgroup/box/cgroup.procs
start /build/programs/service -scale small -pause 1ms

# perf takes seconds to start here: NAME.perf has all that is asked of it, a branch a line, "COMM TID".
# same_threads NAME: mtbpf decodes what perf does: each thread's branches, but for some at its ends. Not
# of those that call the vdso: perf.data has no copy of it.
same_threads() {
	awk '{ n[$NF]++ } END { for (tid in n) print n[tid], tid }' "$1.perf" >by_perf
	mtbpf decode "$1.data" -print branches 2>err | awk '$3 != "gap" { n[$1]++ } / unmapped$/ { cut[$1] = 1 }
		END { for (tid in n) print n[tid], tid, cut[tid] + 0 }' >by_mtbpf
	awk 'NR == FNR { ours[$2] = $1; cut[$2] = $3; next }
		{ all += $1; if ($1 < 200 || cut[$2]) next; threads++
		if (ours[$2] < $1 * 0.95 || ours[$2] > $1 * 1.05) { print $2 ":", $1, "by perf,", ours[$2] + 0; bad = 1 } }
		END { print threads + 0, "threads alike,", all + 0, "branches"; exit bad || !threads }' \
		by_mtbpf by_perf >judged || fail "$1: $(cat judged err)"
	cat judged
}

# record NAME PERF-OPTION...: the tasks seen are in $tasks.
record() {
	local name=$1
	shift
	must pt_record -m,4M "$@" -o "$name.data" -- sleep 0.1
	cp "$name.data" /out/
	perf script --itrace=be -F comm,tid -i "$name.data" >"$name.perf" 2>"$name.err"
	! grep -h 'trace error' "$name.perf" "$name.err" || fail "perf cannot decode $name.data"
	same_threads "$name"
	# At a switch a branch or two count to who runs next: the event's end has the time of the return there.
	tasks=$(sed 's/ *[0-9]* *$//' "$name.perf" | sort | uniq -c | awk '{ all += $1; n[NR] = $1; line[NR] = $0 }
		END { for (i in n) if (n[i] * 50 > all) print line[i] }')
	echo "$name:" $tasks
}

record all -a
[[ $tasks = *service* && $tasks = *tailcalls* ]] || fail "not both programs were traced"
record cgroup -a -G box
[[ $tasks = *tailcalls* ]] || fail "the cgroup's program was not traced"
[[ $tasks != *service* ]] || fail "another program was traced"
start /build/programs/threads -scale small -pause 1ms
record process -p "$pid"
[[ ($tasks = *threads* || $tasks = *worker-*) && $tasks != *service* ]] || fail "not the process was traced"
