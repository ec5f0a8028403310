# SPDX-License-Identifier: MIT
# Live tests of -source sample, on kernels that are not the host's.
# only: 6.1 newest
. /tests/vm/lib.sh
live_test sample '^all threads are|^the trigger.s own calls|^-syscall-thresh|^the target is as it was'
