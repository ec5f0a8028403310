# SPDX-License-Identifier: MIT
# What may trigger, and when, on live targets: the options that decide in the kernel, as a user has them.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# One iteration in twenty rehashes 500,000 sessions, which takes milliseconds.
start_service() {
	start service -slow-every 20 -pause 300us "$@"
}

# sample ARGS: attach -source sample to the target
sample() {
	mtbpf_run attach -source sample -sample-rate 1000 -pid "$target" -o x.fxt "$@"
}

# The times of a line "...: 46.3 ms after the one before", in ns.
in_ns() {
	sed -n "s/$1.*/\1 \2/p" <<<"$output" | awk '
		{ print int($1 * ($2 == "s" ? 1e9 : $2 == "ms" ? 1e6 : $2 == "us" ? 1e3 : 1)) }'
}

@test "a percentile is learned, and what is slower triggers" {
	start_service
	sample -symbol one_iter -delay-thresh p98
	[ "$status" -eq 0 ]
	says nothing-triggers-until 500
	[[ $output =~ threshold\ p98\ =\ ([0-9.]+\ [mun]?s)\ \(([0-9]+)\ values\) ]]
	[ "${BASH_REMATCH[2]}" -ge 500 ]
	[[ $output == *"iteration of one_iter"*rehash* ]]
	[ "$(in_ns 'hit .*: \([0-9.]*\) \([mun]*s\) after the one before')" -gt 1000000 ]
}

@test "a percentile that is not known yet triggers nothing, and says how far it is" {
	start_service
	sample -symbol one_iter -duration-thresh p99.99 -timeout 1s
	[ "$status" -eq 3 ]
	[[ $output =~ one_iter:\ ([0-9]+)\ hits.*learning\ p99.99:\ ([0-9]+)\ of\ 100000 ]]
	[ "${BASH_REMATCH[2]}" -ge $((BASH_REMATCH[1] - 1)) ]
}

@test "-max-hits ends with the last of so many hits, without a report, and status 3" {
	start_service
	sample -symbol one_iter -delay-thresh 100s -max-hits 30
	[ "$status" -eq 3 ]
	[[ $output == *"one_iter: 30 hits"*"no trigger within -max-hits"* ]]
	[[ $output == *"hit 30 of one_iter, thread $target: the last of -max-hits"* ]]
	[[ $output != *"iteration of one_iter took"* && $output != *"no report"* ]]
	mtbpf_run watch -pid "$target" -symbol one_iter -max-hits 25
	[ "$status" -eq 0 ]
	[[ $output == *"25 hits"* ]]
	mtbpf_run watch -pid "$target" -symbol one_iter -durations -max-hits 25
	[ "$status" -eq 0 ]
	start service -scale small
	mtbpf_run attach -source soft -pid "$target" -symbol one_iter -delay-thresh 100s -max-hits 1 -o x.fxt
	[ "$status" -eq 3 ]
	[[ $output == *"hit 1 of one_iter"* ]]
}

# bats test_tags=slow
@test "-skip and -after let some pass, which is counted; -min-interval keeps two apart" {
	start_service
	sample -symbol one_iter -skip 3 -max-hits 3
	[ "$status" -eq 3 ]
	[[ $output == *"3 hits"*"3 skipped by limits"* ]]
	sample -symbol one_iter -skip 3
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ ([0-9]+)\ of\ one_iter ]]
	[ "${BASH_REMATCH[1]}" -ge 4 ]
	sample -symbol one_iter -after 100s -max-hits 30
	[ "$status" -eq 3 ]
	[[ $output == *"30 hits"*"30 skipped by limits"* ]]
	sample -symbol one_iter -skip 3 -min-interval 100s -multi-snapshot -max-hits 300
	[ "$status" -eq 3 ]
	says snapshot-taken 1
	! says snapshot-taken 2 || false
}

@test "several functions: any of them triggers, and the report says which" {
	start_service
	sample -symbol one_iter -symbol table_rehash,table_grow -duration-thresh 1ms -max-hits 1000
	[ "$status" -eq 0 ]
	[[ $output == *"a call of one_iter, table_rehash, table_grow of at least 1.00 ms"* ]]
	# On a busy machine it may be a call of the first that has to wait for a CPU.
	[[ $output =~ call\ [0-9]+\ of\ (one_iter|table_(rehash|grow)),\ thread\ $target:\ took ]]
	slow=${BASH_REMATCH[1]}
	[[ $output == *"iteration of $slow took"* ]]
	mtbpf_run decode x.mtbpf -o y.fxt
	[[ $output =~ call\ [0-9]+\ of\ $slow,\ thread ]]
	sample -symbol table_grow,one_iter
	[ "$status" -eq 0 ]
	[[ $output == *"of one_iter, thread"* ]]
	mtbpf_run watch -pid "$target" -symbol table_rehash,table_rehash -max-hits 2
	[ "$status" -eq 0 ]
	[[ $output == *"2 hits"* ]]
	sample -symbol one_iter,nosuch
	[ "$status" -eq 2 ]
	complains no-function nosuch
	sample -symbol one_iter,
	[ "$status" -eq 2 ]
	complains empty-name hint name-several -symbol
}

