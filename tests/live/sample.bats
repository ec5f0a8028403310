# SPDX-License-Identifier: MIT
# -source sample on services at native speed: the planted cause stands in the report, what is recorded is
# read by perf too, and nothing is left in the target.

load causes

# The rows of the report, from its first to what is worth less than a millisecond.
rows() {
	sed -n '/function$/,$p' <<<"$output" | grep -E '^ +[0-9.]+ (s|ms) '
}

# reports ROW: the report has a row like that, and it is worth a few milliseconds. Where the machine is busy
# another iteration may have been slow for a reason of its own: once more then.
reports() {
	local try
	for try in 1 2 3 4 5; do
		sample "${threshold[@]}"
		[ "$status" -eq 0 ]
		[[ $output == *"iteration of one_iter took "[0-9.]*" ms"* ]]
		rows | grep -E "$1" && return
	done
	return 1
}

@test "where there is no Intel PT attach samples by itself, and says so; the demo's cause is found" {
	! has_pt || skip "there is Intel PT"
	start service -scale native
	come_first
	mtbpf_run attach -pid "$target" -symbol one_iter -delay-thresh 1us -timeout 60s -o slow.fxt
	[ "$status" -eq 0 ]
	[ "$(grep -c 'no Intel PT here: using -source sample' <<<"$output")" -eq 1 ]
	[[ $output == *"sample: stacks by a timer"* ]]
	threshold=(-delay-thresh 10ms)
	reports '(rehash_entry|table_rehash)'
}

@test "decode says the same, and perf reads every sample, switch and hit" {
	start causes read
	sample -duration-thresh 10ms
	[ "$status" -eq 0 ]
	report=$(sed -n '/^the .*iteration of/,/^reason: /p' <<<"$output")
	[[ $output =~ :\ ([0-9]+)\ samples,\ ([0-9]+)\ switches ]]
	samples=${BASH_REMATCH[1]} switches=${BASH_REMATCH[2]}
	mtbpf_run decode slow.mtbpf -o again.fxt
	[ "$status" -eq 0 ]
	[ "$(sed -n '/^the .*iteration of/,/^reason: /p' <<<"$output")" = "$report" ]
	cmp slow.fxt again.fxt
	mtbpf_run report slow.fxt
	[ "$(sed -n '/^the .*iteration of/,/^reason: /p' <<<"$output")" = "$report" ]
	command -v perf >/dev/null || skip "the rest needs perf"
	perf script -i slow.mtbpf --show-switch-events -F comm,tid,time,event,ip,sym >script 2>err 3>&-
	[ "$(grep -cE ' (cpu-clock|context-switches|minor-faults|major-faults):' script)" -eq "$samples" ]
	[ "$(grep -c PERF_RECORD_SWITCH script)" -eq "$switches" ]
	[ "$(grep -c ' mtbpf:hit:' script)" -eq 1 ]
	grep -q ' read_answer$' script || grep -q ' one_iter$' script
}

@test "what perf record -g leaves is decoded as well" {
	command -v perf >/dev/null || skip "perf is missing"
	start causes branch
	perf record -q -e cpu-clock -c 1000000 -g --switch-events -p "$target" -o plain \
		sleep 1 >/dev/null 2>&1 3>&- || skip "perf cannot record here"
	mtbpf_run decode plain -o plain.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ [1-9][0-9]*\ samples ]]
	mtbpf_run decode plain -print calls
	grep -q ' work_us$' <<<"$output"
}

@test "all threads are recorded, also those that begin later" {
	start threads -scale native
	mtbpf_run attach -source sample -pid "$target" -timeout 1s -o all.fxt
	[ "$status" -eq 3 ]
	[[ $output =~ slices,\ ([0-9]+)\ threads ]]
	[ "${BASH_REMATCH[1]}" -ge 3 ]
	# Those that were there at the begin have been told by /proc, the others by their first record.
	mtbpf_run decode all.mtbpf -print calls
	[ "$(awk '{ print $1 }' <<<"$output" | sort -u | wc -l)" -ge 3 ]
}

