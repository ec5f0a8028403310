# SPDX-License-Identifier: MIT
# The whole program on live targets: whatever happens to mtbpf or to the target, the user is told in a
# line, a recording is complete or missing, and the target runs on as if nothing had been.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
	! mountpoint -q "$BATS_TEST_TMPDIR/small" || umount -l "$BATS_TEST_TMPDIR/small"
	[ -z "${public:-}" ] || rm -rf "$public"
}

# ---- what the target is like

state_of() {
	awk '/^State:/ { print $2 }' "/proc/$1/status"
}

tracer_of() {
	awk '/^TracerPid:/ { print $2 }' "/proc/$1/status"
}

is_traced() {
	[ "$(tracer_of "$target")" -ne 0 ]
}

is_stopped() {
	[ "$(state_of "$target")" = T ]
}

is_free() {
	! is_traced || false
}

# How far it has come: clock ticks on a CPU.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$target/stat"
}

has_come_on() {
	[ "$(ticks)" -gt "$1" ]
}

# Where the probe of one_iter would be, in memory: its first bytes, in hex.
code() {
	local at
	at=$("$O/mtbpf" list -pid "$target" one_iter | cut -d ' ' -f 1)
	dd if="/proc/$target/mem" bs=16 count=1 iflag=skip_bytes skip=$((16#$at)) status=none | od -An -tx1
}

# Neither traced nor stopped, the probe gone, and it works on. $1: code before.
expect_free() {
	local before
	is_free
	[[ "$(state_of "$target")" == [RSD] ]]
	[ "$(code)" = "$1" ]
	before=$(ticks)
	eventually 5 has_come_on "$before"
}

stepper_is_gone() {
	gone "$stepper"
}

# NAME [COUNT]: NAME.mtbpf is complete, decodes, and holds so many calls.
expect_recording() {
	"$O/mtbpf" decode "$1.mtbpf" -print calls >calls
	[ "$(wc -l <calls)" -ge "${2:-5}" ]
}

# ---- how it ends

@test "a trigger: the trace, the recording and the report; status 0" {
	start_own service -scale small
	bytes=$(code)
	mtbpf_run attach -pid "$target" -symbol one_iter -delay-thresh 200ms -source soft -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"one_iter: "*" hits "*"took "*": capturing "*"iteration of one_iter took"*"next: "*" view x.fxt"* ]]
	[ -s x.fxt ]
	# On a busy machine the first call is late enough.
	expect_recording x 15
	[ "$(grep -c ' one_iter$' calls)" -ge 2 ]
	expect_free "$bytes"
}

# bats test_tags=slow
@test "twice in a row: the second is like the first, which is kept as .old" {
	start_own service -scale small
	bytes=$(code)
	for i in 1 2; do
		mtbpf_run attach -pid "$target" -symbol one_iter -source soft -o x.fxt
		[ "$status" -eq 0 ]
		expect_free "$bytes"
	done
	[ -s x.fxt ] && [ -s x.fxt.old ]
	expect_recording x
	mv x.mtbpf.old y.mtbpf
	expect_recording y
}

@test "Ctrl-C, SIGTERM and SIGHUP before a trigger: the snapshot, status 0" {
	start_own crash -scale small -n 1000000000 # no slow iteration: hits all the time
	bytes=$(code)
	for signal in INT TERM HUP; do
		attach -pid "$target" -symbol one_iter -delay-thresh 100s -o $signal.fxt
		sleep 0.3
		[ "$(code)" != "$bytes" ]
		kill -$signal "$attached"
		attach_ends 5
		[ "$status" -eq 0 ]
		says interrupted
		[[ $output == *"one_iter: "*" hits "* ]]
		[ -s $signal.fxt ]
		expect_recording $signal
		expect_free "$bytes"
	done
}

@test "the timeout: a snapshot, what was seen instead of a trigger, status 3" {
	start_own crash -scale small -n 1000000000 # no slow iteration: hits all the time
	bytes=$(code)
	mtbpf_run attach -pid "$target" -symbol one_iter -delay-thresh 100s -timeout 500ms -source soft -o x.fxt
	[ "$status" -eq 3 ]
	[[ $output == *"one_iter: "*" hits "*"threshold 100 s"*"no trigger before -timeout"* ]]
	[ -s x.fxt ]
	expect_recording x
	expect_free "$bytes"
	mtbpf_run attach -pid "$target" -symbol sample__on_stop -timeout 300ms -source soft -o y.fxt
	[ "$status" -eq 3 ]
	says not-called sample__on_stop
}

