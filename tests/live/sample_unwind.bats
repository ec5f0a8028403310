# SPDX-License-Identifier: MIT
# -source sample on programs without frame pointers: glibc's, musl's, Rust's. -unwind auto finds out that
# copies of the stack know more callers, and they are the right ones.

load ../helpers

setup() {
	[ -x "${O:?}/programs/sorts" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	source=$BATS_TEST_DIRNAME/../programs/sorts.c
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# watch_it PROGRAM ARGS: runs and records it, until there are many stacks of it; its slices are in calls.
watch_it() {
	local program=$1
	shift
	begin_log out
	"$program" >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 10 grep -q '^pid ' out
	mtbpf_run attach -source sample -pid "$target" -timeout 1500ms -o x.fxt "$@"
	[ "$status" -eq 3 ]
	"$O/mtbpf" decode x.mtbpf -print calls >calls
}

# stacks FUNCTION: who called it, a line each way there is, from the outermost caller on.
stacks() {
	awk -v of="$1" '{ name[$2] = $5 }
		$5 == of { line = ""; for (i = 0; i < $2; i++) line = line name[i] " "; print line }' calls | sort -u
}

copies() {
	[[ $output =~ unwind:\ frame\ pointers\ lead\ to\ the\ outermost\ caller\ in\ only\ 0\ of\ [1-9] ]]
}

@test "glibc: through its qsort, in another library, to _start" {
	watch_it "$O/programs/sorts"
	copies
	stacks weigh | grep -Eq '^_start .*main one_iter sort_keys .*compare_keys $'
	# What -unwind fp would have shown: no caller of it all.
	end_started
	watch_it "$O/programs/sorts" -unwind fp
	! stacks weigh | grep -q 'main'
}

@test "copies that are too short for the outermost callers are told, and longer ones have them" {
	watch_it "$O/programs/sorts" -unwind dwarf -stack-copy 200
	says callers-cut "*" "*" "200 B"
	! stacks weigh | grep -q '^_start '
	end_started
	watch_it "$O/programs/sorts" -unwind dwarf -stack-copy 20K
	[[ $output != *"outer callers are missing"* ]]
	stacks weigh | grep -Eq '^_start .*main one_iter sort_keys .*compare_keys $'
}

@test "a page of the stack that was not in RAM is not blamed on the size of the copies" {
	cat >sparse.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>

		__attribute__((noinline)) void work(void)
		{
			for (volatile int i = 0; i < 2000000; i++)
				;
			usleep(100);
		}

		int main(void)
		{
			/* The compiler cannot know that the array stays unused: its pages are never written. */
			volatile char unused[1 << 20];

			printf("pid %d\n", getpid());
			fflush(stdout);
			for (;;) {
				work();
				if (getpid() < 0)
					unused[getpid() & 0xfffff] = 1;
			}
		}
	END
	gcc -O1 -g -o sparse sparse.c
	watch_it ./sparse -unwind dwarf
	says callers-absent
	[[ $output != *"-stack-copy"* ]]
}

@test "musl, static: up to its own functions, which cannot be unwound" {
	command -v musl-gcc >/dev/null || skip "musl-gcc is missing"
	musl-gcc -O2 -g -D_GNU_SOURCE -fomit-frame-pointer -static -o sorts "$source"
	watch_it ./sorts
	copies
	# Of one comparison only some callers are known, of what sorts itself all.
	stacks weigh | grep -Eq 'compare_keys $'
	[ -z "$(stacks weigh | grep -v 'compare_keys $')" ]
}

@test "Rust: from its runtime's begin on" {
	command -v rustc >/dev/null || skip "rustc is missing"
	cat >sorts.rs <<-'END'
		use std::io::Write;
		// The compiler knows nothing of what comes out (std::hint::black_box() is newer).
		#[inline(always)]
		fn black_box<T: Copy>(value: T) -> T { unsafe { std::ptr::read_volatile(&value) } }
		#[inline(never)]
		fn weigh(key: u64) -> u64 {
		    let mut sum = 0;
		    for i in 0..20000u64 { sum = black_box(sum + i * key); }
		    sum
		}
		#[inline(never)]
		fn sort_keys() -> u64 {
		    let mut keys = vec![4u64, 2, 9, 1, 7, 3, 8, 5];
		    keys.sort_by(|a, b| weigh(*a).cmp(&weigh(*b)));
		    keys[0]
		}
		#[inline(never)]
		fn one_iter() -> u64 { black_box(sort_keys()) + 1 }
		fn main() {
		    println!("pid {}", std::process::id());
		    std::io::stdout().flush().unwrap();
		    loop { black_box(one_iter()); }
		}
	END
	rustc -O -C debuginfo=1 -o sorts sorts.rs 2>err || skip "rustc has no standard library here"
	watch_it ./sorts
	copies
	stacks sorts::weigh | grep -Eq '^_start .*main .*sorts::main sorts::one_iter sorts::sort_keys '
}

# waits_below FUNCTION: how many of nest() stand between it and a wait, in lines of folded stacks.
waits_below() {
	"$O/mtbpf" report -folded x.mtbpf | awk -v of="$1" '/poll;\[blocked\] / && $0 ~ of ";" {
		split($1, names, ";"); n = 0; for (i in names) n += names[i] == "nest"; print n }' | sort -u
}

@test "all callers of a wait, of stacks at switches alone: by frame pointers and by copies" {
	local pointers
	for pointers in no- ""; do
		gcc -O1 -g "-f${pointers}omit-frame-pointer" -pthread -o waits "$BATS_TEST_DIRNAME/../programs/waits.c"
		watch_it ./waits -sample-rate 1 -unwind "$([ -n "$pointers" ] && echo fp || echo dwarf)"
		[[ $output == *"for each CPU"* ]]
		[ "$(waits_below main)" = 30 ]
		[ "$(waits_below start_thread)" = 30 ]
		end_started
	done
}

@test "all callers of a wait of 32-bit code, by frame pointers" {
	gcc -m32 -O1 -nostdlib -static -fno-pie -no-pie -fno-stack-protector -fno-omit-frame-pointer \
		-o narrow "$BATS_TEST_DIRNAME/../programs/narrow.c" || skip "gcc cannot compile 32-bit code"
	./narrow 3>&- &
	target=$!
	started+=("$target")
	mtbpf_run attach -source sample -pid "$target" -sample-rate 1 -unwind fp -timeout 1s -o x.fxt
	[ "$status" -eq 3 ]
	# Its functions have no names: the file stands for each.
	[ "$("$O/mtbpf" report -folded x.mtbpf | grep -F ';[blocked] ' | grep -o narrow | wc -l)" = 34 ]
}

@test "all callers of a wait of which another mtbpf probes the returns" {
	gcc -O1 -g -fno-omit-frame-pointer -pthread -o waits "$BATS_TEST_DIRNAME/../programs/waits.c"
	begin_log out
	./waits >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 10 grep -q '^pid ' out
	"$O/mtbpf" attach -source sample -pid "$target" -symbol nest -duration-thresh 100s -timeout 60s -o other.fxt >other 2>&1 3>&- &
	started+=("$!")
	eventually 20 grep -q '^waiting' other
	mtbpf_run attach -source sample -pid "$target" -sample-rate 1 -unwind fp -timeout 1500ms -o x.fxt
	[ "$status" -eq 3 ]
	[[ $output == *"for each CPU"* ]]
	[ "$(waits_below main)" = 30 ]
	[ "$(waits_below start_thread)" = 30 ]
}

@test "a few stacks, of other threads, do not decide that frame pointers will do" {
	cat >deep.c <<-'END'
		#include <time.h>
		__attribute__((noipa)) void sink(void) { nanosleep(&(struct timespec){0, 30000000}, 0); __asm__ volatile(""); }
		__attribute__((noipa)) void deep(int n)
		{
			if (n > 1)
				deep(n - 1);
			else
				sink();
			__asm__ volatile("" ::: "rbx", "rbp", "r12");
		}
	END
	cat >few.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <unistd.h>
		void deep(int n);
		__attribute__((noipa)) void handle(void) { deep(20); __asm__ volatile(""); }
		static void *tick(void *arg) { for (;;) usleep(60000); return arg; }
		int main(void)
		{
			pthread_t thread;
			char c;
			pthread_create(&thread, NULL, tick, NULL);
			printf("pid %d\n", (int)getpid());
			fflush(stdout);
			while (read(0, &c, 1) == 1)
				handle();
			return 0;
		}
	END
	gcc -O2 -g -fomit-frame-pointer -c deep.c
	gcc -O1 -g -fno-omit-frame-pointer -pthread -o few few.c deep.o
	mkfifo requests
	begin_log out
	./few <requests >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	exec 9>requests
	eventually 10 grep -q '^pid ' out
	"$O/mtbpf" attach -source sample -pid "$target" -symbol handle -duration-thresh 20ms -timeout 60s -v -o x.fxt >log 2>&1 3>&- 9>&- &
	started+=("$!")
	eventually 20 grep -q '^waiting' log
	echo >&9
	eventually 20 test -s x.fxt
	eventually 10 grep -q '^reason: ' log
	exec 9>&-
	cat log
	# Those of tick(): few, and frame pointers lead to the outermost caller of each.
	grep -Eq 'unwind: [1-9] stacks; [1-9] could be unwound' log
	"$O/mtbpf" report -folded x.fxt | grep 'handle;.*\[blocked\]' | tee folded
	[ "$(head -n 1 folded | tr ';' '\n' | grep -c '^deep$')" -eq 20 ]
}
