# SPDX-License-Identifier: MIT
# What a container that records Intel PT has to be given, of root's capabilities, where little memory may be
# locked: CAP_IPC_LOCK 14, CAP_SYS_PTRACE 19, CAP_SYS_ADMIN 21; of a process, and of a cgroup.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 2ms
service=$pid
mkdir -p /tmp/cgroup2
mount -t cgroup2 none /tmp/cgroup2 2>/dev/null
mkdir -p /tmp/cgroup2/of-rights
begin /tmp/cgroup2/of-rights /build/programs/service -pause 2ms

# record CAPABILITIES OPTION...: what it says is in $said.
record() {
	local capabilities=$1
	shift
	said=$(/build/programs/rights "$capabilities" "$(command -v mtbpf)" record -source pt "$@" \
		-symbol one_iter -delay-thresh 20ms -timeout 30s -o /tmp/x.mtbpf 2>&1)
}

# refused CAPABILITIES TEXT OPTION...
refused() {
	local text=$2
	record "$1" "${@:3}" && fail "with $1 it records"
	grep -q "$text" <<<"$said" || fail "with $1: $said"
}

for target in "-pid $service" "-cgroup /tmp/cgroup2/of-rights"; do
	# shellcheck disable=SC2086
	{
		record 14,19,21 $target || fail "$target: $said"
		refused 19,21 'CAP_IPC_LOCK' $target
		refused 14,21 'with CAP_SYS_PTRACE' $target
		# CAP_PERFMON 38 and CAP_BPF 39 are not enough for a uprobe.
		refused 14,19,38,39 '^hint: needs CAP_' $target
	}
done
