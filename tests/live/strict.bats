# SPDX-License-Identifier: MIT
# What is lost is counted, said, kept with the recording, and with -strict an error.

load ../helpers
load ways_out

setup() {
	[ -x "${O:?}/programs/spin" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	start spin speed
}

teardown() {
	end_started
}

@test "triggers that come while a snapshot is taken: said, and with -strict status 4" {
	# Four: while one is taken, the target may be off the CPU.
	four=(-source sample -pid "$target" -symbol one_iter -multi-snapshot 4 -after 100ms -timeout 20s)
	mtbpf_run attach "${four[@]}" -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ lost:\ [1-9][0-9]*\ triggers?:\ the\ previous\ snapshot\ was\ still\ being\ taken ]]
	mtbpf_run attach "${four[@]}" -o x.fxt -strict
	[ "$status" -eq 4 ]
	complains strict-lost attach hint strict-means
	[ -e x.fxt ]
	# The recording tells of it, too.
	mtbpf_run decode x.mtbpf -o y.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"lost: "*"the previous snapshot was"* ]]
	mtbpf_run decode x.mtbpf -o y.fxt -strict
	[ "$status" -eq 4 ]
	mtbpf_run decode x.mtbpf -print calls -strict
	[ "$status" -eq 4 ]
	mtbpf_run record "${four[@]}" -o z.mtbpf -strict
	[ "$status" -eq 4 ]
	[[ $output == *"warning: lost: "*"the previous snapshot was"* ]]
	[ -e z.mtbpf/meta.json ]
}

@test "where nothing is lost -strict changes nothing" {
	attach -source sample -pid "$target" -symbol on_signal -o x.fxt -strict
	runs_a_while
	kill -WINCH "$target"
	attach_ends 20
	[ "$status" -eq 0 ]
	[[ $output != *lost:* ]]
	mtbpf_run decode -strict x.mtbpf -o y.fxt
	[ "$status" -eq 0 ]
}

@test "-strict is not about many captures" {
	mtbpf_run record -pid "$target" -dir d -strict
	[ "$status" -eq 2 ]
	complains strict-and-dir hint use-metrics-instead
	[ ! -e d ]
}
