# SPDX-License-Identifier: MIT
# The report of -source sample never blames what it did not see: a call that is longer than the stacks look back,
# a quota that is used up, a region.

load causes

# json FILE EXPRESSION: of its report, in Python: r is the report, slow its account
json() {
	"$O/mtbpf" report "$1" -json >report.json || { cat report.json; return 1; }
	python3 -c "import json
r = json.load(open('report.json'))
slow = r['account']['slow']
ok = ($2)
print(r['account'], r.get('reasons'))
raise SystemExit(not ok)"
}

@test "what stacks do not cover is [not recorded], not the trigger's own time" {
	start phases 1500 100
	mtbpf_run attach -source sample -pid "$target" -symbol handle_request -duration-thresh 500ms -timeout 60s \
		-snapshot-size 256K -unwind dwarf -o slow.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"[not recorded] in handle_request"* ]]
	# It takes 1.6 s of the clock's time, and longer where the machine is busy at its end.
	[[ $output =~ "not recorded: stacks cover the last "[0-9.]+" "[mun]?"s of "([0-9.]+)" s; -snapshot-size "[^\ ]+" would cover all; " ]]
	awk -v took="${BASH_REMATCH[1]}" 'BEGIN { exit took < 1.6 }'
	[[ $output != *"reason: on the CPU, in handle_request;"* ]]
	# All of the call is accounted for; a tenth of a second of phase_b is seen at its end.
	for file in slow.mtbpf slow.fxt; do
		json $file "sum(slow.values()) == r['slow_ns'] and slow['not_recorded_ns'] > 500e6"
		json $file "sum(f['slow_ns'] for f in r['functions'] if f['name'] == 'handle_request') < 20e6"
	done
	"$O/mtbpf" report slow.fxt -folded | grep -q ';handle_request;\[not recorded\] '
}

# Whoever runs meanwhile is a bystander. Of either version of cgroups.
@test "a cgroup's quota that is used up is [throttled], not somebody's doing" {
	local group quota before after other
	for group in /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup; do
		group=$group/mtbpf-test-$$
		mkdir "$group" 2>/dev/null || continue
		[ -e "$group/cpu.cfs_quota_us" ] && echo 10000 >"$group/cpu.cfs_quota_us" && echo 200000 >"$group/cpu.shares" && break
		[ -e "$group/cpu.max" ] && echo "10000 100000" >"$group/cpu.max" && echo 10000 >"$group/cpu.weight" && break
		rmdir "$group"
		group=
	done
	[ -n "$group" ] || skip "no cpu controller to be had"
	start phases 150 150
	echo "$target" >"$group/cgroup.procs"
	"$O/programs/phases" 150 150 >"$BATS_TEST_TMPDIR/other" 2>&1 3>&- &
	other=$!
	echo "$other" >"$group/cgroup.procs"
	# The group comes before what other tests run, by its weight: what is not throttled is theirs.
	mtbpf_run attach -source sample -pid "$target" -symbol handle_request -duration-thresh 200ms -timeout 60s -o quota.fxt
	kill "$target" "$other"
	eventually 5 rmdir "$group"
	[ "$status" -eq 0 ]
	[[ $output == *"[throttled] in "*": cgroup "*"/mtbpf-test-$$, quota 10.0 ms of 100 ms"* ]]
	[[ $output == *"throttled: cgroup "*"; "* ]]
	# It wants 300 ms, and may have 10 ms of each 100 ms; others that run on the CPU count for themselves.
	for file in quota.mtbpf quota.fxt; do
		json $file "sum(slow.values()) == r['slow_ns'] and slow['throttled_ns'] > 0.1 * r['slow_ns']"
	done
	# What others are throttled by is in no log, so that they do not fill it.
	python3 -c "import json, sys; taken = json.load(open('quota.mtbpf/meta.json'))['taken']
sys.exit(not taken or any(t['pid'] != $target for t in taken))"
}

