# SPDX-License-Identifier: MIT
# mtbpf check: a line a need, as text and as JSON; what a user without rights is told; no traces left.

load ../helpers

needs="kernel btf lockdown vm intel_pt pt_caps freeze_pause freeze_refresh freeze_disable
sample cycles lbr lbr_stacks branch_snapshot kernel_code bpf uprobe tracefs perf ptrace memlock CAP_SYS_ADMIN CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH
CAP_CHECKPOINT_RESTORE CAP_SYSLOG CAP_IPC_LOCK CAP_SYS_RESOURCE fzf attach"

setup() {
	[ -x "${O:?}/mtbpf" ] || skip "mtbpf is not built"
	cd "$BATS_TEST_TMPDIR"
}

# The program where everybody can read it, run by somebody with no right at all.
check_as_nobody() {
	[ "$(id -u)" = 0 ] || skip "needs root, to be nobody"
	command -v setpriv >/dev/null || skip "no setpriv"
	public=$(mktemp -d /tmp/mtbpf-check.XXXXXX)
	chmod 755 "$public"
	cp "$O/mtbpf" "$public/"
	run setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
		"$public/mtbpf" check "$@"
}

teardown() {
	[ -z "${public:-}" ] || rm -r "$public"
}

is() {
	grep -Eq "^$1 +$2 +$3" <<<"$output" || { echo "$1 is not '$2 $3'" >&2; return 1; }
}

@test "check: one line a need, in order and in columns, and nothing on stderr" {
	"$O/mtbpf" check >out 2>err || true
	[ ! -s err ]
	[ "$(awk '{print $1}' out | tr '\n' ' ')" = "$(tr '\n' ' ' <<<"$needs")" ]
	[ "$(grep -Evc '^[A-Za-z_ ]{22}  (ok     |missing|limited)  [^ ]' out)" -eq 0 ]
	[ "$(awk 'length > 100' out | wc -l)" -eq 0 ]
}

@test "check: status 0 only where attach works with Intel PT; the help says so" {
	mtbpf_run check
	if has_pt; then
		[ "$status" -eq 0 ] || [[ $output =~ attach\ +(missing|limited) ]]
	else
		[ "$status" -eq 1 ]
		is attach '(missing|limited)' '.*intel_pt'
		is intel_pt missing 'no PMU: .*; -source sample'
		is freeze_pause missing 'not tried: no intel_pt'
	fi
	mtbpf_run check -help
	[[ $output == *"Status 0 if attach would work with Intel PT, 1 if not"* ]]
}

@test "check -json: the same needs, states, reasons and remedies" {
	command -v python3 >/dev/null || skip "no python3"
	"$O/mtbpf" check >text || true
	"$O/mtbpf" check -json >json 2>err && status=0 || status=$?
	[ ! -s err ]
	[ "$status" -eq "$(grep -q '^attach *ok' text && echo 0 || echo 1)" ]
	python3 - >from_json <<-'END'
		import json
		for r in json.load(open("json")):
		    assert isinstance(r["needed"], bool) and isinstance(r["facts"], dict)
		    rest = r["reason"] + ("; " + r["remedy"] if r["remedy"] else "")
		    print(f'{r["name"]:22}  {r["state"]:7}  {rest}')
	END
	diff text from_json
}

@test "check: whether the kernel can be traced, and what it lacks" {
	mtbpf_run check
	if [ ! -e /proc/kcore ]; then
		is kernel_code missing '/proc/kcore is missing; a kernel with CONFIG_PROC_KCORE'
	elif ! has_pt && [ -r /proc/kcore ]; then
		is kernel_code missing
	fi
	[[ ! $output =~ kernel_code\ +limited ]]
}

@test "check as root: what the kernel lets root do is found by doing it" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mtbpf_run check
	if [[ $output =~ CAP_SYS_ADMIN\ +ok ]]; then
		is bpf ok 'the programs load; hit times are kept in'
		is uprobe ok 'tried: a probe of our own is hit'
		is perf ok
		is sample ok 'tried: stacks by a timer, up to [1-9][0-9]* per second'
		is attach '(ok|limited)'
	fi
}

