# SPDX-License-Identifier: MIT
# -trace-include-kernel: the copy of this kernel, perf's own --kcore, and what this PMU refuses.
# only: 6.1 newest
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 20ms
target=$pid
# With a BPF program in it, whose code is the kernel's own making.
echo 1 >/proc/sys/net/core/bpf_jit_kallsyms
start mtbpf attach -pid "$target" -symbol one_iter -delay-thresh 100s -o /tmp/a.fxt
attached=$pid
for _ in $(seq 200); do
	no_probe || break
	sleep 0.1
done
must grep -q 'on_hit.*\[bpf\]' /proc/kallsyms
/build/tests/live/test_kernel_copy_live || fail "the copy is not the kernel"
must kill -INT "$attached"
for _ in $(seq 100); do
	[ -e "/proc/$attached" ] || break
	sleep 0.1
done
rm -rf /tmp/a.*
mtbpf attach -pid "$target" -symbol one_iter -trace-include-kernel -o /tmp/k.fxt 2>/tmp/err &&
	fail "this PMU cannot trace the kernel"
[ $? = 2 ] || fail "status $?"
cat /tmp/err
grep -q 'cannot trace the kernel: this intel_pt PMU records user code only' /tmp/err || fail "why?"
grep -q 'hint: leave out -trace-include-kernel' /tmp/err || fail "no hint"
[ -z "$(ls -d /tmp/k.* 2>/dev/null)" ] || fail "something is left behind"
mtbpf check | grep '^kernel_code' >/tmp/check
cat /tmp/check
grep -Eq 'missing +this PMU records user code only' /tmp/check || fail "check says otherwise"

echo 2 >/proc/sys/kernel/kptr_restrict
mtbpf attach -pid "$target" -trace-include-kernel -o /tmp/k.fxt 2>/tmp/err && fail "no addresses"
echo 0 >/proc/sys/kernel/kptr_restrict
cat /tmp/err
grep -q 'kptr_restrict 2 hides' /tmp/err || fail "kptr_restrict is not named"
grep -q 'hint: sysctl kernel.kptr_restrict=1' /tmp/err || fail "no hint"

# What perf keeps of the kernel is read as ours is.
cd /tmp || exit 1
must perf record -q -B --kcore -e intel_pt//u --per-thread -m,1M -o perf.data -p "$target" -- sleep 0.2
must test -e perf.data/kcore_dir/kcore
mtbpf decode perf.data -o perf.fxt >with 2>err || fail "decode: $(cat err)"
cat with
grep -Eq '[1-9][0-9]* instructions' with || fail "nothing is decoded"
# All of it is user code: the same as without the directory.
must mtbpf decode perf.data/data -o perf.fxt >without
must cmp with without
must kill -0 "$target"