@test "memory that a cgroup's limit makes it free is a part of its own, and names the cgroup" {
	local group limit attach
	for group in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		group=$group/mtbpf-test-$$
		mkdir "$group" 2>/dev/null || continue
		for limit in memory.limit_in_bytes memory.max; do
			[ -e "$group/$limit" ] && echo $((64 << 20)) >"$group/$limit" && break 2
		done
		rmdir "$group"
		group=
	done
	[ -n "$group" ] || skip "no memory controller to be had"
	mkfifo asked
	"$O/programs/causes" ask few "$PWD/file" <asked >answers 3>&- &
	target=$!
	started+=("$target")
	exec 7>asked
	echo "$target" >"$group/cgroup.procs"
	# Its first answer comes when it has set itself up.
	echo dirty >&7
	eventually 20 test -s answers
	"$O/mtbpf" attach -source sample -pid "$target" -symbol one_iter -duration-thresh 2ms -timeout 60s \
		-o few.fxt >few.log 2>&1 3>&- &
	attach=$!
	eventually 30 grep -q '^waiting for a call' few.log
	printf '%s\n' quick quick quick few >&7
	wait "$attach" && status=0 || status=$?
	exec 7>&-
	kill "$target" || true
	eventually 5 rmdir "$group"
	output=$(cat few.log)
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"[memory reclaim] in "*": the limit of cgroup "*"/mtbpf-test-$$"* ]]
	for file in few.mtbpf few.fxt; do
		json $file "sum(slow.values()) == r['slow_ns'] and slow.get('reclaim_on_cpu_ns', 0) + slow.get('reclaim_blocked_ns', 0) > 1e6"
	done
}

@test "moves between CPUs are a fact beside the account, and no reason" {
	[ "$(nproc)" -gt 1 ] || skip "there is one CPU"
	local cpus mask
	cpus=$(taskset -cp $$ | sed 's/.*: //; s/[-,]/ /g')
	start phases 1500 100
	while taskset -cp "${cpus%% *}" "$target" && taskset -cp "${cpus##* }" "$target"; do sleep 0.01; done >moving 2>&1 3>&- &
	started+=($!)
	mtbpf_run attach -source sample -pid "$target" -symbol handle_request -duration-thresh 700ms -timeout 60s -o moved.fxt
	kill "$target"
	[ "$status" -eq 0 ]
	[[ $output =~ the\ thread\ moved\ between\ CPUs\ [0-9]+\ times ]]
	! grep -E '^(reason|   and):.*between CPUs' <<<"$output"
	for file in moved.mtbpf moved.fxt; do
		json $file "sum(slow.values()) == r['slow_ns'] and r['moves_between_cpus']['slow'] >= 4"
	done
}

@test "a region's report is the same of the recording and of the trace, and does not call it a function's" {
	start service -scale small
	mtbpf_run attach -source sample -sample-rate 10000 -pid "$target" -start table_rehash -stop format_reply \
		-timeout 60s -duration-thresh 1us -o region.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"region from -start to format_reply took"* ]]
	[ "$("$O/mtbpf" report region.fxt | grep -c 'region from -start to format_reply took')" = 1 ]
	# It is short, so that mostly no sample lies in it, or one: the rest was not recorded, which no larger ring mends.
	[[ $output != *"would cover all"* ]]
	for file in region.mtbpf region.fxt; do
		json $file "sum(slow.values()) == r['slow_ns']"
	done
}

# The bystander is always in a system call, in which the timer's interrupt, and the softirq behind it, find it.
@test "a softirq that comes while somebody else runs is not that one's doing" {
	local cpu
	cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	start causes alarm
	taskset -cp "$cpu" "$target"
	taskset -c "$cpu" dd if=/dev/zero of=/dev/null bs=64M 2>/dev/null 3>&- &
	started+=("$!")
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -duration-thresh 30ms -timeout 60s -o alarm.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"[blocked] in "*": recvfrom of "* ]]
	[[ $output != *"woken by"* ]]
	for file in alarm.mtbpf alarm.fxt; do
		json $file "not any('woken_by' in f for f in r['functions'])"
	done
}

# go_reason FILE CAUSE REGEX: of $output and the file. Its own work may be a small part of what it took on a loaded
# machine, and is no reason then; but it is in renderPage.
go_reason() {
	sed -n 's/^reason: //p; s/^   and: //p' <<<"$output" | grep -E "$3"
	[[ $output != *epoll* ]]
	json "$1" "sum(slow.values()) == r['slow_ns'] and
		(slow['on_cpu_ns'] + slow['preempted_ns'] > 200e6 and
		 sum(f['inclusive_ns'] for f in r['functions'] if f['name'] == 'main.renderPage') > 200e6
		 if '$2' == 'busy' else slow['blocked_ns'] > 200e6)"
}

