# SPDX-License-Identifier: MIT
# -source sample: who lets a lock go, who answers, and who takes the CPU, which the kernel's tracepoints tell.
# only: 6.1 newest
. /tests/vm/lib.sh
live_test sample ': who (let|gave|they)'