@test "the trigger's own calls are exact: their number and their durations" {
	start causes lock
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -duration-thresh 10ms \
		-timeout 60s -o slow.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ call\ ([0-9]+)\ of\ one_iter,\ thread\ [0-9]+:\ took\ ([0-9.]+\ ms) ]]
	calls=${BASH_REMATCH[1]} took=${BASH_REMATCH[2]}
	# If the first call of all was the slow one, there is no ordinary one to name.
	[[ $output == *"iteration of one_iter took $took"[,\;]" "* ]]
	[[ $output =~ sample:\ stacks\ by\ a\ timer\ and\ at\ every\ context\ switch\;\ a\ ring\ of\ 4.0\ MiB\ for\ each\ CPU\ \([0-9]+\), ]]
	[[ $output =~ cost:\ .*each\ hit\ of\ a\ probe\ [0-9.]+\ [nu]s ]]
	[[ $output =~ sample:\ the\ fullest\ ring\ is\ [0-9.]+\ %\ full\;\ a\ full\ one\ would\ look\ back\ about\ [0-9.]+ ]]
	mtbpf_run decode slow.mtbpf -print calls
	[ "$(awk -v tid="$target" '$1 == tid && $5 == "one_iter"' <<<"$output" | wc -l)" -ge "$calls" ]
}

@test "two snapshots: nothing is known between them" {
	start causes read
	sample -duration-thresh 10ms -multi-snapshot 2
	[ "$status" -eq 0 ]
	[ "$(grep -c '^call [0-9]* of one_iter' <<<"$output")" -eq 2 ]
	mtbpf_run decode slow.mtbpf -print calls
	grep -q ' \[gap\]$' <<<"$output"
}

@test "run: a program from its execve on" {
	LIMIT=60 mtbpf_run run -source sample -o run.fxt -- "$O/programs/service" -scale native -n 300
	[ "$status" -eq 0 ]
	mtbpf_run decode run.mtbpf -print calls
	grep -q ' one_iter$' <<<"$output"
}

@test "a rate above the kernel's is lowered, and that is said" {
	rate=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
	[ "$rate" -lt 100000 ] || rate=100000
	start causes branch
	mtbpf_run attach -source sample -pid "$target" -sample-rate 1000000 -timeout 1s
	[ "$status" -eq 3 ]
	[[ $output == *"sample: $rate samples per second instead of 1000000"* ]]
}

@test "-syscall-thresh: a long system call is a slice of its own" {
	start causes read
	sample -duration-thresh 20ms -syscall-thresh 10ms
	[ "$status" -eq 0 ]
	"$O/mtbpf" decode slow.mtbpf -print calls |
		awk -v tid="$target" '$1 != tid || $5 != "[syscall]" { next }
			$4 - $3 >= 10000000 { ++long; next } { ++quick } END { exit !(long && !quick) }'
	sample -duration-thresh 20ms
	[ -z "$("$O/mtbpf" decode slow.mtbpf -print calls | grep '\[syscall\]')" ]
}

# start_python: the script on stdin, which says its pid, in the background: $target.
start_python() {
	command -v python3 >/dev/null || skip "python3 is missing"
	cat >script.py
	python3 script.py >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 10 grep -q '^pid ' out
}

# callers NAME FUNCTION: what calls FUNCTION in a trace, each line from the outermost on.
callers() {
	"$O/mtbpf" decode "$1" -print calls | awk -v of="$2" -v tid="$target" '
		$1 != tid { next }
		{ name[$2] = $5 }
		$5 == of { line = ""; for (i = 0; i < $2; i++) line = line name[i] " "; print line }' | sort -u
}

@test "without frame pointers the callers are found from copies of the stack, and that is said" {
	start nofp -scale native
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -delay-thresh 20ms \
		-timeout 60s -o slow.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ unwind:\ frame\ pointers\ lead\ to\ the\ outermost\ caller\ in\ only\ 0\ of\ [1-9][0-9]*\ stacks ]]
	callers slow.mtbpf serve | grep -Eq '^_start .*main $'
	command -v perf >/dev/null || skip "the rest needs perf"
	perf script -i slow.mtbpf --no-inline -F event,ip,sym >script 2>err 3>&-
	grep -A 9 'context-switches:' script | grep -q ' _start$'
	mtbpf_run attach -source sample -pid "$target" -unwind fp -timeout 300ms -o fp.fxt
	[[ $output != *unwind:* ]]
	[ -z "$(callers fp.mtbpf serve | grep _start)" ]
}

@test "the caller of a function of libc that has no frame is named, if the trigger is not the call" {
	start causes lock
	come_first
	mtbpf_run attach -source sample -unwind fp -pid "$target" -symbol one_iter -delay-thresh 20ms \
		-timeout 60s -o slow.fxt
	[ "$status" -eq 0 ]
	callers slow.mtbpf __lll_lock_wait >callers
	cat callers
	grep -q 'one_iter $' callers
	! grep -q 'main $' callers
}

