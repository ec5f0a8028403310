# SPDX-License-Identifier: MIT
# BPF on uprobes works here: the live test of the trigger, run inside.
. /tests/vm/lib.sh
CMOCKA_MESSAGE_OUTPUT=TAP must /build/tests/live/test_trigger
# What -if, -key and -print read at a hit.
CMOCKA_MESSAGE_OUTPUT=TAP must /build/tests/live/test_trigger_reads
