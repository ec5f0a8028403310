# SPDX-License-Identifier: MIT
# -source sample: the BPF program stops the rings of all threads at the hit, and what they hold is right.
# only: 6.1
. /tests/vm/lib.sh
CMOCKA_MESSAGE_OUTPUT=TAP must /build/tests/live/test_trigger_sampling
