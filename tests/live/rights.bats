# SPDX-License-Identifier: MIT
# docs/user/rights.md: what a user who is not root can do, with a copy that has capabilities and one that has not.

load ../helpers
load rights

setup() {
	why=$(why_not | head -n 1)
	[ -z "$why" ] || skip "$why"
	enter_folder
	cp "$(command -v grep)" ../grep
	setcap cap_sys_admin+ep ../grep 2>/dev/null || skip "this file system keeps no capabilities"
	"${nobody[@]}" ../grep -q 'CapEff:.*200000$' /proc/self/status || skip "/tmp is mounted nosuid"
	serve_both
}

teardown() {
	end_started
	rm -rf "${folder:-/nonexistent}"
}

# with CAPABILITIES ARGS: mtbpf as nobody, from a file that has them ("" none). $status, $output.
with() {
	local capabilities=$1
	shift
	cp "$O/mtbpf" ../mtbpf
	[ -z "$capabilities" ] || setcap "$capabilities+ep" ../mtbpf
	run "${nobody[@]}" timeout -k 5 60 ../mtbpf "$@"
	printf '%s\n' "[$capabilities] mtbpf $*" "$output" "-> $status"
}

@test "without capabilities: one's own processes stepped and listed, and all that comes after a recording" {
	with "" attach -source soft -pid "$own" -timeout 2s -o x.fxt
	[ "$status" -eq 3 ]
	for command in "decode x.mtbpf -o y.fxt" "report x.mtbpf" "report y.fxt"; do
		# shellcheck disable=SC2086
		with "" $command
		[ "$status" -eq 0 ]
	done
	with "" check
	[ "$status" -eq 1 ]
	says attach-by-samples-needs
	with "" list -pid "$own" one_iter
	[ "$status" -eq 0 ]
	with "" list -pid "$roots" one_iter
	[ "$status" -ne 0 ]
	with "" attach -source soft -pid "$roots" -timeout 200ms
	[ "$status" -ne 0 ]
	complains cannot-look-at-process "$roots" hint run-as-its-user
}

