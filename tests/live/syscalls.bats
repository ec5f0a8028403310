# SPDX-License-Identifier: MIT
# System calls as triggers: what is counted is compared with what the program has done.

load ../helpers

setup() {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# Two threads: one asks over a socket, one answers, each 20th time 300 ms late. Between two questions the first
# thread uses a file, a pipe and an eventfd, and so it goes on.
write_server() {
	cat >server.py <<-'END'
		import os, socket, sys, threading, time
		print("pid", os.getpid(), flush=True)
		ours, theirs = socket.socketpair()
		file = os.open("data", os.O_CREAT | os.O_RDWR)
		out, into = os.pipe()
		def answer():
		    while True:
		        asked = theirs.recv(100)
		        time.sleep(0.9 if asked == b"late" else 0.001)
		        theirs.send(asked)
		threading.Thread(target=answer, daemon=True).start()
		rounds = 0
		while True:
		    os.write(file, b"x" * 512)
		    os.fsync(file)
		    os.write(into, b"y")
		    os.read(out, 1)
		    rounds += 1
		    ours.send(b"late" if rounds % 20 == 0 else b"soon")
		    ours.recv(100)
	END
	start_file python3 server.py
}

# How many hits watch counts of what is done 300 times, once it watches. $1: the statement; others: its options.
count() {
	local statement=$1
	shift
	rm -f go log
	cat >counted.py <<-END
		import mmap, os, signal, socket, time
		def spin(seconds):
		    began = time.time()
		    while time.time() - began < seconds: pass
		signal.signal(signal.SIGUSR1, lambda *_: None)
		signal.signal(signal.SIGUSR2, lambda *_: None)
		print("pid", os.getpid(), flush=True)
		file = os.open("data", os.O_CREAT | os.O_RDWR)
		out, into = os.pipe()
		a, b = socket.socketpair()
		c, d = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
		d.bind(("127.0.0.1", 0))
		memory = mmap.mmap(-1, 1 << 20)
		while not os.path.exists("go"):
		    time.sleep(0.01)
		for i in range(300):
		    $statement
		open("done", "w")
		time.sleep(100)
	END
	rm -f done
	start_file python3 counted.py
	"$O/mtbpf" watch -pid "$target" "$@" >counts 2>log 3>&- &
	watching=$!
	started+=("$watching")
	eventually 10 grep -q '^watching' log
	touch go
	eventually 10 test -e done
	kill "$watching"
	wait "$watching"
	cat log counts
	kill "$target"
	hits=$(sed -n 's/ hits .*//p' counts)
}

@test "each call of the one that is named is a hit, and no other; by the kind of its descriptor" {
	count 'os.fsync(file); os.fstat(file)' -symbol syscall:fsync -durations
	[ "$hits" -eq 300 ]
	[ "$(awk -F ' : ' '/ - / { n += $2 } END { print n + 0 }' counts)" -eq 300 ]
	both='os.write(file, b"x"); os.write(into, b"y"); os.read(out, 1); a.send(b"z"); b.recv(1)'
	count "$both" -symbol 'syscall:write(pipe)'
	[ "$hits" -eq 300 ]
	count "$both" -symbol 'syscall:write(pipe),syscall:sendto|recv*(socket)'
	[ "$hits" -eq 900 ]
}

@test "-start and -stop: from what it has read to what it answers; -requests is that" {
	# The second read finds nothing, and begins nothing.
	one=$'a.send(b"q"); b.recv(9); time.sleep(0.002); b.setblocking(False)
    try: b.recv(9)
    except BlockingIOError: pass
    b.setblocking(True); b.send(b"r"); a.recv(9)'
	count "$one" -requests
	# The same thread's other end is a server, too: from its last answer to the next question.
	[ "$hits" -ge 599 ] && [ "$hits" -le 600 ]
	grep -q "^-requests means -start 'syscall:read|readv|recvfrom|recvmsg(socket)' -stop.*-key arg1 measures up to the answer" log
}

# PHP-FPM does so: what it reads last gets no answer, and then it waits for the next connection.
@test "-requests: a connection that is closed without an answer is over; waiting for the next one does not count" {
	cat >closes.py <<-'END'
		import os, socket, threading, time
		print("pid", os.getpid(), flush=True)
		listening = socket.socket(socket.AF_UNIX)
		listening.bind("listening")
		listening.listen()
		def ask():
		    while True:
		        with socket.socket(socket.AF_UNIX) as s:
		            s.connect("listening")
		            s.send(b"q")
		            s.recv(1)
		            s.send(b"l")
		        with socket.socket(socket.AF_UNIX) as s:
		            s.connect("listening")
		            s.send(b"q")
		            s.recv(1)
		        time.sleep(0.2)
		threading.Thread(target=ask, daemon=True).start()
		while True:
		    s, _ = listening.accept()
		    s.recv(1)
		    s.send(b"r")
		    s.recv(1)
		    s.close()
	END
	start_file python3 closes.py
	mtbpf_run watch -pid "$target" -requests -max-hits 24 -timeout 60s
	[ "$status" -eq 0 ]
	# Two of three are the server's; without the wait 200 ms are not reached even on a busy machine.
	[ "$(awk '/ - .* : / && $2 == "ms" && $1 > 100 { n += $7 } END { print n + 0 }' <<<"$output")" -le 3 ]
	[ "$(awk -F ' : ' '/ - .* : / { n += $2 } END { print n + 0 }' <<<"$output")" -ge 24 ]
	[[ $output == *"mtbpf attach -pid $target -requests -duration-thresh "* ]]
	# The next connection has the same descriptor, but is another request; what is read in pieces is not lost.
	mtbpf_run watch -pid "$target" -requests -key arg1 -max-hits 24 -timeout 60s
	[ "$status" -eq 0 ]
	[ "$(awk '/ - .* : / && $2 == "ms" && $1 > 100 { n += $7 } END { print n + 0 }' <<<"$output")" -le 3 ]
	[[ $output != *lost:* ]]
	mtbpf_run attach -source sample -pid "$target" -requests -duration-thresh 10s -timeout 1s -o "$BATS_TEST_TMPDIR/x.fxt"
	[ "$status" -eq 3 ]
	says late-reads
}

@test "-requests: who closes the connection to a database still answers its client" {
	cat >answers.py <<-'END'
		import os, socket, time
		print("pid", os.getpid(), flush=True)
		client, server = socket.socketpair()
		while True:
		    here, database = socket.socketpair()
		    database.send(b"d")
		    here.recv(1)
		    here.close()
		    database.close()
		    time.sleep(0.05)
		    server.send(b"a")
		    client.recv(1)
	END
	start_file python3 answers.py
	mtbpf_run attach -source sample -pid "$target" -requests -duration-thresh 40ms -timeout 20s -o "$BATS_TEST_TMPDIR/x.fxt"
	[ "$status" -eq 0 ]
}

@test "-duration-thresh: the late answer is found, with its callers and why" {
	write_server
	mtbpf_run attach -source sample -pid "$target" -requests -duration-thresh 700ms -timeout 30s -o x.fxt
	[ "$status" -eq 0 ]
	# Long lists are cut in messages.
	[[ $output == *"each thread is recorded only from syscall:read(socket), syscall:readv(socket) and 2 more to "* ]]
	[[ $output =~ hit\ [0-9]+\ of\ syscall:sendto,\ thread\ [0-9]+:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ -start,\ in\ send ]]
	[[ $output == *"the slow region from -start to syscall:sendto took"* ]]
	[[ $output =~ reason:\ blocked\ in\ .*clock_nanosleep ]]
	mtbpf_run report x.mtbpf -json
	[[ $output == *'"syscall:sendto"'* ]]
	mtbpf_run record -source sample -pid "$target" -symbol 'syscall:recv*(socket)' -duration-thresh 700ms \
		-timeout 30s -o y.mtbpf
	[ "$status" -eq 0 ]
	mtbpf_run report y.mtbpf
	[[ $output =~ call\ [0-9]+\ of\ syscall:recvfrom,\ thread\ $target:\ took\ (9[0-9]+\ ms|1\.[0-9]+\ s),\ in\ recv ]]
}

@test "exit:nonzero is about the status that the parent gets" {
	cat >leave.py <<-'END'
		import os, time
		print("pid", os.getpid(), flush=True)
		while not os.path.exists("go"): time.sleep(0.01)
		os._exit(256)
	END
	start_file python3 leave.py
	"$O/mtbpf" record -source sample -pid "$target" -symbol exit:nonzero -timeout 30s -o x.mtbpf >log 2>&1 3>&- &
	recording=$!
	started+=("$recording")
	eventually 10 grep -q '^waiting for' log
	touch go
	eventually 20 gone "$recording"
	cat log
	! grep -q '^triggered' log || false
}

@test "32-bit system calls have other numbers and are no hits" {
	# 20 is getpid(), and writev() in 64-bit code.
	cat >compat.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		int main(void)
		{
			printf("pid %d\n", getpid()), fflush(stdout);
			for (;;) {
				long result;

				__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
				if (result != getpid())
					return 1;
				usleep(1000);
			}
		}
	END
	"${CC:-gcc}" -O1 -o compat compat.c
	start_file ./compat
	sleep 0.2
	kill -0 "$target" 2>/dev/null || skip "this kernel has no 32-bit system calls"
	mtbpf_run watch -pid "$target" -symbol syscall:writev -timeout 1s
	[[ $output == *"0 hits"* ]]
	mtbpf_run watch -pid "$target" -symbol 'syscall:clock_nanosleep' -timeout 1s
	[[ $output =~ [1-9][0-9]*\ hits ]]
}

@test "a region cannot begin at the close of a kind of descriptor: it is closed by then" {
	write_server
	mtbpf_run watch -pid "$target" -start 'syscall:close(socket)' -stop syscall:read -timeout 1s
	[ "$status" -eq 2 ]
	complains kind-of-closed close hint all-kinds close
	# Of any kind it can.
	mtbpf_run watch -pid "$target" -start syscall:close -stop syscall:read -timeout 300ms
	[ "$status" -eq 0 ]
}

# bats test_tags=slow
@test "signal: the last moments before a crash; exit:nonzero: before an exit; a tracepoint: each time" {
	cat >crash.py <<-'END'
		import ctypes, os, sys, time
		print("pid", os.getpid(), flush=True)
		while not os.path.exists("go"): time.sleep(0.01)
		def last_words():
		    began = time.time()
		    while time.time() - began < 0.05: pass
		    if len(sys.argv) > 1: sys.exit(3)
		    ctypes.string_at(0)
		last_words()
	END
	for how in signal:SEGV exit:nonzero; do
		rm -f go
		begin_log log
		start_file python3 crash.py $([ $how = signal:SEGV ] || echo leave)
		"$O/mtbpf" record -source sample -pid "$target" -symbol $how -timeout 30s -o x.mtbpf >log 2>&1 3>&- &
		recording=$!
		started+=("$recording")
		eventually 10 grep -q '^waiting for' log
		touch go
		eventually 20 gone "$recording"
		cat log
		wait "$recording"
		grep -q '^triggered' log
		mtbpf_run report x.mtbpf
		[[ $output == *"hit 1 of $how, thread $target, in "* ]]
	done
	write_server
	mtbpf_run watch -pid "$target" -symbol tracepoint:sched:sched_switch -timeout 2s
	[ "$status" -eq 0 ]
	[[ $output =~ [1-9][0-9]*\ hits ]]
	mtbpf_run list 'tracepoint:sched:sched_sw*'
	[ "$status" -eq 0 ]
	[[ $output == *" tracepoint:sched:sched_switch" ]]
	mtbpf_run list 'signal:SE*'
	[[ $output == *" signal:SEGV" ]]
	# Its events are no tracepoints.
	mtbpf_run list 'tracepoint:syscalls:*'
	[ "$status" -eq 1 ]
	mtbpf_run watch -pid "$target" -symbol tracepoint:sched:no_such_event -timeout 2s
	[ "$status" -ne 0 ]
	complains cannot-probe-tracepoint "no_such_event*" hint tracepoints-listed
	mtbpf_run watch -pid "$target" -symbol signal:NONE -timeout 2s
	[ "$status" -eq 2 ]
	complains no-such-signal signal:NONE hint signals-listed
	mtbpf_run watch -pid "$target" -symbol tracepoint:block:sched_switch -timeout 2s
	[ "$status" -eq 2 ]
	complains tracepoint-category tracepoint:block:sched_switch sched_switch sched hint use-that-category sched sched_switch
	mtbpf_run watch -pid "$target" -symbol tracepoint:syscalls:sys_exit_read -timeout 2s
	[ "$status" -eq 2 ]
	complains event-not-tracepoint "tracepoint:*" hint event-is-system-call read
	mtbpf_run watch -pid "$target" -symbol tracepoint:sched_switch -timeout 2s
	[ "$status" -eq 2 ]
	complains not-a-tracepoint-name "tracepoint:*" hint tracepoint-names
	# Its hits are in any function: what is reported is the time since the last of them.
	mtbpf_run record -source sample -pid "$target" -symbol tracepoint:sched:sched_switch -delay-thresh 30ms \
		-timeout 30s -o y.mtbpf
	[ "$status" -eq 0 ]
	mtbpf_run report y.mtbpf
	[[ $output =~ hit\ [0-9]+\ of\ tracepoint:sched:sched_switch ]]
	[[ $output =~ thread\ [0-9]+:\ ([0-9.]+\ [a-z]+)\ after.*sched_switch\ took\ ([0-9.]+\ [a-z]+) ]]
	[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
	# The program of the hit may run after the recorder's: the thread is off its CPU all the same.
	[[ $output != *"reason: not recorded"* ]]
}

@test "what cannot be is said: an unknown name, a kind, a source that cannot begin there" {
	write_server
	mtbpf_run watch -pid "$target" -symbol syscall:fsyncs
	[ "$status" -eq 2 ]
	complains no-such-system-call fsyncs "" hint meant-system-call fsync
	mtbpf_run watch -pid "$target" -symbol 'syscall:read(sock)'
	[ "$status" -eq 2 ]
	complains no-descriptor-kind "*" sock hint descriptor-kinds
	mtbpf_run watch -pid "$target" -symbol 'syscall:nanosleep(socket)'
	[ "$status" -eq 2 ]
	complains no-such-system-call "*" @takes-descriptor
	# One of several, which would count less than was meant.
	mtbpf_run watch -pid "$target" -symbol 'syscall:fsync|wriet|write(pipe)'
	[ "$status" -eq 2 ]
	complains no-such-system-call wriet "*" hint meant-system-call write
	mtbpf_run watch -pid "$target" -symbol 'syscall:write(pipe),syscall:write(file)' -timeout 1s
	[ "$status" -eq 2 ]
	complains system-call-twice write
	mtbpf_run watch -pid "$target" -symbol "syscall:$(printf 'read|%.0s' {1..80})write" -timeout 1s
	[ "$status" -eq 2 ]
	complains system-calls-too-long 255
	mtbpf_run record -source soft -pid "$target" -requests -symbol main -o x.mtbpf
	[ "$status" -eq 2 ]
	complains source-and-region-in-kernel soft 'syscall:read(socket)' hint use-sample-or-functions
	mtbpf_run watch -pid "$target" -requests -start main -stop exit
	[ "$status" -eq 2 ]
	complains requests-and-start
	mtbpf_run watch -pid "$target" -symbol kernel:vfs_fsync_rang
	[ "$status" -eq 2 ]
	complains no-kernel-function hint meant-kernel-function vfs_fsync_range
	mtbpf_run watch -pid "$target" -symbol 'kernel:tcp_*'
	[ "$status" -eq 2 ]
	complains several-kernel-functions hint name-each-one
	mtbpf_run watch -pid "$target" -start exit:nonzero -stop syscall:read
	[ "$status" -eq 2 ]
	complains no-start-at-end exit:nonzero hint end-as-stop exit:nonzero
	mtbpf_run watch -pid "$target" -symbol exit:zero
	[ "$status" -eq 2 ]
	complains only-nonzero exit:zero hint use-exit-group
	mtbpf_run watch -pid "$target" -start syscall:exit -stop syscall:read
	[ "$status" -eq 2 ]
	complains no-start-at-end syscall:exit hint end-as-stop syscall:exit
	mtbpf_run watch -pid "$target" -start syscall:read -stop oom:
	[ "$status" -eq 2 ]
	complains oom-is-no-place hint killed-is-signal
	mtbpf_run watch -pid "$target" -start signal:USR1 -stop signal:SIGUSR1
	[ "$status" -eq 2 ]
	complains same-place
	mtbpf_run record -source soft -pid "$target" -start signal:USR1 -stop syscall:read -symbol main -o x.mtbpf
	[ "$status" -eq 2 ]
	complains source-and-region-in-kernel soft signal:USR1 hint use-sample-or-functions
	mtbpf_run watch -pid "$target" -start kernel:vfs_fsync_range -stop kernel:vfs_fsync_range
	[ "$status" -eq 2 ]
	complains same-place
	mtbpf_run record -source sample -pid "$target" -symbol oom: -delay-thresh 1s -o x.mtbpf
	[ "$status" -eq 2 ]
	complains oom-and-delay
}

@test "signals and tracepoints begin and end regions of the thread that comes to them" {
	me='os.kill(os.getpid(), signal'
	count "$me.SIGUSR1)" -start signal:USR1 -stop syscall:rt_sigreturn
	[ "$hits" -eq 300 ]
	count "$me.SIGUSR1); os.fsync(file); $me.SIGUSR2)" -start signal:USR1 -stop signal:USR2
	[ "$hits" -eq 300 ]
	count "$me.SIGUSR1); os.fsync(file)" -start syscall:fsync -stop signal:USR2
	[ "$hits" -eq 0 ]
	# A packet is queued by the thread that sends it.
	count 'c.sendto(b"q", d.getsockname()); d.recv(9)' -start tracepoint:net:net_dev_queue -stop syscall:recvfrom
	[ "$hits" -eq 300 ]
	count 'time.sleep(0.001); os.fsync(file)' -start tracepoint:sched:sched_switch -stop syscall:fsync
	[ "$hits" -eq 300 ]
	count 'time.sleep(0.001)' -symbol tracepoint:sched:sched_switch -if 'comm == "python3"'
	[ "$hits" -ge 300 ]
	count 'time.sleep(0.001)' -symbol tracepoint:sched:sched_switch -if 'comm == "python"'
	[ "$hits" -eq 0 ]
	# A page fault is the thread's own, without a system call.
	count 'memory.madvise(mmap.MADV_DONTNEED); memory[5] = 1' -start syscall:madvise \
		-stop tracepoint:exceptions:page_fault_user
	[ "$hits" -eq 300 ]
}

@test "what an interrupt comes to neither begins nor ends a region, on whichever stack it runs" {
	[ -e /sys/kernel/tracing/events/irq_vectors/local_timer_entry ] || skip "no tracepoint of the timer's interrupt"
	count 'c.sendto(b"q", d.getsockname()); d.recv(9); os.fsync(file)' -start syscall:sendto \
		-stop tracepoint:net:netif_receive_skb
	[ "$hits" -eq 0 ]
	output=$(<log)
	says drop-unmeasured
	# It interrupts user code, and runs on the thread's own stack.
	count 'os.getppid(); spin(0.005)' -start syscall:getppid -stop tracepoint:irq_vectors:local_timer_entry
	[ "$hits" -eq 0 ]
	output=$(<log)
	says drop-unmeasured
	count 'os.getppid(); spin(0.005)' -start tracepoint:irq_vectors:local_timer_entry -stop syscall:getppid
	[ "$hits" -eq 0 ]
}

# What watch says of a region of a process that ends: $1 ends it.
watch_end() {
	local end=$1
	shift
	rm -f go
	cat >ended.py <<-END
		import os, signal, sys, time
		print("pid", os.getpid(), flush=True)
		while not os.path.exists("go"): time.sleep(0.01)
		os.getppid()
		began = time.time()
		while time.time() - began < 0.3: pass
		$end
	END
	start_file python3 ended.py
	begin_log log
	"$O/mtbpf" watch -pid "$target" "$@" >counts 2>log 3>&- &
	watching=$!
	started+=("$watching")
	eventually 10 grep -q '^watching' log
	touch go
	eventually 20 gone "$watching"
	cat log counts
}

@test "a region ends with its process: by an exit with a status, by a signal" {
	watch_end 'sys.exit(3)' -start syscall:getppid -stop exit:nonzero
	grep -Eq '^1 hits .* max ([3-9][0-9][0-9] ms|[1-9].* s)$' counts
	watch_end 'sys.exit(0)' -start syscall:getppid -stop exit:nonzero
	grep -q '^0 hits' counts
	watch_end 'os.abort()' -start syscall:getppid -stop signal:ABRT
	grep -q '^1 hits' counts
	# It is killed while it runs, without a system call.
	watch_end '
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, 0.3)
while True: pass' -start syscall:getppid -stop tracepoint:sched:sched_process_exit
	grep -q '^1 hits' counts
	mtbpf_run run -source sample -start main -stop exit:nonzero -duration-thresh 50ms -o x.fxt -- \
		bash -c 'read -t 0.2 <> <(:); exit 3'
	[[ $output =~ hit\ 1\ of\ exit:nonzero,\ thread\ [0-9]+:\ [0-9.]+\ m?s\ after\ -start ]]
}

@test "thresholds between signals and tracepoints: the slow handler, one that hangs, time off the CPU" {
	cat >handler.c <<-'END'
		#include <signal.h>
		#include <stdio.h>
		#include <unistd.h>
		static void on_signal(int number)
		{
			static int n;

			(void)number;
			usleep(++n % 30 ? 1000 : 900000);
		}
		int main(void)
		{
			signal(SIGUSR1, on_signal);
			printf("pid %d\n", getpid()), fflush(stdout);
			for (;;)
				raise(SIGUSR1);
		}
	END
	"${CC:-gcc}" -g -O1 -o handler handler.c
	start_file ./handler
	place=(-source sample -pid "$target" -start signal:USR1 -timeout 60s)
	mtbpf_run attach "${place[@]}" -stop syscall:rt_sigreturn -duration-thresh 700ms -o x.fxt
	[ "$status" -eq 0 ]
	says region-recorded signal:USR1 syscall:rt_sigreturn
	[[ $output =~ hit\ [0-9]+\ of\ syscall:rt_sigreturn,\ thread\ $target:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ -start ]]
	[[ $output =~ reason:\ blocked\ in\ .*on_signal.*nanosleep ]]
	mtbpf_run attach "${place[@]}" -stop syscall:rt_sigreturn -stall-thresh 400ms -o y.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ thread\ $target\ .*for\ [4-8][0-9][0-9]\ ms ]]
	mtbpf_run record "${place[@]}" -stop tracepoint:signal:signal_generate -off-cpu-thresh 700ms -o z.mtbpf
	[ "$status" -eq 0 ]
	mtbpf_run report z.mtbpf
	[[ $output =~ hit\ [0-9]+\ of\ tracepoint:signal:signal_generate,\ thread\ $target:\ .*\ after\ -start ]]
}

