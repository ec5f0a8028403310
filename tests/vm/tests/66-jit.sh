# SPDX-License-Identifier: MIT
# Functions of a JIT as -start and -stop: Intel PT is paused and resumed by breakpoints of the CPU.
. /tests/vm/lib.sh
need_pmu
# The next -start resumes the trace unless user space has stopped it by then.
start /build/programs/jit_service -scale small -pause 200ms
for _ in $(seq 50); do
	[ ! -s "/tmp/perf-$pid.map" ] || break
	sleep 0.1
done
region=(-start jit:jit_inner -stop 'jit:jit shared(int)')
needs_pauses "${region[@]}"

# attach NAME ARGS: the summary is in $out.
attach() {
	local name=$1
	shift
	attach_regions "$name" 'sample__next|clock_nanosleep|jit_shared_inner' "$@"
	# Each region: the end of a call of jit_inner, and the next one.
	awk -v least="$region_count" '$5 == "jit_inner" { n++ } / \[gap: outside / { if (n != 2) bad++; n = 0; regions++ }
		END { print regions + 1, "regions"; exit bad > 0 || n != 2 || regions + 1 < least }' "/tmp/$name.text" ||
		{ cat "/tmp/$name.text"; fail "not the regions"; }
}
region_count=4
attach one "${region[@]}" -duration-thresh 1us -skip 3
grep -Eq '^hit [0-9]+ of jit shared\(int\), thread [0-9]+: .* after -start' <<<"$out" || fail "not the stop has triggered"
grep -q '^frozen in the kernel, by aux_pause: ' <<<"$out" || fail "from where?"
# No region after that of the hit. (The PMU of this VM gives the stop a time after the hit's, so that the summary counts
# from the stop before.)
hit=$(sed -n 's/^hit \([0-9]*\) .*/\1/p' <<<"$out")
[ $(($(grep -c ' \[gap: outside ' /tmp/one.text) + 1)) -le "$hit" ] || fail "it ran on after the stop"
attach threads "${region[@]}" -multi-thread -skip 3
attach other "${region[@]}" -symbol one_iter -skip 4
grep -q '^hit .* of one_iter, ' <<<"$out" || fail "another trigger has no effect"

# Five breakpoints are too many.
mtbpf attach -pid "$pid" "${region[@]}" -symbol jit:jit_shared_inner -o /tmp/x.fxt 2>/tmp/err && fail "that cannot be"
grep -q 'only user space can, some 50 us after the hit' /tmp/err || fail "$(cat /tmp/err)"
no_probe || fail "a probe is left"
must kill -0 "$pid"
