# SPDX-License-Identifier: MIT
# What the tests of targets share: cgroups that are made for them, and attach to somebody who comes back.

load ../helpers

# Nobody else's, who may run the tests at the same time.
id=$(od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n')
short=${id:0:12}
other=${id:0:62}$([[ $id == *00 ]] && echo 11 || echo 00)
me=mtbpf-$$
uid=${id:0:8}-0a1b-4c5d-8e9f-${id:8:12}

setup() {
	[ -x "${O:?}/programs/forks" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	cgroups=()
}

# A test may have removed it itself.
remove_cgroup() {
	[ ! -d "$1" ] || rmdir "$1" 2>/dev/null
}

teardown() {
	end_started
	local i
	for ((i = ${#cgroups[@]} - 1; i >= 0; i--)); do
		eventually 5 remove_cgroup "${cgroups[i]}" || true
	done
}

# cgroup NAME: makes it, and those above it: $cgroup.
cgroup() {
	local part
	cgroup=$(awk '{ for (i = 6; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") { print $5; exit } }' \
		/proc/self/mountinfo)
	[ -n "$cgroup" ] || skip "no cgroup v2 hierarchy is mounted"
	for part in ${1//\// }; do
		cgroup+=/$part
		[ ! -d "$cgroup" ] || continue
		mkdir "$cgroup" 2>/dev/null || skip "no cgroup can be made here"
		cgroups+=("$cgroup")
	done
}

# start_in CGROUP PROGRAM ARGS: like start, in a new cgroup.
start_in() {
	cgroup "$1"
	shift
	start "$@"
	echo "$target" >"$cgroup/cgroup.procs"
}

threads_of() {
	ls "/proc/$1/task"
}

# hits ARGS: how many watch has counted in half a second.
hits() {
	mtbpf_run watch "$@" -symbol one_iter -timeout 1500ms
	[ "$status" -eq 0 ]
	hits=$(sed -n 's/^\([0-9]*\) hits .*/\1/p' <<<"$output")
}

# serve NAME CAUSE: causes under a name of its own, in $served, which may be replaced: $target.
serve() {
	begin_log "$1.log"
	"./$1" "$2" >"$1.log" 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' "$1.log"
}

# wait_for_slow ARGS: attach in the background, until it waits.
wait_for_slow() {
	attach_log=$PWD/attach.log
	begin_log "$attach_log"
	"$O/mtbpf" attach -source sample -symbol "${symbol:-one_iter}" -timeout "${limit:-60s}" -o s.fxt "$@" >"$attach_log" 2>&1 3>&- &
	attached=$!
	started+=("$attached")
	eventually 10 grep -q '^waiting for ' "$attach_log"
}

# runs_on PID: returns when its main thread has been on a CPU so often more: there is something of it to record.
runs_on() {
	local before
	before=$(cut -d ' ' -f 3 "/proc/$1/schedstat")
	eventually 20 bash -c '[ "$(cut -d " " -f 3 "/proc/$1/schedstat")" -ge "$2" ]' - "$1" $((before + 20))
}

# Ctrl-C: attach has counted hits, and $target is among the tids in its recording, which are in `seen`.
interrupted_has_target() {
	kill -INT "$attached"
	attach_ends 10
	[ "$status" -eq 0 ]
	[[ $output =~ one_iter:\ ([0-9]+)\ hits ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
	"$O/mtbpf" decode s.mtbpf -format text | awk '{ print $1 }' | sort -u >seen
	grep -qx "$target" seen
}