@test "with frame pointers the stack is not copied; -unwind dwarf does, through a probed return too" {
	start causes read
	mtbpf_run attach -source sample -pid "$target" -timeout 300ms -o fp.fxt
	[[ $output != *unwind:* ]]
	[ -z "$("$O/mtbpf" decode fp.mtbpf -print calls | grep ' _start$')" ]
	sample -duration-thresh 20ms -unwind dwarf
	[ "$status" -eq 0 ]
	callers slow.mtbpf read_answer | grep -Eq '^_start .*main one_iter $'
}

@test "-trace-include-kernel: what the kernel did is slices as well, and perf reads it" {
	[ "$(cat /proc/sys/kernel/kptr_restrict)" -lt 2 ] || skip "kptr_restrict 2 hides the kernel's symbols"
	start causes read
	come_first
	threshold=(-duration-thresh 20ms -trace-include-kernel)
	# The function that waits is the user's, as without it: read, or, in newer C libraries, one without a name that it calls.
	reports ' \[blocked\] in (read|\[libc[^]]*\]): read of pipe'
	callers slow.mtbpf '[blocked]' | grep -Eq ' (read|\[libc[^]]*\]) \[kernel\] .*vfs_read .*schedule $'
	# No call of the user's in the kernel.
	callers slow.mtbpf work_us >callers || true
	callers slow.mtbpf one_iter >>callers
	! grep -F '[kernel]' callers || false
	mtbpf_run decode slow.mtbpf -o again.fxt
	cmp slow.fxt again.fxt
	mtbpf_run report slow.fxt
	grep -Eq ' \[blocked\] in (read|\[libc[^]]*\]): read of pipe' <<<"$output"
	command -v perf >/dev/null || skip "the rest needs perf"
	perf script -i slow.mtbpf -F event,ip,sym >script 2>err 3>&-
	grep -A 20 'context-switches:' script | grep -Eq '^\s+ffff[0-9a-f]+ .*schedule'
}

# Where other work keeps mtbpf from measuring, it says so.
is_disturbed() {
	grep -Eq 'other work on this machine disturb(s|ed) the measurement'
}

# undisturbed ARGS: mtbpf, again where it could not measure.
undisturbed() {
	local try
	for ((try = 0; try < 20; try++)); do
		mtbpf_run "$@"
		is_disturbed <<<"$output" || return 0
	done
	echo "it was disturbed each time"
	return 1
}

@test "-max-overhead: what a stack costs here is measured, and the rate that it allows is said" {
	start causes branch
	undisturbed attach -source sample -pid "$target" -max-overhead 1% -timeout 1s
	[ "$status" -eq 3 ]
	[[ $output =~ a\ stack\ costs\ [0-9.]+\ [nu]s\ here,.*:\ ([0-9]+)\ samples\ per\ second,\ for\ -max-overhead\ 1% ]]
	[ "${BASH_REMATCH[1]}" -ge 10 ]
	[ "${BASH_REMATCH[1]}" -le 1000 ]
	# Never more than was asked for.
	undisturbed attach -source sample -pid "$target" -max-overhead 100% -sample-rate 50 -timeout 1s
	[[ $output == *": 50 samples per second, for -max-overhead 100%"* ]]
}

