# SPDX-License-Identifier: MIT
# Live tests of -source sample, on kernels that are not the host's. From 6.11 on it attaches to the probes themselves: what it
# measures at them, and leaves of them, is shown by the newest. On 6.1 it takes the perf events that Intel PT takes (62-attach-threads,
# 64-attach-life).
# only: 6.1 newest
. /tests/vm/lib.sh
tests='^all threads are|^-syscall-thresh'
if [[ $(uname -r) != 6.1.* ]] || shows_all; then
	tests+='|^the trigger.s own calls|^the target is as it was'
fi
live_test sample "$tests"
