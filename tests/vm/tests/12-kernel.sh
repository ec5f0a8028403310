# SPDX-License-Identifier: MIT
# What this kernel can do, as it shows when it is tried: the columns of the table in docs/dev/kernels.md. On a
# kernel that is too old mtbpf says so in a line, and does not touch the target.
takes_any_kernel=1
. /tests/vm/lib.sh
mtbpf check >/tmp/check 2>&1
/build/tests/vm/test_optimised >/tmp/optimised || fail "$(cat /tmp/optimised)"
cat /tmp/optimised

# state NAME: ok, limited or missing, as check says.
state() {
	awk -v name="$1" '$1 == name { print $2 }' /tmp/check
}

# fact NAME: as test_optimised has found it.
fact() {
	sed -n "s/^fact: $1 //p" /tmp/optimised
}

# The best freeze of Intel PT.
freeze() {
	for method in pause refresh disable; do
		[ "$(state freeze_$method)" != ok ] || { echo "$method"; return; }
	done
	[ -e /sys/bus/event_source/devices/intel_pt ] && echo none || echo "not tried"
}

start /build/programs/service -scale native
mtbpf attach -pid "$pid" -source sample -symbol one_iter -delay-thresh 1us -timeout 20s -o /tmp/sampled.fxt >/tmp/out 2>/tmp/err
status=$?
cat /tmp/err
must kill -0 "$pid"
sample=ok
if [ "$(state bpf)" != ok ]; then
	# Too old: one line, a hint, nothing of a trace, nothing left.
	[ "$status" = 1 ] || [ "$status" = 2 ] || fail "status $status on a kernel that is too old"
	[ "$(grep -c '^mtbpf: ' /tmp/err)" = 1 ] && grep -q '^hint: .*Linux 6.1 or later' /tmp/err ||
		fail "not one line with its hint: $(cat /tmp/err)"
	[ ! -e /tmp/sampled.fxt ] || fail "a trace is left"
	grep '^kernel' /tmp/check
	grep -Eq '^kernel +limited .* is too old for triggers; 6.1 or later' /tmp/check || fail "$(cat /tmp/check)"
	sample="refused"
elif [ "$status" != 0 ]; then
	fail "attach -source sample: status $status"
else
	grep -q '^hit ' /tmp/out || fail "no hit: $(cat /tmp/out)"
fi
no_probe || fail "a probe is left"
missing=$(awk '$2 == "missing" && $1 !~ /^(intel_pt|pt_caps|freeze_|cycles|lbr|kernel_code|CAP_|attach)/ { print $1 }' /tmp/check | xargs)
{
	freeze
	echo "$sample"
	fact probe
	fact return
	[ -e /sys/kernel/btf/vmlinux ] && echo yes || echo no
	[ -e /sys/kernel/tracing/events/sched/sched_waking ] || missing="$missing sched_waking"
	echo "${missing:--}"
} >/out/facts
cat /out/facts
