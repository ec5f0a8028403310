# SPDX-License-Identifier: MIT
# How far the target gets between the hit and the freeze, by every method. A measurement, no test:
#
#   VM_LIMIT=1000 VM_TEST_LIMIT=1000 VM_ACCEL=tcg,thread=multi \
#       tests/vm/run 6.1 6.12 tests/vm/measure-freeze.sh
#
# Attaches N times with each method to a program of one thread, and with -multi-thread to one of
# several. Prints the smallest, the median and the largest of
#   branches   of the hit's thread after the hit, as mtbpf counts them in the trace
#   trace      the time from the hit to the last of them, on the trace's own clock
#   stopped    the time from the hit, as BPF took it, to the PMU's stop, as a kprobe on it takes it
. /tests/vm/lib.sh
need_pmu
N=20
tracing=/sys/kernel/tracing

watch_stops() {
	echo perf >$tracing/trace_clock
	must eval "echo 'p:stop softpt:softpt_step__stop' >>$tracing/kprobe_events"
	echo 1 >$tracing/events/kprobes/stop/enable
}

# stop_after HIT TID first|last: microseconds from the hit to that stop of the PMU for the thread.
# The PMU is stopped whenever the thread leaves the CPU, too: the kernel's freeze is the first stop
# after the hit, that from user space the last of all.
stop_after() {
	awk -v hit="$1" -v tid="$2" -v which="$3" '
	/ stop: / && match($0, "-" tid " ") {
		match($0, /[0-9]+\.[0-9]+: stop/)
		t = substr($0, RSTART, RLENGTH - 6)
		if (t > hit && (which == "last" || !at)) at = t
	}
	END { if (at) printf "%.0f\n", (at - hit) * 1e6 }' $tracing/trace
}

# In microseconds, from "59 branches after the hit, 1.2 ms".
microseconds() {
	awk '{ print $1 * ($2 == "s" ? 1e6 : $2 == "ms" ? 1e3 : $2 == "ns" ? 1e-3 : 1) }' <<<"$1"
}

# spread NAME: of the numbers in /tmp/NAME.
spread() {
	sort -n "/tmp/$1" | awk '{ v[NR] = $1 } END { printf "%g / %g / %g", v[1], v[int((NR + 1) / 2)], v[NR] }'
}

# measure METHOD DELAY ATTACH-OPTION...
measure() {
	local method=$1 delay=$2 which=first how hit tid
	shift 2
	[ "$method" = disable ] && which=last
	: >/tmp/branches && : >/tmp/trace && : >/tmp/stopped
	for _ in $(seq $N); do
		echo >$tracing/trace
		mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh "$delay" -timeout 20s -freeze "$method" \
			-snapshot-size 64K -o /tmp/m.fxt "$@" >/tmp/out 2>/tmp/err || return 1
		how=$(sed -n 's/^frozen [^:]*: //p' /tmp/out)
		[ -n "$how" ] || continue
		echo "${how%% *}" >>/tmp/branches
		microseconds "${how#*, }" >>/tmp/trace
		tid=$(sed -n 's/^hit .*thread \([0-9]*\):.*/\1/p' /tmp/out)
		hit=$(perf script --ns -i /tmp/m.mtbpf --no-itrace -F time,event 2>/dev/null |
			awk '/hit/ { sub(":", "", $1); t = $1 } END { print t }')
		stop_after "$hit" "$tid" $which >>/tmp/stopped
	done
	echo "$method $*: n $(wc -l </tmp/branches); branches $(spread branches); trace $(spread trace) us; stopped $(spread stopped) us"
}

watch_stops
start /build/programs/service -scale small
methods="refresh disable"
if has_aux_pause; then methods="pause refresh disable"; fi
for method in $methods; do
	measure "$method" 5ms
done
kill -9 "$pid"
start /build/programs/threads -scale small
sleep 0.5
for method in $methods; do
	measure "$method" 20ms -multi-thread
done
