# SPDX-License-Identifier: MIT
# Each check of mtbpf selftest with Intel PT fails if the PMU is broken in what it checks, and "target afterwards" if a
# probe is left. Not shown here: "kernel" and "power", which this PMU cannot record (tests/unit/selftest), and the types
# of cores (86-selftest-hybrid).
# only: 6.12
# nightly
. /tests/vm/lib.sh
need_pmu
parameters=/sys/module/softpt/parameters
clean_up() {
	echo 0 >$parameters/broken
}
trap clean_up EXIT

# reds BROKEN CHECK...: with the PMU broken like this, each of these checks fails in one of five runs. Where packets are
# lost, chance decides which program they are of: checks that have not failed yet run again, and more packets are lost.
reds() {
	local check left=() words try began
	began=$(date +%s)
	echo "$1" >$parameters/broken
	shift
	for try in 1 2 3 4 5; do
		words=()
		for check; do words+=(-only "$check"); done
		mtbpf selftest -source pt "${words[@]}" >/tmp/out 2>&1
		left=()
		for check; do
			grep -E "^pt +$check +failed " /tmp/out || left+=("$check")
		done
		set -- "${left[@]}"
		[ $# != 0 ] || break
		echo $(($(cat $parameters/broken_every) / 2)) >$parameters/broken_every
	done
	echo 0 >$parameters/broken
	[ $# = 0 ] || fail "have not failed: $(printf "'%s' " "$@") $(cat /tmp/out)"
	echo "$try runs, $(($(date +%s) - began)) s"
}

# Packets are missing: stacks, and what perf decodes.
echo 30 >$parameters/broken_every
reds 2 calls "tail calls" recursion exceptions "forced unwinding" longjmp signals threads fork libraries \
	"code without file" "system calls" "page faults" traps "second stack" gaps "perf trace"
echo 300 >$parameters/broken_every
reds 2 "perf's judgement"
echo 60 >$parameters/broken_every
reds 2 "returns compressed" "returns in full" "20 snapshots" "cores: all" cgroup "any thread" "freeze: disable" "small ring"
# The clock of the trace runs 1 % too fast.
reds 1 times "timer: low" "timer: normal" "timer: high" "freeze: refresh" "freeze: pause"
# A pause has no effect: the trace goes on after the hit.
reds 3 freeze "cores: all"
# The newest 2 KB of the ring are old, whenever the program leaves its CPU.
reds 4 "overhead: low" "overhead: normal" "overhead: high"
# Exceptions have another vector, and values of PTWRITE another bit.
reds 7 events ptwrite

# A probe of somebody else is left in the program.
must perf probe -q -x /build/mtbpf -a left=mtbpf_hit
echo 1 >/sys/kernel/tracing/events/probe_mtbpf/left/enable
mtbpf selftest -source pt -only "target afterwards" >/tmp/out 2>&1
echo 0 >/sys/kernel/tracing/events/probe_mtbpf/left/enable
perf probe -q -d left
grep -E '^pt +target afterwards +failed +a probe is left in the target' /tmp/out || fail "a probe that is left: $(cat /tmp/out)"
