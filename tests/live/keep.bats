# SPDX-License-Identifier: MIT
# record -dir on a service at native speed: it goes on after each capture, keeps the newest, lets the rest
# pass, counts what it does, and leaves nothing half done.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	log=$BATS_TEST_TMPDIR/keep.log
	start service -scale native
}

teardown() {
	end_started
	[ -z "${group:-}" ] || rmdir "$group" 2>/dev/null || true
	! mountpoint -q d || umount d
}

# keeps ARGS: record in the background, $keeper, that has begun to wait; its lines are in $log.
keeps() {
	begin_log "$log"
	timeout -k 5 40 "$O/mtbpf" record -source sample -pid "$target" -symbol one_iter "$@" \
		>"$log" 2>&1 3>&- &
	wrapper=$!
	started+=("$wrapper")
	eventually 10 grep -q '^waiting' "$log"
	keeper=$(pgrep -P "$wrapper")
}

# keeper_ends [SIGNAL]: it is told to, or ends by itself; $status.
keeper_ends() {
	[ -z "${1:-}" ] || kill "-$1" "$keeper"
	eventually 10 gone "$wrapper"
	status=0
	wait "$wrapper" || status=$?
	cat "$log"
}

# captured N: lines of captures in the log are at least so many.
captured() {
	[ "$(grep -c '^20.*\.mtbpf$' "$log")" -ge "$1" ]
}