# It spins, and then has a word with its child, and another one, which it waits for.
@test "-max-overhead is kept while it is recorded: who begins to switch all the time is sampled less" {
	command -v perl >/dev/null || skip "perl is missing"
	# It comes before others: if it had to wait for a CPU, it could not switch that often. And mtbpf comes before it:
	# the two of them leave nothing to others on two CPUs that are busy.
	nice -n -15 perl -e 'pipe(A, B); pipe(C, D); $| = 1; print "pid $$\n";
		if (!fork) { close B; while (sysread A, $x, 1) { syswrite D, "x", 1 } exit }
		until (-e "go") { for ($i = 0; $i < 100000; $i++) {} }
		while (1) { syswrite B, "x", 1; sysread C, $x, 1 }' >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 10 grep -q '^pid ' out
	# Where the machine is busy a stack seems dear at first, so that there is nothing to lower, or it cannot be measured.
	for ((try = 0; try < 20; try++)); do
		NICE=-19 attach -source sample -unwind fp -pid "$target" -max-overhead 1% -o kept.fxt -v || true
		eventually 60 grep -Eq '^recording;|disturbs the measurement' "$attach_log"
		if ! is_disturbed <"$attach_log"; then
			! grep -Eq ': 1.? samples per second, for -max-overhead' "$attach_log" && break
			kill -INT "$attached"
		fi
		attach_ends 20
	done
	touch go
	eventually 30 grep -q 'max-overhead 1% cannot be met: stacks at the lowest rate (10 per second)' "$attach_log"
	eventually 30 grep -q 'sample: 10 stacks per second from now on, for -max-overhead 1%' "$attach_log"
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 0 ]
	[[ $output =~ :\ ([0-9]+)\ samples\ per\ second,\ for\ -max-overhead\ 1% ]]
	[ "${BASH_REMATCH[1]}" -gt 10 ]
	[[ $output == *"sample: 10 stacks per second at the end, for -max-overhead 1%"* ]]
	# The recording knows of the longest time between two.
	command -v perf >/dev/null || skip "the rest needs perf"
	perf evlist -v -i kept.mtbpf 2>/dev/null 3>&- | grep '^cpu-clock' | grep -q 'sample_period.* 100000000,'
}

@test "a rate that the lookback or the kernel limits is the one that is said" {
	start causes read
	undisturbed attach -source sample -unwind fp -pid "$target" -symbol one_iter -delay-thresh 1s -snapshot-size 64K \
		-timeout 300ms
	[[ $output =~ sample:\ ([0-9]+)\ stacks\ per\ second\ instead\ of\ ([0-9]+) ]]
	[ "${BASH_REMATCH[1]}" -lt "${BASH_REMATCH[2]}" ]
	[ "$(grep -c "^sample: ${BASH_REMATCH[1]} stacks per second, each costs" <<<"$output")" -eq 1 ]
	[ "$(grep -c "^sample: ${BASH_REMATCH[2]} stacks" <<<"$output")" -eq 0 ]
	mtbpf_run attach -source sample -pid "$target" -sample-rate 1000000 -timeout 300ms
	[[ $output == *"stacks per second"* && $output != *"sample: 1000000 "* ]]
}

@test "what the stacks cost here is said in one line, without -max-overhead too" {
	start causes branch
	undisturbed attach -source sample -pid "$target" -sample-rate 100 -timeout 300ms
	[ "$status" -eq 3 ]
	[ "$(grep -Ec '^sample: 100 stacks per second, each costs [0-9.]+ [nu]s here: [0-9.]+ % of a thread' <<<"$output")" -eq 1 ]
	mtbpf_run attach -source sample -pid "$target" -timeout 300ms
	[[ $output =~ sample:\ ([0-9]+)\ stacks\ per\ second ]]
	[ "${BASH_REMATCH[1]}" -le 1000 ]
}

# Each thread waits for 100 ms right after it has begun, and ends: nobody could open an event for it in time.
@test "a wait in a thread that has just begun is one, not time on the CPU" {
	start_python <<-'EOF'
		import os, threading, time
		print("pid", os.getpid(), flush=True)
		while not os.path.exists("go"):
		    time.sleep(0.05)
		for i in range(50):
		    t = threading.Thread(target=time.sleep, args=(0.1,))
		    t.start()
		    t.join()
	EOF
	attach -source sample -pid "$target" -unwind fp -o young.fxt
	eventually 20 grep -q '^recording;' "$attach_log"
	touch go
	attach_ends 60
	[ "$status" -eq 0 ]
	"$O/mtbpf" decode young.mtbpf -print calls >calls
	# Slices are "tid depth start end name", in nanoseconds.
	[ "$(awk -v main="$target" '$1 != main && $5 == "[blocked]" && $4 - $3 > 9e7 { print $1 }' calls |
		sort -u | wc -l)" -eq 50 ]
}