@test "-q leaves the report only, -v says more" {
	start service -scale small
	"$O/mtbpf" attach -pid "$target" -symbol one_iter -source soft -o x.fxt -q >out 2>err
	[ ! -s err ]
	grep -q '^hit [0-9]* of one_iter, thread ' out
	"$O/mtbpf" attach -pid "$target" -symbol one_iter -source soft -o x.fxt -v >out 2>err
	grep -q '^debug: probe: one_iter' err
	grep -q '^triggered: ' err
}

# bats test_tags=slow
@test "record and decode are attach in two steps" {
	start service -scale small
	mtbpf_run attach -pid "$target" -symbol one_iter -delay-thresh 150ms -source soft -o x.fxt.gz
	[ "$status" -eq 0 ]
	report=$(grep -A 99 '^hit ' <<<"$output" | grep -v '^next: ')
	gunzip -c x.fxt.gz >attached.fxt
	mtbpf_run decode x.mtbpf -o again.fxt
	[ "$status" -eq 0 ]
	[ "$(grep -A 99 '^hit ' <<<"$output" | grep -v '^next: \|^->')" = "$(grep -v '^->' <<<"$report")" ]
	cmp attached.fxt again.fxt
	mtbpf_run record -pid "$target" -symbol one_iter -delay-thresh 150ms -source soft -o y.mtbpf
	[ "$status" -eq 0 ]
	[ ! -e y.fxt.gz ]
	next=$(sed -n 's/^next: //p' <<<"$output")
	[ "$(eval "${next%%$'\n'*}" 2>/dev/null | grep -c '^the .*iteration of one_iter took')" = 1 ]
	mtbpf_run decode y.mtbpf
	[ "$status" -eq 0 ]
	[ -s y.fxt.gz ]
	[[ $output == *"iteration of one_iter took"* ]]
}

# bats test_tags=slow
@test "Ctrl-C while it decodes: no half trace, and the recording is whole" {
	start service -scale small
	attach -pid "$target" -o x.fxt
	sleep 1.5
	kill -INT "$attached"
	eventually 5 grep -q '^recording: ' "$attach_log"
	kill -INT "$attached" 2>/dev/null || true # it may be through
	attach_ends 5
	[ "$status" -eq 0 ] || [ "$status" -eq 130 ]
	expect_recording x 10
	"$O/mtbpf" decode x.mtbpf -q -o whole.fxt
	[ ! -e x.fxt ] || cmp x.fxt whole.fxt
	# As soon as there is half a file: mostly in the middle of it.
	for i in {1..20}; do
		rm -f part.fxt*
		env --default-signal=INT "$O/mtbpf" decode x.mtbpf -q -o part.fxt.gz >out 2>&1 3>&- &
		decoding=$!
		until compgen -G 'part.fxt.gz*' >/dev/null; do
			kill -0 $decoding 2>/dev/null || break
		done
		kill -INT $decoding 2>/dev/null || true
		wait $decoding || [ $? -eq 130 ]
		! compgen -G 'part.fxt.gz.*' || false
		[ ! -e part.fxt.gz ] || gunzip -c part.fxt.gz | cmp - whole.fxt
	done
}

# ---- the target

@test "a function of a library, named with it" {
	start crash -scale small -n 1000000 -pause 1ms
	for name in libc.so.6:clock_nanosleep libc.so:clock_nanosleep libc:clock_nanosleep; do
		mtbpf_run attach -pid "$target" -symbol $name -source soft -o x.fxt -timeout 10s
		[ "$status" -eq 0 ]
		[[ $output == *"of clock_nanosleep, thread $target"* ]]
	done
	mtbpf_run decode x.mtbpf -print calls
	[[ $output == *" one_iter"*" nanosleep"*" clock_nanosleep"* ]]
}