# A goroutine's call, whatever its thread does meanwhile.
# bats test_tags=slow
@test "a Go handler's wait is its goroutine's, with the runtime's reason; its work is its own" {
	[ -x "$O/programs/go_waits" ] || skip "the Go sample is not built: there is no Go"
	local cause want
	for cause in 'mutex:main.handle > sync\.[^:]*: (semacquire|sync.Mutex.Lock)' 'chan:main.handle: chan receive' \
		'sleep:main.handle > time.Sleep: sleep' busy:; do
		want=${cause#*:}
		cause=${cause%%:*}
		start go_waits "$cause"
		come_first
		mtbpf_run attach -source sample -pid "$target" -symbol main.handle -duration-thresh 150ms -timeout 60s -o $cause.fxt
		kill "$target"
		[ "$status" -eq 0 ]
		go_reason $cause.fxt $cause "$want"
		case $cause in
		mutex) made_ready 'main.holder$' ;;
		chan) made_ready 'main.sender$' ;;
		sleep) [[ $output == *"made ready by Go's runtime"* ]] ;;
		*) [[ $output != *"made ready by"* ]] ;;
		esac
	done
}

# made_ready REGEX: by a goroutine that the program has named, in that function, in the report and in the trace.
made_ready() {
	local number
	[[ $output =~ made\ ready\ by\ goroutine\ ([0-9]+)\ in\ ([^;]*)\; ]]
	number=${BASH_REMATCH[1]}
	grep -E "$1" <<<"${BASH_REMATCH[2]}"
	grep -qx "waker $number" "$BATS_TEST_TMPDIR"/go_waits.*
	json $cause.fxt "any(w['comm'] == 'goroutine $number' for f in r['functions'] for w in f.get('woken_by', []))"
	grep -aq "goroutine $number (process $target, thread " $cause.fxt
}

# The probes that tell why goroutines wait are hit by all goroutines.
# bats test_tags=slow
@test "a Go program whose goroutines wait all the time: those probes go, the trigger stays" {
	[ -x "$O/programs/go_waits" ] || skip "the Go sample is not built: there is no Go"
	# Not before all others on the machine: it never waits, and mtbpf would hardly get a CPU.
	start go_waits chatter
	local trigger=(-source sample -pid "$target" -symbol main.handle -duration-thresh 150ms -timeout 60s)
	mtbpf_run attach "${trigger[@]}" -after 6s -o gone.fxt
	[ "$status" -eq 0 ]
	says go-waits-removed
	[[ $output != *"made ready by"* && $output != *"the probe of main.handle"* ]]
	json gone.fxt "sum(slow.values()) == r['slow_ns'] and slow['blocked_ns'] == 0 and slow['not_recorded_ns'] > 200e6"
	mtbpf_run attach "${trigger[@]}" -max-overhead none -o kept.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"made ready by Go's runtime"* ]]
	json kept.fxt "slow['blocked_ns'] > 200e6"
}

# The garbage collector waits for a loop that it cannot interrupt, and all others wait for it.
# bats test_tags=slow
@test "a Go handler that is stopped with the world: for as long as Go itself says" {
	[ -x "$O/programs/go_waits" ] || skip "the Go sample is not built: there is no Go"
	export GODEBUG=asyncpreemptoff=1 GOMAXPROCS=4
	start go_waits stop
	# The wait for the loop is two switches each 0.1 ms.
	mtbpf_run attach -source sample -unwind fp -pid "$target" -symbol main.handle -duration-thresh 50ms -timeout 60s -o stop.fxt
	eventually 10 grep -hq '^stopped ' "$BATS_TEST_TMPDIR"/go_waits.*
	kill "$target"
	[ "$status" -eq 0 ]
	grep -E '(reason|   and): blocked in main.handle.*: stop-the-world; ' <<<"$output"
	json stop.fxt "sum(slow.values()) == r['slow_ns'] and any(
		abs(sum(w['ns'] for f in r['functions'] for w in f.get('waits', []) if w['for'] == 'stop-the-world') - ns) < max(2e6, ns / 10)
		for ns in ($(sed -n 's/^stopped \([0-9]*\)$/\1,/p' "$BATS_TEST_TMPDIR"/go_waits.* | tr -d '\n')))"
}

