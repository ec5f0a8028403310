# SPDX-License-Identifier: MIT
# -cgroup: what is no cgroup to record is said in one line, with what to do, status 2.

load ../helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	made=
}

teardown() {
	[ -z "$made" ] || rmdir "$made"
}

# refused MESSAGE... -- OPTION...: by attach and by record, and nothing is written.
refused() {
	local said=()
	while [ "$1" != -- ]; do
		said+=("$1")
		shift
	done
	shift
	for command in attach record; do
		mtbpf_run $command "$@"
		[ "$status" -eq 2 ]
		complains "${said[@]}"
		[ -z "$(ls -A)" ]
	done
}

# The mount point of the v2 hierarchy, or of a v1 one: cgroup2 or cgroup.
mount_of() {
	awk -v type="$1" '{ for (i = 6; i < NF; i++) if ($i == "-" && $(i + 1) == type) { print $5; exit } }' \
		/proc/self/mountinfo
}

@test "a process and a cgroup are one too many" {
	refused not-both "*" -pid -cgroup hint choose-one -- -pid $$ -cgroup x
}

@test "neither: both are named" {
	refused no-process-given hint give-process --
}

@test "soft steps one process" {
	refused soft-and-cgroup hint soft-one-process -- -source soft -cgroup x
}

@test "there is no such cgroup" {
	[ -n "$(mount_of cgroup2)" ] || skip "no cgroup v2 hierarchy is mounted"
	refused no-cgroup no.such/cgroup hint find-cgroup -- -cgroup no.such/cgroup
	refused no-cgroup /no.such/cgroup hint find-cgroup -- -cgroup /no.such/cgroup
}

@test "a folder that is no cgroup, a file" {
	[ -n "$(mount_of cgroup2)" ] || skip "no cgroup v2 hierarchy is mounted"
	refused not-a-cgroup /tmp hint use-v2-cgroup -- -cgroup /tmp
	refused no-cgroup-path "*" "Not a directory" hint find-cgroup -- -cgroup /etc/passwd
}

@test "a cgroup of version 1" {
	local v1
	v1=$(mount_of cgroup)
	[ -n "$v1" ] || skip "no cgroup v1 hierarchy is mounted"
	refused is-a-v1-cgroup "$v1" hint use-v2-cgroup -- -cgroup "$v1"
}

@test "a cgroup with nobody in it" {
	local root
	root=$(mount_of cgroup2)
	[ -n "$root" ] || skip "no cgroup v2 hierarchy is mounted"
	mkdir "$root/mtbpf-cli-$$" 2>/dev/null || skip "no cgroup can be made here"
	made=$root/mtbpf-cli-$$
	refused empty-cgroup "$made" hint start-service -- -cgroup "$made"
	refused empty-cgroup "$made" hint start-service -- -cgroup "mtbpf-cli-$$"
	# As /proc/PID/cgroup writes it.
	refused empty-cgroup "$made" hint start-service -- -cgroup "/mtbpf-cli-$$"
}