@test "the instructions that return: the same durations as return probes have" {
	start service -scale small -pause 1ms
	mtbpf_run watch -pid "$target" -symbol one_iter -durations -return-probes ret-insns -max-hits 100
	[ "$status" -eq 0 ]
	[[ $output =~ 10[0-9]\ hits ]]
	counted=$(awk '/ : [0-9]/ { n += $0 ~ /count/ ? 0 : $7 } END { print n }' <<<"$output")
	[ "$counted" -eq 100 ]
	sample -symbol one_iter,handle_request -duration-thresh 1ns -after 200ms \
		-return-probes ret-insns
	[ "$status" -eq 0 ]
	# one_iter ends with a call of the other: a jump, which leaves it.
	[[ $output =~ call\ [0-9]+\ of\ (one_iter|handle_request),\ thread\ $target:\ took ]]
}

# bats test_tags=slow
@test "Go: goroutines' calls are measured, on moved stacks and other threads, and it lives on" {
	[ -x "$O/programs/go_stacks" ] || skip "there is no Go to build the program"
	start go_stacks
	mtbpf_run watch -pid "$target" -symbol main.iteration -durations -max-hits 200
	[ "$status" -eq 0 ]
	[[ $output =~ ([0-9]+)\ hits.*p50\ ([0-9]+)[0-9.]*\ ms ]]
	[ "${BASH_REMATCH[2]}" -ge 2 ]
	# Hardly one is begun that is not seen to end.
	[ "${BASH_REMATCH[1]}" -le 220 ]
	# So is one whose entry has a check of its own, at which most calls' stacks are moved.
	mtbpf_run watch -pid "$target" -symbol main.large -durations -max-hits 200
	[[ $output =~ ([0-9]+)\ hits ]]
	[ "${BASH_REMATCH[1]}" -ge 200 ]
	[ "${BASH_REMATCH[1]}" -le 220 ]
	sample -symbol main.iteration -duration-thresh 2ms
	[ "$status" -eq 0 ]
	[[ $output == *"of main.iteration, thread"*": took "*"ms"* ]]
	! gone "$target" || false
	# Beside a C program's its calls are not measured: those are threads'.
	go=$target
	start service -scale small
	mtbpf_run watch -pid "$go,$target" -symbol main.iteration,one_iter -durations -timeout 1s
	[ "$status" -eq 2 ]
	complains go-and-others main.iteration one_iter hint record-one-language
	mtbpf_run watch -pid "$go,$target" -symbol main.iteration,one_iter -max-hits 10
	[ "$status" -eq 0 ]
}

# A return probe replaces the return address by that of the kernel's trampoline, which unwinders and garbage collectors
# do not know: an exception would end in std::terminate().
@test "C++: calls that exceptions pass are measured, and the program lives on" {
	start rejects
	mtbpf_run watch -pid "$target" -symbol handle -durations -max-hits 200
	[ "$status" -eq 0 ]
	[[ $output =~ 2[0-9][0-9]\ hits ]]
	# A tenth of the hits has no return.
	[[ $output =~ p50\ [0-9] ]]
	sample -symbol handle -duration-thresh 1ns -after 50ms
	[ "$status" -eq 0 ]
	[[ $output == *"of handle, thread"* ]]
	sample -symbol main -also handle -timeout 200ms
	[[ $output != *"mtbpf: "* ]]
	sample -symbol handle -stall-thresh 10s -timeout 200ms
	! gone "$target" || false
	# Who insists is told.
	mtbpf_run watch -pid "$target" -symbol handle -durations -return-probes uretprobe -timeout 1ms
	[[ $output == *"an exception that passes handle will end the program"* ]]
}

@test "OCaml: calls during which the collector runs are measured, and the program lives on" {
	[ -x "$O/programs/collects" ] || skip "there is no OCaml to build the program"
	start collects
	sample -symbol 'Collects.handle' -duration-thresh 1ns -after 500ms
	[ "$status" -eq 0 ]
	[[ $output == *"of Collects.handle, thread"* ]]
	mtbpf_run watch -pid "$target" -symbol Collects.handle -durations -return-probes uretprobe
	[ "$status" -eq 2 ]
	complains uretprobe-crashes hint leave-out-return-probes
	! gone "$target" || false
}

@test "what returns in a way that cannot be probed is refused, with the other way" {
	start service -scale small
	sample -symbol libc.so.6:exit -duration-thresh 1ms -return-probes ret-insns
	[ "$status" -eq 2 ]
	complains never-returns exit hint use-delay-thresh ""
	mtbpf_run attach -pid "$target" -symbol one_iter -return-probes none
	[ "$status" -eq 2 ]
	complains bad-value "*" return-probes none @not-a-choice hint choices return-probes "*ret-insns*"
}