# bats test_tags=slow
@test "who runs on a CPU that the thread has left does not take its CPU" {
	[ "$(nproc)" -ge 2 ] && command -v python3 >/dev/null || skip "needs two CPUs and python3"
	cd "$BATS_TEST_TMPDIR"
	cat >moves.c <<-'END'
		#define _GNU_SOURCE
		#include <sched.h>
		#include <signal.h>
		#include <stdio.h>
		#include <sys/prctl.h>
		#include <time.h>
		#include <unistd.h>
		static volatile long work;
		static void pin(int cpu)
		{
			cpu_set_t set;
			CPU_ZERO(&set);
			CPU_SET(cpu, &set);
			sched_setaffinity(0, sizeof(set), &set);
		}
		static void hog(const char *name, int cpu)
		{
			if (fork())
				return;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, name);
			for (pin(cpu);;)
				work++;
		}
		static void use(long ms)
		{
			clock_t end = clock() + ms * CLOCKS_PER_SEC / 1000;
			while (clock() < end)
				work++;
		}
		__attribute__((noinline)) void handle(void) { use(6); work++; }
		int main(void)
		{
			dprintf(1, "pid %d\n", getpid());
			hog("other", 0);
			hog("another", 0);
			hog("hog", 1);
			for (;;) {
				pin(0);
				use(10);
				pin(1);
				for (int i = 0; i < 3; i++)
					handle();
			}
		}
	END
	"${CC:-gcc}" -O1 -fno-omit-frame-pointer -o moves moves.c
	start_file ./moves
	mtbpf_run record -source sample -pid "$target" -symbol handle -duration-thresh 9ms -dir d -no-summary \
		-min-interval 100ms -timeout 20s
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
	for recording in d/*.mtbpf; do
		"$O/mtbpf" report -json "$recording" 2>/dev/null
	done >reports
	python3 - <<-'END'
		import json
		blamed = [by['comm'] for line in open('reports') for f in json.loads(line)['functions'] for by in f.get('by', [])]
		assert 'hog' in blamed and not {'other', 'another'} & set(blamed), blamed
	END
}

# bats test_tags=slow
@test "without the rights for BPF: a clock for each thread; those that have ended take nothing" {
	start_python <<-'EOF'
		import os, threading, time
		print("pid", os.getpid(), flush=True)
		while True:
		    t = threading.Thread(target=time.sleep, args=(0.1,))
		    t.start()
		    t.join()
	EOF
	TIMEFORMAT='%U %S'
	{ time setpriv --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin timeout 60 "$O/mtbpf" record -source sample \
		-pid "$target" -timeout 4s -o ends.mtbpf >said 2>&1 3>&- || true; } 2>took
	cat said took
	grep -q '^recording: ends.mtbpf' said
	# Of the seconds of CPU time that somebody would take who is woken all the time.
	awk '{ exit !($1 + $2 < 1.5) }' took
}

# bats test_tags=slow
@test "a probe that takes most of the target's time is removed, and the reason said" {
	cat >hot.c <<-'EOF'
		#include <stdio.h>
		#include <unistd.h>
		__attribute__((noipa)) void hot(void) { __asm__ volatile("sub $8, %rsp; add $8, %rsp"); }
		int main(void) { printf("pid %d\n", getpid()); fflush(stdout); for (;;) hot(); }
	EOF
	"${CC:-cc}" -O2 hot.c -o hot || skip "no compiler"
	./hot >out 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' out
	mtbpf_run attach -source sample -pid "$target" -symbol hot -delay-thresh 100s -timeout 60s
	[ "$status" -eq 1 ]
	[[ $output == *"mtbpf: the probes of hot are removed: "*" % of the target's CPU"* ]]
	[[ $output == *"hint: "*"-max-overhead none keeps the probe"* ]]
	# The hits of -also count as well.
	mtbpf_run attach -source sample -pid "$target" -symbol main -also hot -delay-thresh 100s -timeout 60s
	[ "$status" -eq 1 ]
	[[ $output == *"mtbpf: the probes of main and hot are removed: "* ]]
	mtbpf_run attach -source sample -pid "$target" -symbol hot -delay-thresh 100s -timeout 4s -max-overhead none
	[ "$status" -eq 3 ]
}

@test "the target is as it was: no probe, no event, and it works on" {
	start_own causes branch
	at=$("$O/mtbpf" list -pid "$target" one_iter | cut -d ' ' -f 1)
	code() {
		dd if="/proc/$target/mem" bs=16 count=1 iflag=skip_bytes skip=$((16#$at)) status=none |
			od -An -tx1
	}
	before=$(code)
	sample -duration-thresh 10ms
	[ "$status" -eq 0 ]
	[ "$(code)" = "$before" ]
	# Killed in the middle of it, too.
	attach -source sample -pid "$target" -symbol one_iter -delay-thresh 100s -o killed.fxt
	kill -9 "$attached"
	eventually 5 gone "$attached"
	eventually 5 eval '[ "$(code)" = "$before" ]'
	kill -0 "$target"
}