# only_whole DIR: what has a recording's name is one.
only_whole() {
	local name
	for name in "$1"/*.mtbpf; do
		[ -e "$name/meta.json" ] || [ ! -e "$name" ] || return 1
	done
}

# metric NAME: its value in the file `metrics`.
metric() {
	awk -v name="$1" '$1 == name { print $2 }' metrics
}

# taken_at RECORDING: by its name, in milliseconds.
taken_at() {
	local stamp=${1#*service-}
	date -u -d "${stamp%.mtbpf}" +%s%3N
}

@test "-timeout ends it, while it records and while it waits for its target" {
	for whom in "-pid $target" "-name no_such_service"; do
		# shellcheck disable=SC2086
		run timeout -k 5 40 "$O/mtbpf" record -source sample $whom -symbol one_iter -delay-thresh 1h -dir d -timeout 2s
		echo "$output"
		[ "$status" -eq 0 ]
		[[ $output == *"0 recordings made; d has 0 now" ]]
	done
	! gone "$target" || false
}

@test "it goes on after each capture; the newest are kept; others see whole ones only" {
	# A recording whose summary is being made is read, and would stay longer.
	keeps -delay-thresh 2ms -dir d -keep 3 -no-summary
	until captured 8; do
		only_whole d
		gone "$wrapper" && break
	done
	keeper_ends TERM
	[ "$status" -eq 0 ]
	captured 8
	[ "$(ls -A d | wc -l)" -eq 3 ]
	# The last three of the log, and what a line tells.
	[ "$(grep -o 'd/service-.*' "$log" | tail -3)" = "$(ls -d d/*)" ]
	line='^20[0-9-]{8}T[0-9:.]{12}Z pid '$target' tid '$target' delay [0-9.]+ [mu]?s \(threshold 2\.00 ms\) '
	[ "$(grep -Ec "$line"'[0-9.]+ [KM]iB d/service-20.*Z\.mtbpf$' "$log")" -eq "$(grep -c '^20' "$log")" ]
	grep -q "recordings made; d has 3 now$" "$log"
	! gone "$target" || false
	for name in d/*; do
		mtbpf_run decode "$name" -o x.fxt
		[ "$status" -eq 0 ]
		[[ $output == *"of one_iter took"* ]]
	done
}

# bats test_tags=slow
@test "an hour has so many captures, also over an end and a new start; what came besides is counted" {
	keeps -delay-thresh 2ms -dir d -max-per-hour 2
	eventually 15 captured 2
	grep -q 'max-per-hour 2: the next capture is possible at 20' "$log"
	sleep 1
	keeper_ends INT
	[ "$status" -eq 0 ]
	[ "$(ls d | wc -l)" -eq 2 ]
	grep -Eq 'max-per-hour 2: [1-9][0-9]* hits that would have triggered were not captured' "$log"
	keeps -delay-thresh 2ms -dir d -max-per-hour 2
	sleep 1.5
	keeper_ends INT
	[ "$status" -eq 0 ]
	[ "$(ls d | wc -l)" -eq 2 ]
	grep -Eq ': [1-9][0-9]* hits that would have triggered were not captured' "$log"
}

@test "SIGUSR1 takes one now, also while an hour's captures are used up" {
	keeps -delay-thresh 2ms -dir d -max-per-hour 1
	eventually 15 captured 1
	sleep 0.5
	kill -USR1 "$keeper"
	eventually 5 captured 2
	keeper_ends TERM
	[ "$status" -eq 0 ]
	grep -Eq "^20.*Z pid $target on request .*d/service" "$log"
	mtbpf_run decode "$(ls -d d/* | tail -1)" -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ [1-9][0-9]*\ samples ]]
}

@test "each recording has its own hits: the calls of the one before it are not in it" {
	keeps -delay-thresh 10ms -dir d
	eventually 20 captured 2
	keeper_ends TERM
	# All of it, from the first call to the last, is not longer ago than the capture before it.
	mapfile -t names < <(ls -d d/*)
	mtbpf_run decode "${names[1]}" -print calls
	span_ms=$(grep ' one_iter' <<<"$output" | awk '$4 > end { end = $4 } END { print int(end / 1000000) }')
	[ "$span_ms" -gt 0 ]
	[ "$span_ms" -le $(($(taken_at "${names[1]}") - $(taken_at "${names[0]}") + 5)) ]
}

# probe_of PID: the link of its program to the probe, while it has one.
probe_of() {
	cat "/proc/$1/fdinfo"/* 2>/dev/null | grep -A 1 -E '^link_type:.(perf|uprobe_multi)' | sed -n 's/^link_id:\t//p'
}

counts_busy() {
	curl -s --unix-socket m http://localhost/metrics >metrics
	[ "$(metric 'mtbpf_captures_skipped_total{reason="busy"}')" -gt 0 ]
}

@test "between two captures the probe stays, and what comes is counted" {
	keeps -skip 1 -dir d -max-per-hour 0 -metrics unix:m
	eventually 20 captured 2
	probe=$(probe_of "$keeper")
	[ -n "$probe" ]
	eventually 20 captured 8
	[ "$(probe_of "$keeper")" = "$probe" ]
	eventually 20 counts_busy
	keeper_ends TERM
	[ "$status" -eq 0 ]
}

@test "the end of the process ends it, with a line" {
	keeps -delay-thresh 100s -dir d
	kill "$target"
	keeper_ends
	[ "$status" -eq 0 ]
	grep -q "process $target has exited: nothing more to record" "$log"
	[ -z "$(ls -A d)" ]
}

@test "killed while it waits, it leaves the target as it was; a new one goes on in the folder" {
	keeps -delay-thresh 2ms -dir d -keep 2
	eventually 15 captured 2
	kill -KILL "$keeper"
	eventually 5 gone "$wrapper"
	! gone "$target" || false
	keeps -delay-thresh 2ms -dir d -keep 2
	eventually 15 captured 3
	keeper_ends TERM
	[ "$(ls -A d | wc -l)" -eq 2 ]
}

@test "a full disk: said, nothing is left of it, and it goes on when there is room" {
	mkdir d
	mount -t tmpfs -o size=1m none d 2>/dev/null || skip "cannot mount a tmpfs"
	head -c 1030k /dev/zero >d/ballast 2>/dev/null || true
	keeps -delay-thresh 2ms -dir d
	eventually 15 grep -q 'cannot keep a recording in d: No space left on device' "$log"
	grep -q '^hint: the disk is full' "$log"
	! captured 1 || false
	rm d/ballast
	eventually 15 captured 1
	only_whole d
	keeper_ends TERM
	whole=$(ls d | grep -c '^service') || true
	rest=$(ls -A d | grep -cv '^service') || true
	[ "$status" -eq 0 ]
	[ "$whole" -ge 1 ]
	[ "$rest" -eq 0 ]
}

@test "one that is larger than all may be is not kept" {
	keeps -delay-thresh 2ms -dir d -max-size 4K
	eventually 15 grep -q 'cannot keep a recording in d: the recording exceeds -max-size' "$log"
	keeper_ends TERM
	[ -z "$(ls -A d)" ]
}

# Summaries add to the sizes of recordings a little later.
bytes_agree() {
	curl -sf "$url" >metrics &&
		[ "$(metric mtbpf_recordings_bytes)" -eq "$(find d -type f -printf '%s\n' | paste -sd+ | bc)" ]
}

@test "its metrics agree with its log, and Prometheus' own checker takes them" {
	keeps -delay-thresh 2ms -dir d -keep 2 -max-per-hour 4 -metrics 127.0.0.1:0
	url=$(sed -n 's/^metrics: //p' "$log")
	[[ $url == http://127.0.0.1:*/metrics ]]
	eventually 15 captured 4
	sleep 1.5
	kill -USR1 "$keeper"
	eventually 5 captured 5
	eventually 15 bytes_agree
	cat metrics
	[ "$(metric mtbpf_captures_total)" -eq 4 ]
	[ "$(metric mtbpf_requests_total)" -eq 1 ]
	[ "$(metric mtbpf_triggers_total)" -eq 4 ]
	[ "$(metric 'mtbpf_captures_skipped_total{reason="rate"}')" -gt 0 ]
	[ "$(metric mtbpf_recordings)" -eq 2 ]
	[ "$(metric mtbpf_attached)" -eq 1 ]
	[ "$(metric mtbpf_threshold_seconds)" = 0.002 ]
	hits=$(metric mtbpf_hits_total)
	[ "$(metric mtbpf_delay_seconds_count)" -le "$hits" ]
	[ "$hits" -gt 100 ]
	sleep 1.2
	curl -sf "$url" >metrics
	[ "$(metric mtbpf_hits_total)" -gt "$hits" ]
	[ "$(curl -s -o /dev/null -w '%{http_code}' -X POST -d x "$url")" = 405 ]
	[ "$(curl -s -o /dev/null -w '%{http_code}' "${url%metrics}")" = 404 ]
	[ "$(curl -s -o /dev/null -w '%{http_code}' -I "$url")" = 200 ]
	keeper_ends TERM
	[ "$status" -eq 0 ]
	command -v promtool >/dev/null || skip "the rest needs promtool"
	promtool check metrics <metrics
}