# bats test_tags=slow
@test "a disk's request: from its issue by the thread to the next system call; its completion is an interrupt" {
	dd if=/dev/zero of=data bs=4k count=100000000 oflag=direct 2>/dev/null 3>&- &
	target=$!
	started+=("$target")
	mtbpf_run watch -pid "$target" -symbol tracepoint:block:block_rq_issue -timeout 1s
	[[ $output =~ [1-9][0-9]*\ hits ]] || skip "this file system issues requests elsewhere"
	mtbpf_run watch -pid "$target" -start tracepoint:block:block_rq_issue -stop syscall:read -timeout 1s
	[[ $output =~ [1-9][0-9]*\ hits ]]
	mtbpf_run attach -source sample -pid "$target" -start tracepoint:block:block_rq_issue -stop syscall:read \
		-duration-thresh p90 -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ [0-9]+\ of\ syscall:read,\ thread\ $target:\ .*\ after\ -start ]]
	mtbpf_run watch -pid "$target" -start tracepoint:block:block_rq_issue -stop tracepoint:block:block_rq_complete \
		-timeout 2s
	[[ $output == *"0 hits"* ]]
}

# bats test_tags=slow
@test "the stepper is frozen by a system call as well, and by the end of a region" {
	write_server
	# It steps all the time, and the time from the question to the answer is measured.
	mtbpf_run attach -source soft -pid "$target" -requests -duration-thresh 700ms -timeout 60s -o y.fxt
	[ "$status" -eq 0 ]
	says only-measured soft 'syscall:read(socket)'
	[[ $output =~ hit\ [0-9]+\ of\ syscall:sendto,\ thread\ [0-9]+:\ [0-9.]+\ m?s\ after\ -start ]]
	[[ $output == *": 0 branches after the hit"* ]]
	"$O/mtbpf" decode y.mtbpf -format text >y.text
	! grep 'gap: outside' y.text || false
	[ "$(awk '/^TracerPid:/ { print $2 }' "/proc/$target/status")" -eq 0 ]
	mtbpf_run record -source soft -pid "$target" -symbol 'syscall:fsync' -timeout 60s -o x.mtbpf
	[ "$status" -eq 0 ]
	says triggered
}