@test "a symbol needs cap_sys_admin; from Linux 6.11 on cap_bpf and cap_perfmon are enough" {
	with "" watch -pid "$own" -symbol one_iter -max-hits 1 -timeout 30s
	[ "$status" -eq 1 ]
	[[ $output == *"hint: needs CAP_"* ]]
	with cap_bpf,cap_perfmon watch -pid "$own" -symbol one_iter -max-hits 1 -timeout 30s
	if printf '6.11\n%s\n' "$(uname -r)" | sort -CV; then
		[ "$status" -eq 0 ]
		[[ $output == *" hits "* ]]
		with cap_bpf,cap_perfmon attach -source sample -pid "$own" -symbol one_iter -after 1s -timeout 30s -o x.fxt
		[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
	else
		[ "$status" -eq 1 ]
		[[ $output == *"hint: needs CAP_"* ]]
	fi
	with cap_sys_admin watch -pid "$own" -symbol one_iter -max-hits 1 -timeout 30s
	[ "$status" -eq 0 ]
	[[ $output == *" hits "* ]]
	with cap_sys_admin attach -source sample -pid "$own" -symbol one_iter -after 1s -timeout 30s -o x.fxt
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
	[ -s x.fxt ] || [ -s x.fxt.gz ]
}

@test "another user's process needs cap_sys_ptrace as well" {
	with cap_sys_admin watch -pid "$roots" -symbol one_iter -max-hits 1 -timeout 30s
	[ "$status" -eq 1 ]
	complains cannot-look-at-process "$roots" hint run-as-its-user
	with cap_sys_admin,cap_sys_ptrace watch -pid "$roots" -symbol one_iter -max-hits 1 -timeout 30s
	[ "$status" -eq 0 ]
	with cap_sys_ptrace attach -source soft -pid "$roots" -timeout 2s -o x.fxt
	[ "$status" -eq 3 ]
	with cap_sys_ptrace list -pid "$roots" one_iter
	[ "$status" -eq 0 ]
}

@test "samples without a symbol need cap_perfmon, unless perf_event_paranoid says otherwise" {
	paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
	# Beyond 2, which Debian and Ubuntu know, every perf event is for CAP_SYS_ADMIN.
	needed=cap_perfmon
	[ "$paranoid" -le 2 ] || needed=cap_sys_admin
	with "" attach -source sample -pid "$own" -timeout 2s -o x.fxt
	if [ "$paranoid" -le 1 ]; then
		[ "$status" -eq 3 ]
	else
		[ "$status" -eq 1 ]
		complains cannot-do "sample the process" hint needs-perfmon
	fi
	with "$needed" attach -source sample -pid "$own" -timeout 2s -o x.fxt
	[ "$status" -eq 3 ]
}

@test "a file that only its user may read needs cap_dac_read_search" {
	chmod 700 ../service
	serve env
	with cap_sys_admin,cap_sys_ptrace watch -pid "$served" -symbol one_iter -max-hits 1 -timeout 30s
	[ "$status" -ne 0 ]
	with cap_sys_admin,cap_sys_ptrace,cap_dac_read_search watch -pid "$served" -symbol one_iter -max-hits 1 -timeout 30s
	[ "$status" -eq 0 ]
}

@test "the recipe of docs/user/rights.md: the copy with its four capabilities, and ambient ones" {
	recipe=$(sed -n 's/^    sudo setcap \(cap_[a-z_,]*\)+ep .*/\1/p' "$BATS_TEST_DIRNAME/../../docs/user/rights.md")
	[ -n "$recipe" ]
	with "$recipe" watch -pid "$roots" -symbol one_iter -max-hits 1 -timeout 30s
	[ "$status" -eq 0 ]
	cp "$O/mtbpf" ../mtbpf
	run "${nobody[@]}" --inh-caps +sys_admin,+sys_ptrace,+ipc_lock \
		--ambient-caps +sys_admin,+sys_ptrace,+ipc_lock \
		timeout -k 5 60 ../mtbpf watch -pid "$roots" -symbol one_iter -max-hits 1 -timeout 30s
	echo "$output"
	[ "$status" -eq 0 ]
}

# What opens files, of those that we have: CAP_DAC_OVERRIDE, _READ_SEARCH, CAP_FOWNER; and, where the kernel has no
# Landlock, what opens those of other processes: CAP_SYS_PTRACE, _CHECKPOINT_RESTORE.
of_files() {
	local all kept=e
	all=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
	perl -e 'exit(syscall(444, 0, 0, 1) < 1)' || kept=1000008000e
	printf '%016x' $((16#$all & 16#$kept))
}

has_capabilities() {
	[ "$(sed -n 's/^Cap\(Eff\|Prm\):[[:space:]]*//p' "/proc/$1/status" | sort -u)" = "$2" ]
}

has_child() {
	child=$(pgrep -P "$1")
}

@test "attach decodes with what opens files, and nothing else of root's" {
	# It waits at its summary: nobody reads it.
	mkfifo full
	exec 7<>full
	dd if=/dev/zero of=full oflag=nonblock bs=4096 count=4096 2>/dev/null || true
	timeout -k 5 60 "$O/mtbpf" attach -source soft -pid "$roots" -timeout 1s -o x.fxt >full 2>said 3>&- &
	wrapper=$!
	started+=("$wrapper")
	eventually 30 grep -q '^decoding;' said
	attached=$(pgrep -P "$wrapper")
	eventually 10 has_child "$attached"
	eventually 10 has_capabilities "$child" "$(of_files)"
	# Nor would a program that it executes get them.
	grep -q '^NoNewPrivs:[[:space:]]1$' "/proc/$child/status"
	cat <&7 >/dev/null 3>&- &
	started+=("$!")
	status=0
	wait "$wrapper" || status=$?
	exec 7<&-
	cat said
	[ "$status" -eq 3 ]
	[ -s x.fxt ]
}

# bats test_tags=slow
@test "what is written is its maker's alone, whatever the umask" {
	umask 0
	timeout -k 5 60 "$O/mtbpf" attach -q -source sample -pid "$roots" -symbol one_iter -skip 5 -portable -o sample.fxt.gz
	timeout -k 5 60 "$O/mtbpf" attach -q -source soft -pid "$roots" -timeout 1s -o soft.fxt.gz || [ $? -eq 3 ]
	for source in sample soft; do
		"$O/mtbpf" decode -q "$source.mtbpf" -o "$source.fxt" >/dev/null
		"$O/mtbpf" decode -q "$source.mtbpf" -o "$source.fxt" >/dev/null
		[ -s "$source.fxt.old" ]
	done
	timeout -k 5 60 "$O/mtbpf" record -q -source sample -pid "$roots" -symbol one_iter -skip 5 -dir kept -max-hits 50 >/dev/null
	[ -n "$(ls kept)" ]
	[ "$(find . -mindepth 1 -type f | wc -l)" -ge 10 ]
	[ -z "$(find . -mindepth 1 -perm /077)" ]
}

serves() {
	grep -q '^http' traced
}

# bats test_tags=slow
@test "attach -view under sudo serves as who called sudo" {
	env --default-signal=INT SUDO_UID=65534 SUDO_GID=65534 "$O/mtbpf" attach -source sample -pid "$roots" \
		-symbol one_iter -skip 3 -view -o x.fxt >traced 2>said 3>&- &
	attached=$!
	started+=("$attached")
	eventually 30 serves || { cat said; false; }
	[ "$(awk '/^Uid:/ { print $2, $3, $4 }' "/proc/$attached/status")" = "65534 65534 65534" ]
	grep -q '^CapEff:[[:space:]]0*$' "/proc/$attached/status"
	kill -INT "$attached"
	wait "$attached"
}