@test "metrics on a unix socket, which goes with it; one that a killed mtbpf left is taken over" {
	keeps -delay-thresh 100s -dir d -metrics "unix:$PWD/s"
	curl -sf --unix-socket s http://localhost/metrics >metrics
	[ "$(metric mtbpf_attached)" -eq 1 ]
	[ "$(stat -c %a s)" = 660 ]
	kill -KILL "$keeper"
	eventually 5 gone "$wrapper"
	[ -S s ]
	keeps -delay-thresh 100s -dir d -metrics "unix:$PWD/s"
	curl -sf --unix-socket s http://localhost/metrics >metrics
	[ "$(metric mtbpf_captures_total)" -eq 0 ]
	keeper_ends TERM
	[ ! -e s ]
}

# A cgroup of the v2 hierarchy: $group. Or the test is skipped.
make_group() {
	local root
	root=$(findmnt -n -t cgroup2 -o TARGET | head -1)
	[ -n "$root" ] || skip "no cgroup v2 hierarchy is mounted"
	group=$root/mtbpf-keep-$$
	mkdir "$group" 2>/dev/null || skip "no cgroup can be made here"
}

# start_in_group: as a service manager does, a shell at first.
start_in_group() {
	bash -c 'echo $$ >"$1/cgroup.procs"; sleep "$3"; exec "$2" -scale native' - "$group" "$O/programs/service" "$1" \
		>/dev/null 2>&1 3>&- &
	target=$!
	started+=("$target")
}

# keeps_named ARGS: as keeps, of a target that need not be there.
keeps_named() {
	begin_log "$log"
	timeout -k 5 60 "$O/mtbpf" record -source sample -symbol one_iter -delay-thresh 2ms "$@" >"$log" 2>&1 3>&- &
	wrapper=$!
	started+=("$wrapper")
	eventually 5 pgrep -P "$wrapper" >/dev/null
	keeper=$(pgrep -P "$wrapper")
}

not_attached() {
	curl -sf --unix-socket s http://localhost/metrics >metrics
	[ "$(metric mtbpf_attached)" -eq 0 ]
}

@test "a service in its cgroup is waited for, and goes on when it is started again" {
	make_group
	rmdir "$group"
	keeps_named -cgroup "$group" -dir d -keep 100 -max-per-hour 0 -metrics "unix:$PWD/s"
	eventually 5 grep -q 'waiting for a process of' "$log"
	kill -USR1 "$keeper"
	eventually 5 grep -q 'no snapshot: the target is not running' "$log"
	mkdir "$group"
	for round in 1 2; do
		start_in_group 1.2
		eventually 20 captured_of "$target" 3
		kill "$target"
		eventually 5 gone "$target"
		# The manager removes the group, and makes it anew.
		eventually 5 rmdir "$group"
		mkdir "$group"
	done
	eventually 5 not_attached
	keeper_ends TERM
	rmdir "$group"
	[ "$status" -eq 0 ]
	[ "$(metric mtbpf_attaches_total)" -ge 2 ]
	[ "$(metric mtbpf_captures_total)" -eq "$(grep -c '^20' "$log")" ]
	# Of both lives.
	[ "$(metric mtbpf_triggers_total)" -ge "$(metric mtbpf_captures_total)" ]
	! grep -q "contain a function 'one_iter'" "$log" || false
}

# bats test_tags=slow
@test "processes by name are waited for as well, whatever their pids; one that has not the function is an error" {
	cp "$O/programs/service" "keep-me-$$"
	keeps_named -name "keep-me-$$" -dir d -max-per-hour 0
	eventually 5 grep -q 'waiting for a process of' "$log"
	for round in 1 2; do
		"./keep-me-$$" -scale native >/dev/null 2>&1 3>&- &
		again=$!
		started+=("$again")
		eventually 20 captured_of "$again" 2
		kill "$again"
		eventually 5 gone "$again"
	done
	cp "$(command -v sleep)" "keep-me-$$"
	"./keep-me-$$" 30 3>&- &
	started+=("$!")
	keeper_ends
	[ "$status" -eq 2 ]
	grep -q "^mtbpf: no function 'one_iter'" "$log"
	# It was tried several times, and found once.
	[ "$(grep -c "is process ${started[-1]}\$" "$log")" -eq 1 ]
}
