# SPDX-License-Identifier: MIT
# -source sample: what a goroutine waits for in a call, and who ends the wait. The verifier takes the programs of Go's runtime.
. /tests/vm/lib.sh
[ -x /build/programs/go_waits ] || skip "there was no Go to build the program"
start /build/programs/go_waits mutex
mtbpf attach -source sample -pid "$pid" -symbol main.handle -duration-thresh 150ms -timeout 60s -o /tmp/go.fxt >/tmp/out 2>&1 ||
	fail "attach: status $? $(cat /tmp/out)"
grep -Eq '^(reason|   and): blocked in main.handle > sync.*: .*, made ready by goroutine [0-9]+ in main.holder' /tmp/out ||
	fail "no reason: $(cat /tmp/out)"
