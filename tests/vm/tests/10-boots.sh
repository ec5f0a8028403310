# SPDX-License-Identifier: MIT
# The kernel is up, with what the other tests stand on.
takes_any_kernel=1
. /tests/vm/lib.sh
must test -e /sys/kernel/tracing/uprobe_events
must test -e /sys/fs/cgroup/cgroup.procs
must test -e /sys/kernel/btf/vmlinux
must test "$(nproc)" = 2
must test "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" = tsc
