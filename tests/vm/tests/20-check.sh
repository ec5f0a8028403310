# SPDX-License-Identifier: MIT
# mtbpf check: what this kernel and the module's PMU have, each found by trying.
. /tests/vm/lib.sh
mtbpf check >/tmp/check.txt 2>/tmp/check.err
status=$?
cat /tmp/check.txt
[ ! -s /tmp/check.err ] || fail "there is something on stderr: $(cat /tmp/check.err)"

# is NAME STATE [PATTERN]
is() {
	grep -Eq "^$1 +$2 +${3:-}" /tmp/check.txt || fail "$1 is not '$2 ${3:-}'"
}
is uprobe ok 'tried: '
is bpf ok 'the programs load'
is btf ok /sys/kernel/btf/vmlinux
is tracefs ok '/sys/kernel/tracing$'
is kernel ok 'Linux [0-9.]+'
is CAP_SYS_ADMIN ok 'for uprobes'
is vm '[a-z]+' 'QEMU TCG'
[ -z "$(cat /sys/kernel/tracing/uprobe_events)" ] || fail "a probe is left behind"
need_pmu

is intel_pt ok
is vm ok '.*: with Intel PT'
is pt_caps ok 'psb_cyc, mtc, topa, .*2 address ranges'
if has_aux_pause; then
	is freeze_pause ok 'tried: in the kernel, by aux_pause'
else
	is freeze_pause missing 'not on this kernel: EINVAL'
fi
is freeze_refresh ok 'tried: in the kernel, by an event limit'
is freeze_disable ok 'tried: from user space'
is attach ok 'works with Intel PT'
[ "$status" = 0 ] || fail "status $status, though all is there"
grep -q "^next: 'mtbpf selftest' " /tmp/check.txt || fail "selftest is not offered"

mtbpf check -json >/tmp/check.json || fail "-json: status $?"
grep -q '"topa_output":.*1' /tmp/check.json || fail "no caps in the JSON"

# Somebody records a CPU: then no thread can be, and check says so. On the other CPU, where nobody steps it.
events=$(cat /sys/module/softpt/refcnt)
start taskset 2 perf record -q -C 1 -o /dev/null -e intel_pt//u sleep 20
for _ in $(seq 100); do
	[ "$(cat /sys/module/softpt/refcnt)" = "$events" ] || break
	sleep 0.1
done
taskset 1 mtbpf check >/tmp/check.txt
status=$?
[ $status = 1 ] || fail "status $status while perf has Intel PT"
is intel_pt missing '.*EBUSY; end the perf'
is attach limited 'works with samples; missing for Intel PT: .*intel_pt'
