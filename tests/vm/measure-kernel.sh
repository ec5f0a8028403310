# SPDX-License-Identifier: MIT
# What a hit of kernel: costs, where the kernel takes probes on its functions: tests/vm/run 6.12 tests/vm/measure-kernel.sh
# after make bench-trigger. QEMU emulates the CPU: the ratios are weak evidence for a real one.
. /tests/vm/lib.sh
[ -x /build/tests/bench/bench_trigger ] || skip "bench_trigger is not built"
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
/build/tests/bench/bench_trigger getppid || fail "status $?"
