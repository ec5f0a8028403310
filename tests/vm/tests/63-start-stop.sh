# SPDX-License-Identifier: MIT
# -start and -stop: Intel PT is paused at the one probe and goes on at the other, inside the kernel.
# only: 6.1 newest
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 2ms

needs_pauses -start handle_request -stop format_reply

# attach NAME ARGS: the summary is in $out.
attach() {
	local name=$1
	shift
	attach_regions "$name" 'sample__next|clock_nanosleep' "$@"
	perf script -i "/tmp/$name.mtbpf" --itrace=e >/tmp/errors 2>&1
	! grep -qi 'error' /tmp/errors || fail "perf: $(grep -i error /tmp/errors | head -3)"
	grep -q ' receive_request$' "/tmp/$name.text" || fail "nothing of a request is in the trace"
}

# has_regions NAME N: so many at least, each of them once from the start to the stop.
has_regions() {
	awk -v least="$2" '$5 == "receive_request" { n++ } / \[gap: outside / { if (n != 1) bad++; n = 0; regions++ }
		END { print regions + 1, "regions"; exit bad > 0 || n != 1 || regions + 1 < least }' "/tmp/$1.text"
}

steps_before=$(steps)
attach one -start handle_request -stop format_reply -duration-thresh 1us -skip 9
grep -Eq '^hit [0-9]+ of format_reply, thread [0-9]+: .* after -start' <<<"$out" || fail "not the stop has triggered"
grep -q ': 0 branches after the hit' <<<"$out" || fail "it ran on after the stop"
must has_regions one 10
echo "$(($(steps) - steps_before)) instructions stepped"
attach other -start handle_request -stop format_reply -symbol one_iter -delay-thresh 20ms
grep -q '^hit .* of one_iter, ' <<<"$out" || fail "another trigger has no effect"
attach threads -start handle_request -stop format_reply -multi-thread -skip 3
must has_regions threads 4
no_probe || fail "a probe is left"
attach again -start handle_request -stop format_reply -multi-snapshot 2
must kill -0 "$pid"
