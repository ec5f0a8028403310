# SPDX-License-Identifier: MIT
# Runs in the VM, for `make demo SOURCE=vm`: catches one slow iteration of the sample service with the
# command as it is used on a CPU that has Intel PT.
. /tests/vm/lib.sh
need_pmu
say() {
	echo "demo: $*"
	"$@"
}

cd /out || exit 1
start /build/programs/service -scale small
echo "demo: service -scale small runs as process $pid"
# An ordinary iteration takes 2 ms when the kernel steps it, the slow one 20 and more.
must say mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 20ms -immediate-stop -timeout 30s \
	-source pt -o demo.fxt
must kill -0 "$pid"
