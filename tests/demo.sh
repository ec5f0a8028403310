#!/bin/bash
# SPDX-License-Identifier: MIT
# The main job on a sample service: catch one slow iteration and show what made it slow.
#
#   make demo [SOURCE=pt|sample|soft|vm]
#
# Without SOURCE: pt where there is Intel PT, else sample. soft sees every call, but slows it down.
# vm: Intel PT made of software, in a VM (tests/vm).
set -u
cd "$(dirname "$0")/.." || exit 1
O=${O:-build}
trace=$O/demo.fxt
source=${SOURCE:-}
if [ -z "$source" ]; then
	source=sample
	[ -e /sys/bus/event_source/devices/intel_pt ] && source=pt
fi

# At full speed the slow step takes a tenth of a second: a host that is shared stalls a thread for
# ten milliseconds by itself now and then, and that is not what there is to be found.
case $source in
pt | sample) service=("$O/programs/service" -scale native -table-size 1500000) ;;
soft | vm) service=("$O/programs/service" -scale small) ;;
*)
	echo "demo: SOURCE is pt, sample, soft or vm, not '$source'" >&2
	exit 2
	;;
esac

# Only what this demo needs, to be quick on a fresh machine.
if [ "$source" = vm ]; then
	make --no-print-directory deps || exit 1
	make -s --no-print-directory O="$O" tests || exit 1
else
	tests/deps.sh build || exit 1
	make -s --no-print-directory O="$O" "$O/mtbpf" "$O/programs/service" || exit 1
fi

in_vm() {
	local left=$O/vm/out-6.12 file
	echo "demo: in a VM with Debian's kernel 6.12 and an intel_pt made of software. The first time it"
	echo "demo: fetches that kernel, its headers and busybox (50 MB), and QEMU where root may install it"
	O=$O tests/vm/run 6.12 tests/vm/demo.sh >"$O/demo-vm.log" || return
	sed -n '/^# \(demo.sh:\|up \|done \|[0-9]\)/d; s/^# //p' "$O/demo-vm.log"
	for file in demo.fxt demo.mtbpf; do
		[ -s "$left/$file" ] || return
		rm -rf "${O:?}/$file"
		mv "$left/$file" "$O/$file"
	done
	echo "demo: the trace is $trace: open it in https://ui.perfetto.dev (Open trace file)"
	echo "demo: the recording is $O/demo.mtbpf"
}

if [ "$source" = vm ]; then
	in_vm && exit
	echo "demo: no trace came out of the VM:" >&2
	tail -40 "$O/demo-vm.log" >&2
	exit 1
fi

if [ "$source" = sample ]; then
	echo "demo: source sample: the service runs at full speed; mtbpf takes 1000 stacks per second, and records all of its"
	echo "demo: time off the CPU. For every single call, without Intel PT, see a slower demo: make demo SOURCE=soft"
elif [ "$source" = soft ]; then
	echo "demo: source soft: single-steps the service, which makes it at least 10,000 times slower. Intel PT shows"
	echo "demo: the same at a cost of a few percent: make demo SOURCE=pt"
fi

service_pid=
stop_service() {
	[ -z "$service_pid" ] || kill "$service_pid" 2>/dev/null
}
trap stop_service EXIT
trap 'exit 130' INT TERM

"${service[@]}" >/dev/null &
service_pid=$!
echo "demo: ${service[*]} runs as process $service_pid"

# A slow iteration takes a tenth of a second, an ordinary one some microseconds. Stepped, at the
# small scale, they are about 17,000 and 600 instructions: what one takes here is measured first.
calibrate() {
	local out
	out=$("$O/mtbpf" attach -pid "$service_pid" -source soft -timeout 1s -o "$O/calibrate.fxt" 2>/dev/null)
	rm -rf "$O/calibrate.fxt" "$O/calibrate.mtbpf"
	awk '/looks back/ {
		ms = $5 * ($6 == "s:" ? 1000 : $6 == "us:" ? 0.001 : 1)
		if ($7 > 0 && ms > 0) printf "%.0fms\n", 5000 * ms / $7 + 1
	}' <<<"$out"
}
threshold=40ms
if [ "$source" = soft ]; then
	threshold=$(calibrate)
	echo "demo: the threshold is ${threshold:=250ms}, 5,000 stepped instructions; at full speed it would be 40ms"
fi

rm -f "$trace"
attach=("$O/mtbpf" attach -pid "$service_pid" -symbol one_iter -delay-thresh "$threshold" -o "$trace")
# What is not asked for mtbpf chooses by itself, as for any user.
[ -z "${SOURCE:-}" ] || attach+=(-source "$source")
echo "demo: ${attach[*]}"
timeout --foreground -s INT "${DEMO_TIMEOUT:-120}" "${attach[@]}"
status=$?
if [ $status -ne 0 ] || [ ! -s "$trace" ]; then
	echo "demo: mtbpf ended with status $status and wrote no trace" >&2
	exit 1
fi
echo "demo: the report above names what made the call slow. To see the timeline: $O/mtbpf view $trace"
echo "demo: (or open that file in https://ui.perfetto.dev). Next: docs/user/tutorial.md"
