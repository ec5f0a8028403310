# SPDX-License-Identifier: MIT
# -stall-thresh on live targets: threads that are in a call, and stay there. What is found is compared with what the
# program does, which stalls once it is told to.

load ../helpers

setup() {
	[ -x "${O:?}/programs/stalls" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	[ -e /sys/kernel/btf/vmlinux ] || skip "the kernel has no BTF"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# begin COMMAND ARGS: mtbpf in the background, that has begun to wait; its lines are in $log.
begin() {
	log=$BATS_TEST_TMPDIR/log
	begin_log "$log"
	timeout -k 5 120 "$O/mtbpf" "$@" >"$log" 2>&1 3>&- &
	waiting=$!
	started+=("$waiting")
	eventually 20 grep -Eq 'waiting for|^watching' "$log"
}

# ends: waits for it; $status and $output as after run.
ends() {
	eventually "${1:-20}" gone "$waiting"
	status=0
	wait "$waiting" || status=$?
	output=$(<"$log")
	printf '%s\n' "$output" "-> $status"
}

stall() {
	sleep 0.3
	kill -USR1 "$target"
}

# within MIN MAX: the time in the line of the hit, in ms.
within() {
	local ms
	ms=$(sed -n 's/^thread [0-9]* has .* for \([0-9.]*\) \([mu]*s\).*/\1 \2/p' <<<"$output" |
		awk '{ print int($1 * ($2 == "s" ? 1000 : $2 == "ms" ? 1 : 0.001)); exit }')
	echo "$ms ms"
	[ "$ms" -ge "$1" ] && [ "$ms" -le "$2" ]
}

# is_deadlock: two threads of the process wait for each other, in words and in JSON.
is_deadlock() {
	[[ $output =~ deadlock:\ thread\ ([0-9]+)\ waits\ for\ a\ mutex\ held\ by\ thread\ ([0-9]+),\ which\ waits\ for\ one\ held\ by\ thread\ ([0-9]+) ]]
	[ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[3]}" ]
	[ "${BASH_REMATCH[1]}" -ne "${BASH_REMATCH[2]}" ]
	[ -d "/proc/$target/task/${BASH_REMATCH[1]}" ] && [ -d "/proc/$target/task/${BASH_REMATCH[2]}" ]
	ring="${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
	[[ $output == *"* ${BASH_REMATCH[1]} (stalls) waits for a mutex held by thread ${BASH_REMATCH[2]}"*"transfer < trade"* ]]
	[[ $output == *"  $target (stalls) waits in pause: "*"main"* ]]
}

@test "a deadlock is named, by the threads that are in it, while it lasts; the recording keeps it" {
	start stalls deadlock
	begin record -source sample -pid "$target" -symbol transfer -stall-thresh 400ms -o x.mtbpf
	stall
	ends
	[ "$status" -eq 0 ]
	# Both are there still: the program runs on, as it was.
	[ "$(cat "/proc/$target/task/"*/syscall | grep -c "^202 ")" -eq 2 ]
	mtbpf_run report x.mtbpf
	within 400 1200
	[[ $output == *"has been in call "*" of transfer for "*", and still is, threshold 400 ms"* ]]
	is_deadlock
	first=$ring
	mtbpf_run report x.mtbpf -json -q
	python3 - "$output" $first <<-'PYTHON'
		import json, sys
		text = next(l for l in sys.argv[1].splitlines() if l.startswith("{"))
		report, ring = json.loads(text), [int(x) for x in sys.argv[2:]]
		assert report["hit"]["reason"] == "stall", report["hit"]
		assert report["deadlock"] == ring, report["deadlock"]
		threads = {t["tid"]: t for t in report["threads"]}
		assert len(threads) == 3
		assert threads[ring[0]]["stalled"] and "stalled" not in threads[ring[1]]
		assert threads[ring[0]]["mutex_of"] == ring[1] and threads[ring[1]]["mutex_of"] == ring[0]
		assert "transfer" in threads[ring[1]]["stack"], threads[ring[1]]
		assert all(t["state"] == "waits" and t["stack_is_whole"] for t in threads.values())
	PYTHON
}

@test "what only computes is no hang, and a stop or a debugger is none either" {
	start stalls spin
	begin attach -source sample -pid "$target" -symbol handle -stall-thresh 200ms -o x.fxt
	stall
	ends
	[ "$status" -eq 0 ]
	[[ $output == *"* $target (stalls) "*": spin"* ]]
	[[ $output == *"thread $target waits for nothing: "*"so it is busy, and not blocked"* ]]
	[[ $output != *deadlock* ]]
	start stalls read
	begin attach -source sample -pid "$target" -symbol request_begin -delay-thresh 100s -stall-thresh 500ms \
		-timeout 5s -o y.fxt
	sleep 0.3
	kill -STOP "$target"
	sleep 1.5
	kill -CONT "$target"
	sleep 0.2
	kill -0 "$waiting"
	stall
	ends
	[ "$status" -eq 0 ]
	within 500 1400
	[[ $output == *"has not hit request_begin for "*"waits in read of pipe:"*"(fd 3): read < handle"* ]]
}

@test "a call that an exception has left, and one that returns, are not stalled" {
	start stalls throws
	begin attach -source sample -pid "$target" -symbol handle -stall-thresh 200ms -return-probes ret-insns \
		-timeout 2s -o x.fxt
	stall
	ends
	[ "$status" -eq 3 ]
	[[ $output != *"still is, threshold"* ]]
	start stalls slow
	begin attach -source sample -pid "$target" -symbol handle -stall-thresh 5s -duration-thresh 300ms -o y.fxt
	[[ $(<"$log") == *"also waiting for a thread that has been in a call of handle for 5.00 s"* ]]
	stall
	ends
	[ "$status" -eq 0 ]
	[[ $output =~ call\ [0-9]+\ of\ handle,\ thread\ $target:\ took ]]
	begin attach -source sample -pid "$target" -symbol handle -stall-thresh 100ms -duration-thresh 300ms -o z.fxt
	stall
	ends
	[ "$status" -eq 0 ]
	within 100 499
}

@test "the lookback is compared with -stall-thresh; the sizes of the hint can be typed" {
	start stalls read
	mtbpf_run attach -source sample -pid "$target" -symbol handle -stall-thresh 300s -sample-rate 1000 \
		-snapshot-size 64K -max-memory 16M -timeout 1s -o x.fxt
	[[ $output == *"less than twice the threshold of 300 s"* ]]
	[[ $output =~ -snapshot-size\ [0-9]+M\ and\ -max-memory\ [0-9]+M ]]
}

@test "from -start to -stop, with samples and stepped; and watch counts" {
	local source
	for source in sample soft; do
		start stalls read
		begin attach -source "$source" -pid "$target" -start request_begin -stop request_end -stall-thresh 300ms \
			-o "$source.fxt"
		stall
		ends 60
		[ "$status" -eq 0 ]
		within 300 2000
		[[ $output == *"has been between -start (request_begin) and -stop for "*"waits in read of pipe:"* ]]
	done
	start stalls read
	begin watch -pid "$target" -symbol handle -durations -stall-thresh 200ms -timeout 2s
	stall
	ends
	[ "$status" -eq 0 ]
	[[ $output == *"  1 stalled"* ]]
}

@test "run: its program deadlocks, and is found so" {
	log=$BATS_TEST_TMPDIR/log
	begin_log "$log"
	timeout -k 5 60 "$O/mtbpf" run -source sample -symbol transfer -stall-thresh 300ms -o x.fxt -- \
		"$O/programs/stalls" deadlock >"$log" 2>&1 3>&- &
	waiting=$!
	started+=("$waiting")
	eventually 20 grep -q '^pid ' "$log"
	target=$(sed -n 's/^pid //p' "$log")
	started+=("$target")
	eventually 20 grep -q 'waiting for a thread' "$log"
	stall
	eventually 20 grep -q '^triggered' "$log"
	sleep 0.1
	output=$(<"$log")
	eventually 20 grep -q '^deadlock: ' "$log"
	output=$(<"$log")
	is_deadlock
}

# bats test_tags=slow
@test "a Python program's deadlock: where both threads wait, and that nobody knows who has the locks" {
	command -v python3 >/dev/null || skip "no python3"
	cat >deadlock.py <<-'PYTHON'
		import os, signal, threading, time
		a, b = threading.Lock(), threading.Lock()
		asked = threading.Event()
		signal.signal(signal.SIGUSR1, lambda *_: asked.set())
		def trade(first, second):
		    while True:
		        stalls = asked.is_set()
		        with first:
		            if stalls:
		                time.sleep(0.2)
		                with second:
		                    pass
		        time.sleep(0.005)
		for pair in (a, b), (b, a):
		    threading.Thread(target=trade, args=pair, daemon=True).start()
		print("pid", os.getpid(), flush=True)
		while True:
		    time.sleep(0.1)
	PYTHON
	start_file "$(command -v python3)" deadlock.py
	begin attach -source sample -pid "$target" -symbol PyThread_acquire_lock_timed -stall-thresh 500ms -o x.fxt
	stall
	ends 60
	[ "$status" -eq 0 ]
	[ "$(grep -c 'waits in futex: ' <<<"$output")" -ge 1 ]
	[[ $output == *"it is not known who holds what thread "*"only mutexes of glibc name their owner"* ]]
	[[ $output != *"deadlock: "* ]]
}

# bats test_tags=slow
@test "a system call that has not returned, in a child that was forked meanwhile" {
	cat >forks.py <<-'END'
		import os, time
		print("pid", os.getpid(), flush=True)
		while True:
		    if not os.fork():
		        for i in range(20): time.sleep(0.005)
		        time.sleep(5)
		        os._exit(0)
		    os.wait()
	END
	start_file python3 forks.py
	mtbpf_run attach -source sample -pid "$target" -children -symbol syscall:clock_nanosleep -stall-thresh 900ms \
		-timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ thread\ ([0-9]+)\ has\ been\ in\ call\ [0-9]+\ of\ syscall:clock_nanosleep\ for\ [0-9.]+\ (ms|s),\ and\ still\ is ]]
	[ "${BASH_REMATCH[1]}" -ne "$target" ]
	[[ $output =~ \*\ ${BASH_REMATCH[1]}\ \(python3[.0-9]*\)\ waits\ in\ clock_nanosleep ]]
}
