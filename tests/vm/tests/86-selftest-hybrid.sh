# SPDX-License-Identifier: MIT
# mtbpf selftest on a hybrid CPU, whose second kind of core has no CYC, Event Trace and PTWRITE: the checks of each kind
# of core pass and, with a clock that is wrong, fail.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
clean_up() { rmmod softpt; insmod /lib/softpt.ko; }
must rmmod softpt
must insmod /lib/softpt.ko little=2
cores=("cores: cpu_core" "cores: cpu_atom")
words=(-only events -only ptwrite)
for check in "${cores[@]}"; do words+=(-only "$check"); done

# is VERDICT CHECK
is() {
	grep -E "^pt +$2 +$1 " /tmp/out || fail "$2 is not $1: $(cat /tmp/out)"
}

mtbpf selftest -source pt "${words[@]}" >/tmp/out 2>&1
for check in "${cores[@]}" events ptwrite; do is ok "$check"; done
! grep -E 'cores: (all|cpu_lowpower)' /tmp/out || fail "a kind of core that is not there"
echo 1 >/sys/module/softpt/parameters/broken
mtbpf selftest -source pt "${words[@]}" >/tmp/out 2>&1
for check in "${cores[@]}"; do is failed "$check"; done
