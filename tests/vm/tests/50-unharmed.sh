# SPDX-License-Identifier: MIT
# Tracing changes nothing that a program does, whatever it does and whoever dies of it.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1

# Forks, pipes, handlers, a death by signal, another program.
cat >workload.sh <<'END'
trap 'n=$((n + 1))' USR1
n=0
for i in 1 2; do
	kill -USR1 $$
	echo "$i $(echo "$i" | md5sum) $( (exit $((i + 3))); echo $?)"
done
(kill -SEGV $BASHPID)
echo "$n $?"
exec busybox printf '%d\n' 42
END
bash workload.sh >plain.txt 2>/dev/null
must pt_record -m,4M -o workload.data -- bash workload.sh >traced.txt 2>/dev/null
must cmp plain.txt traced.txt
decodes workload.data

# A recording of $pid runs as $recorder.
record_target() {
	local target=$pid
	start perf record -q -B -m,64K -e intel_pt//u -o attach.data -p "$target"
	recorder=$pid pid=$target
	wait_for_steps
}

is_alive() {
	[ -e "/proc/$1" ] && ! grep -q '^State:.[XZ]' "/proc/$1/status"
}

start /build/programs/service -scale small
record_target
rmmod softpt 2>/dev/null && fail "the module went while it was in use"
kill -9 "$recorder"
sleep 0.5
must is_alive "$pid"
record_target
kill -9 "$pid"
sleep 0.5
is_alive "$recorder" && fail "perf waits for a target that is gone"

must rmmod softpt
must insmod /lib/softpt.ko
