# SPDX-License-Identifier: MIT
# For tests whose target is tests/programs/causes.c.

load ../helpers

setup() {
	[ -x "${O:?}/programs/causes" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# sample ARGS: attach to $target's one_iter until a call takes long.
sample() {
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -timeout 60s -o slow.fxt "$@"
}

# Before all others on the machine, whose turns on its CPU would be a cause as well. Not for a target that hardly
# waits: it would take the CPUs from mtbpf and from all other tests.
come_first() {
	chrt -a -f -p 10 "$target" 2>/dev/null || true
}
