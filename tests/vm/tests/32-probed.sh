# SPDX-License-Identifier: MIT
# Uprobes and the tracing of the code they stand in do not disturb each other.
. /tests/vm/lib.sh
need_pmu
export CMOCKA_MESSAGE_OUTPUT=TAP
must /build/tests/vm/test_probed