@test "the target crashes while it is traced" {
	start crash -scale small -n 1000000 -pause 20ms
	attach -pid "$target" -o x.fxt
	kill -USR1 "$target"
	attach_ends 20
	[ "$status" -eq 0 ]
	says target-exited-snapshot
	expect_recording x
	# To its last moments: write_field is where it crashed, and apply_patch called it.
	[[ "$(tail -1 calls)" =~ \ (write_field|apply_patch)$ ]]
	code=0
	wait "$target" || code=$?
	[ "$code" -eq 139 ]
}

@test "the target exits while it is traced, and keeps its exit code" {
	start crash -scale small -n 1000000 -pause 20ms -exit
	attach -pid "$target" -symbol one_iter -delay-thresh 100s -o x.fxt
	kill -USR1 "$target"
	attach_ends 20
	[ "$status" -eq 0 ]
	says target-exited-snapshot
	expect_recording x
	grep -q ' exit$' calls
	code=0
	wait "$target" || code=$?
	[ "$code" -eq 7 ]
}

@test "the target is killed while it sleeps: nothing to show, said so, status 1" {
	sleep 60 3>&- &
	target=$!
	started+=("$target")
	attach -pid "$target" -o x.fxt
	eventually 5 is_traced
	kill -9 "$target"
	attach_ends 5
	[ "$status" -eq 1 ]
	says no-instruction-ran "process $target"
	[ ! -e x.mtbpf ]
}

@test "a stopped target is said to be, and traced once it goes on" {
	start_own service -scale small
	bytes=$(code)
	kill -STOP "$target"
	eventually 5 is_stopped
	mtbpf_run attach -pid "$target" -symbol one_iter -source soft -o x.fxt -timeout 500ms
	[ "$status" -eq 1 ]
	says stopped-until "$target" "$target"
	complains no-instruction-ran hint target-is-stopped "$target"
	[ ! -e x.mtbpf ]
	[ "$(state_of "$target")" = T ]
	is_free
	attach -pid "$target" -symbol one_iter -o x.fxt
	kill -CONT "$target"
	attach_ends 10
	[ "$status" -eq 0 ]
	says triggered
	expect_free "$bytes"
}

@test "a target that a debugger has is refused by name" {
	start_own service -scale small
	bytes=$(code)
	victim=$target
	start tracer "$victim"
	debugger=$target
	target=$victim
	mtbpf_run attach -pid "$target" -symbol one_iter -source soft -o x.fxt
	[ "$status" -eq 1 ]
	complains already-traced "$target" service "$debugger" tracer hint one-tracer
	[ "$(tracer_of "$target")" -eq "$debugger" ]
	[ ! -e x.mtbpf ]
	kill "$debugger"
	eventually 5 is_free
	expect_free "$bytes"
}

@test "a second mtbpf on the same target is refused, and the first unharmed" {
	start_own service -scale small
	bytes=$(code)
	attach -pid "$target" -symbol one_iter -delay-thresh 100s
	eventually 5 is_traced
	mtbpf_run attach -pid "$target" -symbol one_iter -source soft
	[ "$status" -eq 1 ]
	complains already-traced "$target" service hint one-tracer
	# watch only counts: it may.
	mtbpf_run watch -pid "$target" -symbol one_iter -timeout 300ms
	[ "$status" -eq 0 ]
	kill -INT "$attached"
	attach_ends 5
	[ "$status" -eq 0 ]
	# It does not come far on a busy machine.
	expect_recording trace 1
	expect_free "$bytes"
}

@test "kill -9 of mtbpf while it steps: the target runs on, untraced, unprobed" {
	start_own service -scale small
	bytes=$(code)
	attach -pid "$target" -symbol one_iter -delay-thresh 100s -o x.fxt
	eventually 5 is_traced
	stepper=$(tracer_of "$target")
	[ "$stepper" -ne "$attached" ]
	[ "$(code)" != "$bytes" ]
	kill -9 "$attached"
	eventually 5 gone "$attached"
	eventually 5 is_free
	eventually 5 stepper_is_gone
	expect_free "$bytes"
	[ ! -e x.fxt ]
	[ ! -e x.mtbpf ]
}

@test "kill -9 of mtbpf while the target sleeps in a system call" {
	sleep 60 3>&- &
	target=$!
	started+=("$target")
	attach -pid "$target" -o x.fxt
	eventually 5 is_traced
	stepper=$(tracer_of "$target")
	kill -9 "$attached"
	eventually 5 is_free
	eventually 5 stepper_is_gone
	[ "$(state_of "$target")" = S ]
}