# A kernel without kprobes and fentry says so, in one line, and lists its functions all the same.
@test "kernel: each call of the kernel's function in a thread of the target is a hit, and its duration is known" {
	mtbpf_run list 'kernel:vfs_fsync*'
	[ "$status" -eq 0 ]
	[[ $output =~ [0-9a-f]{16}\ .*\ kernel:vfs_fsync_range ]]
	if [ ! -e /sys/bus/event_source/devices/kprobe ]; then
		write_server
		mtbpf_run watch -pid "$target" -symbol kernel:vfs_fsync_range -timeout 500ms
		[ "$status" -ne 0 ] || skip "fentry works without kprobes"
		complains no-kprobes vfs_fsync_range hint name-a-tracepoint
		skip "no kprobes here: tests/vm runs the rest"
	fi
	count 'os.fsync(file); os.write(into, b"x")' -symbol kernel:vfs_fsync_range -durations
	[ "$hits" -eq 300 ]
	[ "$(awk -F ' : ' '/ - / { n += $2 } END { print n + 0 }' counts)" -eq 300 ]
	# One function calls the other.
	count 'time.sleep(0.02)' -symbol kernel:hrtimer_nanosleep,kernel:do_nanosleep -durations
	[ "$hits" -ge 600 ]
	# Regions, also between a system call and a function.
	count 'os.write(into, b"x"); os.fsync(file); os.read(out, 1)' -start syscall:write -stop kernel:vfs_fsync_range
	[ "$hits" -eq 300 ]
	count 'os.write(into, b"x"); os.fsync(file); os.read(out, 1)' -start kernel:vfs_fsync_range -stop syscall:read
	[ "$hits" -eq 300 ]
	write_server
	mtbpf_run record -source sample -pid "$target" -symbol kernel:hrtimer_nanosleep -duration-thresh 700ms \
		-timeout 60s -o x.mtbpf
	[ "$status" -eq 0 ]
	mtbpf_run report x.mtbpf
	[[ $output =~ call\ [0-9]+\ of\ kernel:hrtimer_nanosleep,\ thread\ [0-9]+:\ took\ (9[0-9]+\ ms|1\.[0-9]+\ s) ]]
	[[ $output == *"the slow call of kernel:hrtimer_nanosleep took"* ]]
}