# counts ARGS: whether perf can open it here. Of cycles it would take the clock instead, and not say so.
counts() {
	perf record -q -o counted -e instructions:u "$@" true >/dev/null 2>&1
}

@test "check: cycles, LBR and its call stacks are there where perf finds them, too" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	command -v perf >/dev/null || skip "perf is missing"
	mtbpf_run check
	[[ $output =~ CAP_PERFMON\ +ok ]] || skip "no CAP_PERFMON here"
	if counts; then is cycles ok tried; else is cycles missing "not here \(E"; fi
	if counts -j any,u; then is lbr ok tried; else is lbr missing "not here \(E"; fi
	if counts --call-graph lbr; then is lbr_stacks ok tried; else is lbr_stacks missing "not here \(E"; fi
	[[ $(uname -r) == 5.15.* ]] || is branch_snapshot ok 'BPF programs may'
}

@test "check as nobody: each right is missing, with what does not work and what helps" {
	check_as_nobody
	[ "$status" -eq 1 ]
	is CAP_SYS_ADMIN missing 'for uprobes with Intel PT, or before Linux 6.11; run as root'
	is CAP_BPF missing 'for BPF programs; run as root'
	is uprobe missing 'no probe can be set: EACCES; run as root'
	is tracefs limited 'Intel PT can record only one thread: .*; run as root'
	is perf '(limited|missing)' 'perf_event_paranoid is '
	is memlock '(limited|missing)' '[0-9.]+ [KMG]iB can be locked: '
	is sample missing 'stacks cannot be sampled: .*; run as root'
	is branch_snapshot missing 'not tried: no CAP_BPF; run as root'
	is attach missing '.*uprobe'
	[ "$(grep -Ec '^CAP_[A-Z_]+ +missing' <<<"$output")" -eq "$(grep -o CAP_ <<<"$needs" | wc -l)" ]
	[ "$(awk 'length > 100' <<<"$output" | wc -l)" -eq 0 ]
}

@test "check: the limit of locked memory goes into how much trace fits" {
	check_as_nobody -json
	[[ $output == *'"rlimit_memlock":'* ]]
	small=$(ulimit -l 64; setpriv --reuid=65534 --regid=65534 --clear-groups \
		--bounding-set=-all "$public/mtbpf" check -json || true)
	[[ $small =~ \"rlimit_memlock\":[[:space:]]*65536, ]]
	[[ $small =~ \"fits\":[[:space:]]*([0-9]+) ]]
	cpus=$(getconf _NPROCESSORS_ONLN)
	kb=$(cat /proc/sys/kernel/perf_event_mlock_kb)
	[ "${BASH_REMATCH[1]}" -eq $((kb * 1024 * cpus + 65536)) ]
}

@test "check in a user namespace: rights that count only there are not taken for rights" {
	unshare -Ur true 2>/dev/null || skip "no user namespaces here"
	run unshare -Ur "$O/mtbpf" check
	[ "$status" -eq 1 ]
	is CAP_SYS_ADMIN missing 'for uprobes with Intel PT, or before Linux 6.11; leave the user namespace'
	is uprobe missing
}

@test "check: a kernel where tracefs is mounted nowhere has none mounted afterwards, and no probe" {
	cat /proc/mounts >before
	"$O/mtbpf" check >/dev/null || true
	cat /proc/mounts >after
	diff before after
	[ ! -r /sys/kernel/tracing/uprobe_events ] || ! grep mtbpf /sys/kernel/tracing/uprobe_events
}

@test "check: fzf is looked for on the PATH" {
	mkdir bin
	run env PATH=/nowhere "$O/mtbpf" check
	is fzf limited '.*; install fzf'
	printf '#!/bin/sh\n' >bin/fzf
	run env PATH="/nowhere::$PWD/bin" "$O/mtbpf" check
	is fzf limited
	chmod +x bin/fzf
	run env PATH="/nowhere::$PWD/bin" "$O/mtbpf" check
	is fzf ok
}