# ---- what mtbpf may do

# The program and its targets where nobody can reach them.
go_public() {
	public=$(mktemp -d)
	chmod 755 "$public"
	install -m 755 "$O/mtbpf" "$O/programs/service" "$public"
	mkdir -m 777 "$public/out"
}

as_nobody() {
	run setpriv --reuid=65534 --regid=65534 --clear-groups timeout -k 5 20 "$@"
	printf '%s\n' "$*" "$output" "-> $status"
}

@test "another user's process: permission denied, and whose right it is" {
	go_public
	start service -scale small
	cd "$public/out"
	for command in attach record; do
		as_nobody "$public/mtbpf" $command -pid "$target" -symbol one_iter -source soft
		[ "$status" -eq 1 ]
		complains cannot-look-at-process "$target" service "Permission denied" hint run-as-its-user
	done
	as_nobody "$public/mtbpf" list -pid "$target"
	[ "$status" -eq 1 ]
	complains cannot-look-at-process "$target" hint run-as-its-user
	[ -z "$(ls)" ]
}

@test "one's own process without root: a trigger needs capabilities, which are named" {
	go_public
	cd "$public/out"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$public/service" -scale small >/dev/null 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^service' "/proc/$target/comm"
	sleep 0.1
	for args in "attach -source soft" watch; do
		as_nobody "$public/mtbpf" $args -pid "$target" -symbol one_iter
		[ "$status" -eq 1 ]
		complains cannot-load-bpf "Operation not permitted" hint needs-bpf
	done
	as_nobody "$public/mtbpf" check
	[ "$status" -eq 1 ]
	[[ $output != *hint:* ]]
	[[ $output =~ "uprobe "\ +missing.*CAP_SYS_ADMIN ]]
	[[ $output =~ "bpf "\ +missing.*CAP_BPF ]]
	[[ $output =~ "ptrace "\ +limited.*CAP_SYS_PTRACE ]]
}

@test "a place that nobody may write: said before the target is touched" {
	go_public
	chmod 755 "$public/out"
	cd "$public/out"
	as_nobody "$public/mtbpf" attach -pid $$ -source soft
	[ "$status" -eq 1 ]
	complains cannot-create-recording trace.mtbpf "Permission denied" hint choose-another-place
}

mount_small() {
	mkdir small
	mount -t tmpfs -o "$1" none small 2>/dev/null || skip "cannot mount a tmpfs here"
}

@test "a read-only file system: said before the target is touched" {
	mount_small ro
	mtbpf_run attach -pid $$ -source soft -o small/x.fxt
	[ "$status" -eq 1 ]
	complains cannot-create-recording "*" "Read-only file system" hint choose-another-place
	mkdir x.mtbpf && touch x.mtbpf/data
	mtbpf_run decode x.mtbpf -o small/x.fxt
	[ "$status" -eq 1 ]
}

@test "a full disk: said so; what is there is known to be incomplete; the target is free" {
	start_own service -scale small
	bytes=$(code)
	mount_small size=64k
	dd if=/dev/zero of=small/fill bs=1k count=60 status=none
	mtbpf_run attach -pid "$target" -source soft -timeout 300ms -o small/x.fxt
	[ "$status" -eq 1 ]
	complains cannot-write-recording small/x.mtbpf "No space left*" hint disk-full
	[ ! -e small/x.fxt ]
	mtbpf_run decode small/x.mtbpf
	[ "$status" -eq 1 ]
	complains incomplete-recording
	expect_free "$bytes"
}

@test "room for the recording, but not for its trace: no half trace" {
	start service -scale small
	mtbpf_run record -pid "$target" -source soft -timeout 2s -o x.mtbpf
	[ "$status" -eq 3 ]
	mount_small size=64k
	dd if=/dev/zero of=small/fill bs=1k count=64 status=none
	mtbpf_run decode x.mtbpf -o small/x.fxt
	[ "$status" -eq 1 ]
	complains cannot-write small/x.fxt "No space left*" hint free-some-space
	[ ! -e small/x.fxt ]
	mtbpf_run decode x.mtbpf -o x.fxt
	[ "$status" -eq 0 ]
}

# ---- watch and run

