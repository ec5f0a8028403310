# SPDX-License-Identifier: MIT
# The last test, for what it does to the kernel cannot be undone: locked down, root may not read the
# kernel's code, and is told so.
. /tests/vm/lib.sh
need_pmu
mount -t securityfs securityfs /sys/kernel/security
[ -e /sys/kernel/security/lockdown ] || skip "this kernel has no lockdown"
must eval 'echo confidentiality >/sys/kernel/security/lockdown'
start /build/programs/service -scale small -pause 2ms
mtbpf attach -pid "$pid" -trace-include-kernel -timeout 1s -o /tmp/k.fxt 2>/tmp/err &&
	fail "kcore can be read"
cat /tmp/err
grep -q 'cannot trace the kernel: lockdown=confidentiality' /tmp/err || fail "lockdown is not named"
grep -q 'hint: boot with lockdown=integrity' /tmp/err || fail "no hint"
mtbpf check | grep '^kernel_code' >/tmp/check
cat /tmp/check
grep -Eq 'missing +lockdown=confidentiality forbids' /tmp/check || fail "check says otherwise"
must kill -0 "$pid"
