# SPDX-License-Identifier: MIT
# One event a CPU, for all tasks and for those of a cgroup: perf tells them apart and decodes each.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
mkdir -p /sys/fs/cgroup/box
start /build/programs/service -scale small
echo "$pid" >/sys/fs/cgroup/box/cgroup.procs
start /build/programs/tailcalls -scale small

# record NAME PERF-OPTION...: the tasks seen are in $tasks.
record() {
	local name=$1
	shift
	must pt_record -m,4M "$@" -a -o "$name.data" -- sleep 0.2
	cp "$name.data" /out/
	decodes "$name.data"
	tasks=$(perf script --itrace=i1000i -F comm -i "$name.data" 2>/dev/null | sort | uniq -c)
	echo "$name:" $tasks
}

record all
[[ $tasks = *service* && $tasks = *tailcalls* ]] || fail "not both programs were traced"
record cgroup -G box
[[ $tasks = *service* ]] || fail "the cgroup's program was not traced"
[[ $tasks != *tailcalls* ]] || fail "another program was traced"