@test "watch: counts, percentiles and a histogram on stdout; the probe is gone afterwards" {
	start_own service -scale small -pause 5ms
	bytes=$(code)
	"$O/mtbpf" watch -pid "$target" -symbol one_iter -timeout 600ms >out 2>err
	cat out
	grep -Eq '^[0-9]+ hits  [0-9.]+/s  p50 .*  p99 .*  max ' out
	hits=$(cut -d ' ' -f 1 out | head -1)
	[ "$hits" -ge 20 ] && [ "$hits" -le 130 ]
	# Each delay between two hits is in one bucket.
	[ "$(awk -F ' : ' '/ - / { n += $2 } END { print n + 0 }' out)" -eq $((hits - 1)) ]
	grep -Eq '4\.19 ms - +8\.39 ms : [0-9]+ +\*{20,40}$' out
	grep -q '^watching; Ctrl-C ends it' err
	[ "$(code)" = "$bytes" ]
}

@test "watch -durations measures the calls, not the pauses between them" {
	start service -scale small -pause 5ms
	mtbpf_run watch -pid "$target" -symbol one_iter -durations -timeout 500ms
	[ "$status" -eq 0 ]
	[[ $output =~ p50\ [0-9.]+\ [nu]s ]]
	[[ $output == *"duration : count"* ]]
}

@test "watch ends with Ctrl-C and with its target" {
	start service -scale small -pause 5ms
	for signal in INT TERM; do
		rm -f err
		env --default-signal=INT "$O/mtbpf" watch -pid "$target" -symbol one_iter >out 2>err 3>&- &
		watching=$!
		started+=("$watching")
		eventually 5 grep -qs '^watching' err
		sleep 0.1
		kill -$signal "$watching"
		wait "$watching"
		grep -q ' hits ' out
	done
	rm err
	"$O/mtbpf" watch -pid "$target" -symbol one_iter >out 2>err 3>&- &
	watching=$!
	started+=("$watching")
	eventually 5 grep -qs '^watching' err
	kill "$target"
	eventually 5 gone "$watching"
	wait "$watching"
	grep -q "the target has exited" err
	grep -q ' hits ' out
}

@test "run: from the first instruction to the trigger; the program runs on, and its end is told" {
	BARE=1 mtbpf_run run -source soft -symbol one_iter -o x.fxt -- "$O/programs/crash-static" -scale small -exit
	[ "$status" -eq 0 ]
	[[ $output == *"hit 1 of one_iter"* ]]
	says program-exited 7
	expect_recording x
	[[ "$(head -1 calls)" == *" _start" ]]
	grep -q ' main$' calls
}

@test "run: with a threshold; a program that is found in PATH" {
	BARE=1 PATH=$O/programs:$PATH mtbpf_run run -source soft -symbol one_iter -delay-thresh 150ms -o x.fxt \
		-- service-static -scale small -n 40
	[ "$status" -eq 0 ]
	[[ $output == *"triggered"*"iteration of one_iter"* ]]
}

# bats test_tags=slow
@test "run: a script, by its interpreter; its exit code is told" {
	printf '#!%s\n' "$O/programs/crash-static" >script
	chmod +x script
	BARE=1 mtbpf_run run -source soft -o x.fxt -- ./script
	[ "$status" -eq 0 ]
	[[ $output == *"bad option or value: "*"/script"* ]]
	[[ $output == *"the target has exited"*"the program exited with status 2"* ]]
	expect_recording x
}

# bats test_tags=slow
@test "run: a signal for mtbpf ends the program too, before the snapshot and after" {
	log=$BATS_TEST_TMPDIR/log
	for symbol in "" "-symbol one_iter"; do
		begin_log "$log"
		env -i --default-signal=INT "$O/mtbpf" run -source soft $symbol -o x.fxt \
			-- "$O/programs/service-static" -scale small >"$log" 2>&1 3>&- &
		attached=$! attach_log=$log
		started+=("$attached")
		eventually 10 grep -q '^pid ' "$log"
		[ -z "$symbol" ] || eventually 10 grep -q '^the program runs on as process' "$log"
		target=$(sed -n 's/^pid //p' "$log")
		kill -TERM "$attached"
		attach_ends 10
		[ "$status" -eq 0 ]
		gone "$target"
		[ -s x.fxt ]
	done
}