# strip leaves the table that the runtime walks stacks with.
# bats test_tags=slow
@test "a stripped Go program: triggers, lines, stacks and the runtime's reason" {
	[ -x "$O/programs/go_waits-stripped" ] || skip "the Go sample is not built: there is no Go"
	local program cause want line
	line=$(grep -n '^func handle(' "${BATS_TEST_DIRNAME}/../programs/go_waits.go" | cut -d: -f1)
	for program in go_waits-stripped go_waits-pie-stripped; do
		[ -z "$(nm "$O/programs/$program" 2>/dev/null)" ]
		for cause in mutex:semacquire\|sync.Mutex.Lock busy:; do
			want=${cause#*:}
			cause=${cause%%:*}
			start $program "$cause"
			"$O/mtbpf" list -pid "$target" main.handle | grep -q ' main.handle$'
			"$O/mtbpf" list -pid "$target" "line:go_waits.go:$((line + 1))" | grep -q ' main.handle$'
			mtbpf_run attach -source sample -pid "$target" -symbol main.handle -duration-thresh 150ms -timeout 60s \
				-o $cause.fxt
			kill "$target"
			[ "$status" -eq 0 ]
			go_reason $cause.fxt $cause "$want"
			[[ $output != *"[$program+"* && $output != *"is stripped"* ]]
			grep -aq /go_waits.go $cause.fxt
		done
	done
}

# Of all native frames and JavaScript's the innermost that did it.
# bats test_tags=slow
@test "a reason in Node ends in the script's function, by its perf map; without one it says how to get one" {
	command -v node >/dev/null || skip "no Node"
	local map
	cat >slow.js <<-'END'
	function busyWork(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
	function requestHandler(n) { return busyWork(n); }
	let calls = 0;
	setInterval(() => requestHandler(++calls % 20 ? 1e5 : 1e8), 10);
	console.log(`pid ${process.pid}`);
	END
	for map in --perf-basic-prof ''; do
		node $map slow.js >node.log 2>&1 3>&- &
		target=$!
		started+=("$target")
		eventually 10 grep -q '^pid ' node.log
		# What is interpreted at first is compiled by then.
		sleep 1
		mtbpf_run attach -source sample -pid "$target" -symbol uv__run_timers -duration-thresh 60ms -timeout 60s \
			-o node.fxt
		kill "$target"
		rm -f "/tmp/perf-$target.map"
		[ "$status" -eq 0 ]
		json node.fxt "sum(slow.values()) == r['slow_ns']"
		if [ -n "$map" ]; then
			grep -E '(JSEntry|Invoke|uv_).* > JS:.?requestHandler [^ ]*slow.js:2:[0-9]+ > JS:.?busyWork [^ ]*slow.js:1:[0-9]+' <<<"$output"
			[[ $output != *'[jit+'* ]]
		else
			[[ $output != *busyWork* ]]
			# On a loaded machine what it did itself may be no reason.
			! grep -q '^\(reason\|   and\): on the CPU' <<<"$output" ||
				[[ $output == *'hint: [jit+...] is code that a runtime has compiled'* ]]
		fi
	done
}

# Its trampolines have neither unwind tables nor frame pointers: the whole stack is found all the same.
# bats test_tags=slow
@test "a reason in Python ends in the script's function, and all its callers are there" {
	python_perf || skip "no Python 3.12 or later with -X perf"
	cat >slow.py <<-'END'
	import os, time
	def busy_work(n):
	    s = 0
	    for i in range(n):
	        s += i * i % 7
	    return s
	def request_handler(n):
	    return busy_work(n)
	print("pid", os.getpid(), flush=True)
	calls = 0
	while True:
	    calls += 1
	    time.sleep(0.01)
	    request_handler(2000000 if calls % 20 == 0 else 2000)
	END
	"$python" -X perf slow.py >py.log 2>&1 3>&- &
	started+=("$!")
	eventually 10 grep -q '^pid ' py.log
	target=$(sed -n 's/^pid //p' py.log)
	mtbpf_run attach -source sample -pid "$target" -symbol clock_nanosleep -delay-thresh 80ms -timeout 60s -o py.fxt
	kill "$target"
	rm -f "/tmp/perf-$target.map"
	[ "$status" -eq 0 ]
	json py.fxt "sum(slow.values()) == r['slow_ns']"
	"$O/mtbpf" report py.fxt -folded |
		grep -E ';py::<module>:[^;]*slow.py;.*;py::request_handler:[^;]*slow.py;.*;py::busy_work:[^;]*slow.py;'
	grep -E '> py::busy_work:[^ ]*slow.py' <<<"$output"
}

# start_beats MILLISECONDS: calls one_iter(), which computes for so long, and sleeps 20 ms after each call.
start_beats() {
	cat >beats.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <time.h>
		#include <unistd.h>

		static long now_us(void)
		{
			struct timespec t;
			clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
			return t.tv_sec * 1000000 + t.tv_nsec / 1000;
		}

		__attribute__((noinline)) void one_iter(long us)
		{
			for (long end = now_us() + us; now_us() < end;)
				;
		}

		int main(int argc, char **argv)
		{
			printf("pid %d\n", getpid());
			fflush(stdout);
			for (;;) {
				one_iter(atol(argv[1]) * 1000);
				usleep(20000);
			}
		}
	END
	"${CC:-gcc}" -O1 -fno-omit-frame-pointer -o beats beats.c
	start_file ./beats "$1"
	come_first
}

# attach_sampling ARGS: attach to $target in the background, until it waits.
attach_sampling() {
	attach_log=$BATS_TEST_TMPDIR/attach.log
	"$O/mtbpf" attach -source sample -pid "$target" -timeout 60s -o slow.fxt "$@" >"$attach_log" 2>&1 3>&- &
	attached=$!
	started+=("$attached")
	eventually 10 grep -q '^waiting' "$attach_log"
}

# hold HOLD RELEASE: attaches, and holds $target for 0.6 s by these commands. Where the machine is busy a delay may come
# to the threshold before that: once more then.
hold() {
	local try
	for try in 1 2 3 4 5 6 7 8; do
		attach_sampling -symbol one_iter -delay-thresh 400ms -after 200ms
		sleep 0.5
		eval "$1"
		if ! gone "$attached" && ! grep -q '^triggered' "$attach_log"; then
			sleep 0.6
			eval "$2"
			attach_ends 60
			return
		fi
		eval "$2"
		attach_ends 60
	done
	return 1
}

@test "a thread that was stopped by a signal did not wait in the call that the stop interrupted" {
	start_beats 1
	hold 'kill -STOP "$target"' 'kill -CONT "$target"'
	[ "$status" -eq 0 ]
	says stopped-by-signal
	[ "$(grep -c '^reason: ' <<<"$output")" -eq 1 ]
	grep -q '^reason: .*: stopped by a signal, woken by ' <<<"$output"
	"$O/mtbpf" report slow.fxt | grep -q '^reason: .*: stopped by a signal, woken by '
}

@test "a process that waits for a child is woken by the child's end" {
	bash -c 'while :; do sleep 0.1; done' 3>&- &
	target=$!
	started+=("$target")
	cd "$BATS_TEST_TMPDIR"
	attach_sampling -symbol syscall:wait4 -duration-thresh 80ms -after 300ms
	attach_ends 60
	[ "$status" -eq 0 ]
	grep '^reason: blocked in .*wait4.*, woken by sleep (' <<<"$output"
}

@test "a wait for another thread: what that thread did meanwhile, in the report of the recording, of the trace, and of many captures" {
	"$O/programs/causes" lock >/dev/null 2>&1 3>&- &
	target=$!
	started+=("$target")
	cd "$BATS_TEST_TMPDIR"
	attach_sampling -symbol one_iter -duration-thresh 35ms -off-cpu-thresh 35ms -after 300ms
	attach_ends 60
	[ "$status" -eq 0 ]
	line=$(grep -A1 '^reason: blocked in .*woken by helper (' <<<"$output" | tail -1)
	[[ $line == " while: helper ("*") was blocked in clock_nanosleep; "* ]]
	"$O/mtbpf" report slow.fxt | grep -F "$line"
	"$O/mtbpf" report slow.mtbpf -json | grep -F "\"meanwhile\":\"${line# while: }\""
	mkdir many && cp -r slow.mtbpf many
	"$O/mtbpf" report many | grep -F "${line# }"
}

@test "a thread that was frozen with its cgroup did not wait in the call that the freezer interrupted" {
	local group file on=FROZEN off=THAWED
	for group in /sys/fs/cgroup/unified /sys/fs/cgroup /sys/fs/cgroup/freezer; do
		group=$group/mtbpf-test-$$
		mkdir "$group" 2>/dev/null || continue
		file=$group/freezer.state
		[ -e "$group/cgroup.freeze" ] && file=$group/cgroup.freeze on=1 off=0
		[ -e "$file" ] && break
		rmdir "$group"
		group=
	done
	[ -n "$group" ] || skip "no cgroup can be frozen here"
	start_beats 1
	echo "$target" >"$group/cgroup.procs"
	hold "echo $on >$file" "echo $off >$file"
	end_started
	eventually 5 rmdir "$group"
	[ "$status" -eq 0 ]
	says frozen-with-cgroup
	grep -q '^reason: .*: frozen with its cgroup' <<<"$output"
}

# A timer tick comes at least every 10 ms (CONFIG_HZ=100). The thread leaves its CPU as soon as the call has returned.
@test "interrupts shortly before the hit are in the account, although the thread has left its CPU since" {
	start_beats 12
	mtbpf_run attach -source sample -sample-rate 50 -pid "$target" -symbol one_iter -duration-thresh 12ms \
		-after 300ms -timeout 60s -o slow.fxt
	[ "$status" -eq 0 ]
	json slow.mtbpf "slow['interrupts_ns'] > 0"
}

# On one CPU: one_iter() computes for 100 ms, its process's other thread preempts it and wakes a process that has no
# part in it, which takes the CPU for 60 ms as soon as that thread sleeps again.
@test "who takes the CPU from a thread is named, not the thread of its process that was there shortly before" {
	cat >taken.c <<-'END'
		#define _GNU_SOURCE
		#include <pthread.h>
		#include <sched.h>
		#include <stdio.h>
		#include <sys/prctl.h>
		#include <time.h>
		#include <unistd.h>

		static int wake[2];

		static void compute(long ms)
		{
			struct timespec t;
			long end = 0, now;
			do {
				clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
				now = t.tv_sec * 1000000 + t.tv_nsec / 1000;
				end = end ? end : now + ms * 1000;
			} while (now < end);
		}

		__attribute__((noinline)) void one_iter(void)
		{
			compute(100);
		}

		static void *sibling(void *arg)
		{
			struct sched_param p = {.sched_priority = 12};
			pthread_setname_np(pthread_self(), "sibling");
			pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
			for (;;) {
				usleep(300000);
				write(wake[1], "x", 1);
			}
		}

		int main(void)
		{
			struct sched_param p = {.sched_priority = 11};
			cpu_set_t one;
			pthread_t thread;
			char byte;
			CPU_ZERO(&one);
			CPU_SET(sched_getcpu(), &one);
			sched_setaffinity(0, sizeof(one), &one);
			pipe(wake);
			if (!fork()) {
				prctl(PR_SET_NAME, "bystander");
				prctl(PR_SET_PDEATHSIG, 9);
				sched_setscheduler(0, SCHED_FIFO, &p);
				while (read(wake[0], &byte, 1) == 1)
					compute(60);
			}
			p.sched_priority = 10;
			sched_setscheduler(0, SCHED_FIFO, &p);
			pthread_create(&thread, NULL, sibling, NULL);
			printf("pid %d\n", getpid());
			fflush(stdout);
			for (;;) {
				one_iter();
				usleep(20000);
			}
		}
	END
	"${CC:-gcc}" -O1 -fno-omit-frame-pointer -pthread -o taken taken.c
	start_file ./taken
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -duration-thresh 140ms -after 1s -timeout 60s -o slow.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"[preempted] in "*", by bystander ("* ]]
	grep -q '^reason: ready to run, but its CPU was taken, by bystander (' <<<"$output"
}

@test "watch says what to try if nothing calls the function" {
	start_beats 1
	mtbpf_run watch -pid "$target" -symbol main -timeout 300ms
	[ "$status" -eq 0 ]
	says nobody-called-it
	mtbpf_run watch -pid "$target" -symbol one_iter -max-hits 2 -timeout 60s
	[[ $output != *"hint: "* ]]
}