# A memory cgroup of 40 MB; it is removed in the end.
make_memory_cgroup() {
	local root limit
	if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
		root=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
	elif grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
		root=/sys/fs/cgroup limit=memory.max
		echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	else
		skip "no memory cgroups"
	fi
	cgroup=$root/mtbpf-oom-$$
	mkdir "$cgroup" || skip "memory cgroups cannot be made here"
	echo 40000000 >"$cgroup/$limit"
}

@test "oom: the OOM killer chooses a process of the target: the last moments before it is killed" {
	cat >hog.py <<-'END'
		import os, time
		print("pid", os.getpid(), flush=True)
		while not os.path.exists("go"): time.sleep(0.01)
		def eat():
		    pieces = []
		    while True: pieces.append(bytearray(1 << 20))
		eat()
	END
	make_memory_cgroup
	start_file python3 hog.py
	hog=$target
	echo "$hog" >"$cgroup/cgroup.procs"
	# Of another process it is no hit.
	sleep 100 3>&- &
	target=$!
	started+=("$target")
	"$O/mtbpf" watch -pid "$target" -symbol oom: >other 2>other.log 3>&- &
	other=$!
	started+=("$other")
	"$O/mtbpf" record -source sample -pid "$hog" -symbol oom: -timeout 60s -o x.mtbpf >log 2>&1 3>&- &
	recording=$!
	started+=("$recording")
	eventually 20 grep -q '^waiting for' log
	eventually 20 grep -q '^watching' other.log
	touch go
	eventually 60 gone "$recording"
	wait "$recording"
	cat log
	grep -q '^triggered' log
	kill "$other"
	wait "$other"
	grep -q '^0 hits' other
	rmdir "$cgroup"
	mtbpf_run report x.mtbpf
	[[ $output == *"hit 1 of oom:, thread $hog, in "* ]]
}
