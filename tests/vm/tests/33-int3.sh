# SPDX-License-Identifier: MIT
# only: 6.12
# An int3 leaves a FUP and a TIP.PGD, or the TIP.PGD alone: our own probes show no gap either way.
. /tests/vm/lib.sh
need_pmu
start /build/programs/service -scale small -pause 2ms
fup=/sys/module/softpt/parameters/int3_fup

# attach NAME FUP: the summary is in $out. The probe is hit by other calls, too: the trace goes on there.
attach() {
	local status=0
	echo "$2" >"$fup"
	out=$(mtbpf attach -pid "$pid" -symbol one_iter -delay-thresh 20ms -timeout 30s \
		-o "/tmp/$1.fxt" 2>/tmp/err) || status=$?
	echo 1 >"$fup"
	[ "$status" -eq 0 ] || fail "attach, $1: status $status $(cat /tmp/err)"
	cat /tmp/err
	grep -E '^(hit|frozen|gaps)' <<<"$out"
	! grep -q '^gaps' <<<"$out" || fail "gaps, $1"
	# The probe's hits within the trace: ends of tracing at one_iter() that the trace goes on behind.
	mtbpf decode "/tmp/$1.mtbpf" -print branches >"/tmp/$1.branches"
	hits=$(awk '$3 == "end-async" { at = $4; next } $3 == "begin" && at { n++ } { at = "" }
		END { print n + 0 }' "/tmp/$1.branches")
	echo "$1: $hits times back from an interrupt or a probe"
	[ "$hits" -gt 0 ] || fail "no probe was hit in the trace, $1"
}

attach fup 1
attach alone 0
