# SPDX-License-Identifier: MIT
# A probe's hit stops the trace inside the kernel, at the probed instruction.
. /tests/vm/lib.sh
need_pmu
export CMOCKA_MESSAGE_OUTPUT=TAP
must /build/tests/vm/test_freeze
