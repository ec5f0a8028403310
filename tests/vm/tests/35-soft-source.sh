# SPDX-License-Identifier: MIT
# The soft source works here, by ptrace. Slowly: to wake the other emulated CPU takes it a
# millisecond, hence one CPU for both, and a snapshot on Ctrl-C.
# only: 6.1
. /tests/vm/lib.sh
cd /tmp || exit 1
start taskset 1 /build/programs/service -scale small
must timeout --preserve-status -s INT 5 taskset 1 mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 10s \
	-source soft -o soft.fxt
must test -s soft.fxt
cp soft.fxt /out/
must test -e "/proc/$pid"
