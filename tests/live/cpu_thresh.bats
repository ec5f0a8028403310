# SPDX-License-Identifier: MIT
# -cpu-thresh and -off-cpu-thresh: calls of a program that knows how long each computes, and sleeps.

load ../helpers

setup() {
	[ -x "${O:?}/programs/cputime" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	[ -e /sys/kernel/btf/vmlinux ] || skip "the kernel has no BTF"
	cd "$BATS_TEST_TMPDIR"
	started=()
	start cputime
}

teardown() {
	end_started
}

# us FIELD: of a line "... FIELD 1.02 ms ...", in microseconds.
us() {
	sed -n "s/.*$1 \([0-9.]*\) \([mun]*s\).*/\1 \2/p" <<<"$output" | awk '
		{ print int($1 * ($2 == "s" ? 1e6 : $2 == "ms" ? 1e3 : $2 == "us" ? 1 : 0.001)); exit }'
}

# part ON|OFF: of the hit, in microseconds.
part() {
	sed -n "s/^\(call\|hit\) .*, \([0-9.]*\) \([mun]*s\) of it $1 the CPU, threshold .* $1 the CPU.*/\2 \3/p" <<<"$output" |
		awk '{ print int($1 * ($2 == "s" ? 1e6 : $2 == "ms" ? 1e3 : 1)); exit }'
}

@test "of a call, the time on the CPU or off it triggers, and the other does not" {
	mtbpf_run attach -source sample -pid "$target" -symbol handle -cpu-thresh 6ms -o x.fxt
	[ "$status" -eq 0 ]
	says waiting-with-cpu "a call of" handle "6.00 ms" on
	[ "$(part on)" -ge 6000 ]
	[[ $output =~ call\ ([0-9]+)\ of\ handle ]]
	mtbpf_run report x.mtbpf -json -q
	[[ $output =~ \"on_cpu_ns\":([0-9]+) ]]
	[ "${BASH_REMATCH[1]}" -ge 6000000 ]
	mtbpf_run report x.fxt
	[ "$(part on)" -ge 6000 ]
	mtbpf_run attach -source sample -pid "$target" -symbol handle -off-cpu-thresh 25ms -duration-thresh 20ms -o y.fxt
	[ "$status" -eq 0 ]
	[ "$(part off)" -ge 25000 ]
	# The scheduler's own record, which the report adds up, says the same.
	mtbpf_run report y.mtbpf -json -q
	python3 - "$output" <<-'PYTHON'
		import json, sys
		report = json.loads(next(l for l in sys.argv[1].splitlines() if l.startswith("{")))
		slow = report["account"]["slow"]
		off = sum(ns for part, ns in slow.items() if part in ("blocked_ns", "runnable_ns", "preempted_ns", "throttled_ns"))
		print(slow, off, report["hit"])
		assert abs(off - report["hit"]["off_cpu_ns"]) < 0.05 * off
	PYTHON
}

@test "record -dir tells the part that its threshold is for" {
	mtbpf_run record -source sample -pid "$target" -symbol handle -off-cpu-thresh 25ms -dir kept -timeout 8s \
		-max-per-hour 1 -no-stack-copy
	[ "$status" -eq 0 ]
	[[ $output =~ \ duration\ [0-9.]+\ ms,\ [0-9.]+\ ms\ of\ it\ off\ the\ CPU\ \(threshold\ 25.0\ ms\)\  ]]
}

@test "watch measures either part: together they are the whole" {
	mtbpf_run watch -pid "$target" -symbol handle -durations -on-cpu -max-hits 300
	[ "$status" -eq 0 ]
	# It offers the option that measures the same.
	[[ $output == *"mtbpf attach -pid $target -symbol handle -cpu-thresh "*"# p9"* ]]
	[[ $output == *"time on the CPU : count"* ]]
	# The clock of the program's own CPU time begins a little later, and ends a little earlier.
	[ "$(us p50)" -ge 950 ] && [ "$(us p50)" -le 1600 ]
	# The longest may contain what the hypervisor took.
	[ "$(us p99)" -ge 7500 ] && [ "$(us p99)" -lt 25000 ]
	mtbpf_run watch -pid "$target" -symbol handle -durations -off-cpu -max-hits 300
	[ "$(us p50)" -ge 950 ]
	[ "$(us p99)" -ge 28000 ]
	mtbpf_run watch -pid "$target" -symbol handle -durations -on-cpu -off-cpu
	[ "$status" -eq 2 ]
	complains watch-on-and-off-cpu
}

# bats test_tags=slow
@test "a percentile of the time on the CPU; delays and regions; stepped" {
	mtbpf_run attach -source sample -pid "$target" -symbol handle -cpu-thresh p90 -max-hits 2000 -o x.fxt
	[ "$status" -eq 0 ]
	says threshold-is p90
	mtbpf_run attach -source sample -pid "$target" -symbol between -delay-thresh 1ms -off-cpu-thresh 25ms -o y.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"hit "*" of between, thread $target: "*" after the one before, "*" off the CPU, threshold 25.0 ms off the CPU"* ]]
	mtbpf_run attach -source sample -pid "$target" -start handle -stop between -cpu-thresh 6ms -o z.fxt
	[ "$status" -eq 0 ]
	[ "$(part on)" -ge 6000 ]
	mtbpf_run attach -source soft -pid "$target" -symbol handle -off-cpu-thresh 25ms -o s.fxt
	[ "$status" -eq 0 ]
	mtbpf_run attach -pid "$target" -symbol handle -off-cpu-thresh 25ms -cpu-thresh 1ms
	[ "$status" -eq 2 ]
	complains not-both
	mtbpf_run attach -pid "$target" -symbol handle -off-cpu-thresh 25ms -duration-thresh p99
	[ "$status" -eq 2 ]
	complains cpu-thresh-and-percentile
}
