# SPDX-License-Identifier: MIT
# The program with the copy of the stack passes this kernel's verifier and copies what it should.
. /tests/vm/lib.sh
CMOCKA_MESSAGE_OUTPUT=TAP must /build/tests/live/test_trigger_stack
need_pmu
start /build/programs/nofp -scale native
must mtbpf record -pid "$pid" -symbol one_iter -timeout 30s -o /tmp/stack.mtbpf
perf script -i /tmp/stack.mtbpf --no-itrace --no-inline -F ip,sym 2>/dev/null | awk 'NF > 1 { print $2 }' >/tmp/callers
cat /tmp/callers
[ "$(head -7 /tmp/callers | tr '\n' ' ')" = "one_iter visit relay_inner relay_outer handle serve main " ] ||
	fail "perf does not unwind to main"
