# SPDX-License-Identifier: MIT
# Tracing changes nothing that a program does, whatever it does and whoever dies of it.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1

# Forks, pipes, handlers, an alternate program, a fault, flags pushed by printf's arithmetic.
cat >workload.sh <<'END'
trap 'n=$((n + 1))' USR1
n=0
for i in 1 2 3; do
	kill -USR1 $$
	echo "$i $(echo "$i" | md5sum) $( (exit $((i + 3))); echo $?)"
done
(kill -SEGV $BASHPID) 2>/dev/null
echo "$n $?"
exec busybox printf '%d\n' 42
END
bash workload.sh >plain.txt
must perf record -q -m,4M -e intel_pt//u -o workload.data -- bash workload.sh >traced.txt
must cmp plain.txt traced.txt
perf script --itrace=e -i workload.data >errors.txt 2>&1
! grep 'trace error' errors.txt || fail "perf cannot decode it"

# traced PERF-OPTION...: a recording of $pid runs as $recorder.
record_target() {
	local target=$pid
	start perf record -q -m,64K -e intel_pt//u -o attach.data -p "$target" "$@"
	recorder=$pid pid=$target
	for _ in $(seq 100); do
		steps=$(cat /sys/module/softpt/parameters/steps)
		sleep 0.1
		[ "$(cat /sys/module/softpt/parameters/steps)" = "$steps" ] || return 0
	done
	fail "no instruction is stepped"
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
