# SPDX-License-Identifier: MIT
# Programs that say themselves where a snapshot is to be taken: include/mtbpf.h, and what was built for
# magic-trace.

load ../helpers

setup() {
	[ -x "${O:?}/programs/library" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# With -skip there is time for a sample or two before the hit.
# The hits that the trace shows: Perfetto's own words are tested elsewhere.
# What triggered, without the threshold and when it was.
hit_line() {
	sed -nE 's/^(hit .*), at 20[0-9]{2}-[-0-9T:.]*Z$/\1/p' <<<"$output" | sed 's/, threshold [^,]*$//'
}

@test "without -symbol the program's own call triggers, and its argument is shown" {
	start library
	mtbpf_run attach -pid "$target" -source sample -skip 30 -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	says own-trigger-used mtbpf_hit
	[[ $(hit_line) =~ ^hit\ [0-9]+\ of\ mtbpf_hit,\ thread\ $target,\ arg1\ [0-9]+$ ]]
	first=$(hit_line)
	grep -q arg1 x.fxt
	mtbpf_run decode x.mtbpf -o y.fxt
	[ "$(hit_line)" = "$first" ]
	mtbpf_run attach -pid "$target" -source sample -skip 30 -timeout 60s -o z.fxt
	[ "$(hit_line | sed 's/.*arg1 //')" -gt "${first##*arg1 }" ]
}

@test "a call without an argument has none: for -if, -key and -print" {
	cat >bare.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		#include "mtbpf.h"
		int main(int argc, char **argv)
		{
			if (argc > 2)
				mtbpf_set_trace_id("0123456789abcdef");
			printf("pid %d\n", getpid()), fflush(stdout);
			for (;; usleep(1000)) {
				mtbpf_take_snapshot();
				if (argc > 1 && *argv[1])
					mtbpf_take_snapshot_with_arg(0);
			}
		}
	END
	"${CC:-gcc}" -O1 -I "$BATS_TEST_DIRNAME/../../include" -o bare bare.c
	local id
	for id in "" 1; do
		# shellcheck disable=SC2086
		start_file ./bare "" $id
		mtbpf_run attach -source sample -pid "$target" -if 'arg1 == 0' -timeout 500ms -o x.fxt
		[ "$status" -eq 3 ]
		mtbpf_run attach -source sample -pid "$target" -print arg1 -timeout 60s -o y.fxt
		[ "$status" -eq 0 ]
		[[ $output == *", arg1 unknown"* ]]
		kill "$target"
		# shellcheck disable=SC2086
		start_file ./bare with $id
		mtbpf_run attach -source sample -pid "$target" -if 'arg1 == 0' -timeout 60s -o z.fxt
		[ "$status" -eq 0 ]
		[[ $output == *", arg1 0"* ]]
		kill "$target"
	done
}

@test "libraries with stubs of their own: all of them trigger" {
	for option in "" -exit; do # calls the first, or the second
		start host $option
		mtbpf_run watch -pid "$target" -timeout 500ms
		[ "$status" -eq 0 ]
		[ "$(grep -o '[0-9]* hits' <<<"$output" | tail -1 | cut -d ' ' -f 1)" -gt 0 ]
	done
	mtbpf_run watch -pid "$target" -symbol libsays:mtbpf_hit -timeout 300ms
	[[ $output == *"0 hits "* ]]
}

@test "-duration-thresh: since mtbpf_mark_start(), of the same thread" {
	start library -threads 3 # others that call it have no mark: they never trigger
	mtbpf_run attach -pid "$target" -source sample -duration-thresh 50ms -skip 1 -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	says waiting-for-mark mtbpf_hit "50.0 ms"
	[[ $(hit_line) =~ thread\ $target:\ ([0-9]+)[.0-9]*\ ms\ after\ mtbpf_mark_start\(\),\ arg1\ ([0-9]+)$ ]]
	[ "${BASH_REMATCH[1]}" -ge 50 ]
	[ $((BASH_REMATCH[2] % 50)) -eq 0 ] # the slow ones are
	[[ $output == *"iteration of mtbpf_hit took ${BASH_REMATCH[1]}"* ]]
	mtbpf_run attach -pid "$target" -source sample -duration-thresh 100s -timeout 1s -o y.fxt
	[ "$status" -eq 3 ]
}

@test "-delay-thresh: from one call to the next" {
	start library
	mtbpf_run attach -pid "$target" -source sample -delay-thresh 50ms -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $(hit_line) == *" ms after the one before, arg1 "* ]]
}

@test "single-stepped, and from its first instruction on" {
	# Some 20,000 instructions: seconds, where nobody else runs.
	LIMIT=100 mtbpf_run run -source soft -o x.fxt -- "$O/programs/library-static" -n 2 -pause 0
	[ "$status" -eq 0 ]
	[[ $(hit_line) == *" of mtbpf_hit, thread "*", arg1 1" ]]
}

@test "a program built for magic-trace: its own stop indicator" {
	start foreign
	mtbpf_run attach -pid "$target" -source sample -skip 30 -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	says own-trigger-used magic_trace_stop_indicator
	[[ $(hit_line) == *" of magic_trace_stop_indicator, thread $target" ]]
}

@test "watch takes it too, and measures from the mark" {
	start library -slow-every 5 -threads 2 # the other one has no mark
	mtbpf_run watch -pid "$target" -durations -timeout 2s
	[ "$status" -eq 0 ]
	[[ $output =~ "max "([0-9]+)[.0-9]*" ms" ]]
	[ "${BASH_REMATCH[1]}" -ge 60 ]
	start crash -scale small -n 1000000000
	mtbpf_run watch -pid "$target"
	[ "$status" -eq 2 ]
	complains watch-no-function hint add-symbol-run
}

@test "in a time namespace: the mark is by another clock" {
	unshare --time --monotonic 100000 true 2>/dev/null || skip "no time namespaces here"
	log=$BATS_TEST_TMPDIR/namespaced
	unshare --time --monotonic 100000 --fork "$O/programs/library" >"$log" 2>&1 3>&- &
	started+=($!)
	eventually 5 grep -q '^pid ' "$log"
	target=$(sed -n 's/^pid //p' "$log")
	started+=("$target")
	mtbpf_run attach -pid "$target" -source sample -duration-thresh 50ms -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $(hit_line) =~ ([0-9]+)[.0-9]*\ ms\ after\ mtbpf_mark_start ]]
	[ "${BASH_REMATCH[1]}" -ge 50 ]
	[ "${BASH_REMATCH[1]}" -lt 10000 ]
}

@test "a program without it: records until Ctrl-C, and says so; a threshold is refused" {
	start crash -scale small -n 1000000000
	attach -pid "$target" -o x.fxt
	grep -q 'does not contain mtbpf_take_snapshot(): nothing triggers' "$attach_log"
	kill -INT "$attached"
	attach_ends 5
	[ "$status" -eq 0 ]
	mtbpf_run attach -pid "$target" -source sample -duration-thresh 1ms
	[ "$status" -eq 2 ]
	complains no-own-trigger @need-a-function hint add-symbol
}

@test "a trace id is on the hit: in the report, the trace, and the summary; also without an argument" {
	command -v cc >/dev/null || skip "no compiler"
	cat >traced.c <<-'END'
		#include <mtbpf.h>
		#include <string.h>
		#include <time.h>
		int main(int argc, char **argv)
		{
			unsigned char id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
			struct timespec pause = {0, 20000000};
			if (argc > 1)
				mtbpf_set_trace_id(id);
			for (;;) {
				mtbpf_mark_start();
				nanosleep(&pause, 0);
				if (argc > 2)
					mtbpf_take_snapshot_with_arg(7);
				else
					mtbpf_take_snapshot();
			}
		}
	END
	cc -O2 -I"$BATS_TEST_DIRNAME/../../include" -o traced traced.c
	id=4bf92f3577b34da6a3ce929d0e0e4736
	for words in "" "x" "x x"; do
		# shellcheck disable=SC2086
		./traced $words 3>&- &
		target=$!
		started+=("$target")
		rm -rf t.*
		mtbpf_run attach -source sample -pid "$target" -duration-thresh 10ms -o t.fxt
		[ "$status" -eq 0 ]
		case $words in
		"") [[ $output != *"trace id"* && $output != *", arg1"* ]] ;;
		"x") [[ $output == *", trace id $id"* && $output != *", arg1"* ]] ;;
		*) [[ $output == *", arg1 7, trace id $id"* && $output != *", arg2"* ]] ;;
		esac
		[ -n "$words" ] || continue
		for file in t.fxt t.mtbpf; do
			"$O/mtbpf" report -q "$file" | grep -q "trace id $id"
		done
		[ "$("$O/mtbpf" report -q -json t.mtbpf | jq -r .hit.trace_id)" = "$id" ]
		[ "$("$O/mtbpf" report -q -json t.mtbpf t.mtbpf | jq -r '.files[0].trace_id')" = "$id" ]
	done
}

# Compiles traced.c for a thread-local variable of a library, as the words say how: OpenTelemetry's
# record (OTEP 4947), set by a library, whatever way the compiler and the linker take to it.
make_otel() { # FLAGS...
	cat >otel.c <<-'END'
		#include <stdint.h>
		#include <string.h>
		struct record { unsigned char trace[16], span[8], valid, flags; uint16_t size; };
		__attribute__((visibility("default"))) __thread struct record *otel_thread_ctx_v1;
		static __thread struct record own;
		void attach_id(const unsigned char *id, int valid)
		{
			memcpy(own.trace, id, 16);
			own.span[0] = 1;
			own.valid = (unsigned char)valid;
			otel_thread_ctx_v1 = id[0] ? &own : 0;
		}
	END
	cc -O2 -fPIC -shared "$@" -o libotel.so otel.c
}

make_traced() { # FLAGS...
	cat >traced.c <<-'END'
		#include <dlfcn.h>
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		#ifdef OURS
		#include <mtbpf.h>
		static void attach_id(const unsigned char *id, int valid)
		{
			(void)valid;
			mtbpf_set_trace_id(id);
		}
		#elif defined(LOADED)
		static void (*attach_id)(const unsigned char *, int);
		#else
		void attach_id(const unsigned char *id, int valid);
		#endif
		static int valid = 1;
		__attribute__((noipa)) void work(int us)
		{
			usleep(us);
			__asm__ volatile("");
		}
		/* Thread n's ids begin with n, and end with the number of the iteration. */
		static void *serve(void *arg)
		{
			unsigned char id[16] = {(unsigned char)(long)arg, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
			for (int i = 0;; i++) {
				id[15] = (unsigned char)i;
				attach_id(id, valid);
				work(i % 8 == 3 ? 60000 : 1000);
				attach_id((const unsigned char[16]){0}, 1);
			}
		}
		int main(int argc, char **argv)
		{
			pthread_t thread;
			valid = argc < 2 || strcmp(argv[1], "invalid");
		#ifdef LOADED
			void *library = dlopen("./libotel.so", RTLD_NOW);
			attach_id = library ? (void (*)(const unsigned char *, int))dlsym(library, "attach_id") : 0;
			if (!attach_id)
				return 1;
		#endif
			for (long i = 1; i < 4; i++)
				pthread_create(&thread, 0, serve, (void *)i);
			puts("up");
			fflush(stdout);
			pause();
		}
	END
	cc -O2 -pthread -I"$BATS_TEST_DIRNAME/../../include" -o traced traced.c "$@"
}

# Attaches to ./traced's slow calls of work(); sets id to the report's trace id, "null" without one.
trace_id_of_a_slow_call() { # WORDS...
	./traced "$@" >up 3>&- &
	target=$!
	started+=("$target")
	eventually 10 grep -q up up
	rm -rf t.*
	mtbpf_run attach -source sample -pid "$target" -symbol work -duration-thresh 50ms -o t.fxt
	[ "$status" -eq 0 ]
	kill "$target"
	id=$("$O/mtbpf" report -q -json t.mtbpf | jq -r .hit.trace_id)
	# What the call that took 60 ms has, and no other.
	is_of_a_slow_call='^0[123]02030405060708090a0b0c0d0e00[0-9a-f][3b]$'
}

@test "the trace id of another symbol's hit: mtbpf.h's variable, in the program and in a library" {
	command -v cc >/dev/null || skip "no compiler"
	make_traced -DOURS
	trace_id_of_a_slow_call
	[[ $id =~ $is_of_a_slow_call ]]
	[[ $output == *", trace id $id"* ]]
	for file in t.fxt t.mtbpf; do
		"$O/mtbpf" report -q "$file" | grep -q "trace id $id"
	done
	printf '#include <mtbpf.h>\nvoid attach_id(const unsigned char *id, int v) { (void)v; mtbpf_set_trace_id(id); }\n' >ours.c
	cc -O2 -fPIC -shared -I"$BATS_TEST_DIRNAME/../../include" -o libours.so ours.c
	make_traced -L. -lours -Wl,-rpath,"$PWD"
	trace_id_of_a_slow_call
	[[ $id =~ $is_of_a_slow_call ]]
}

@test "the trace id of OpenTelemetry's thread-local record: by every model of thread-local storage" {
	command -v cc >/dev/null || skip "no compiler"
	for flags in -mtls-dialect=gnu -mtls-dialect=gnu2 -ftls-model=initial-exec; do
		make_otel "$flags"
		make_traced -L. -lotel -Wl,-rpath,"$PWD"
		trace_id_of_a_slow_call
		[[ $id =~ $is_of_a_slow_call ]] || { echo "$flags: $id" && false; }
		make_traced -DLOADED
		trace_id_of_a_slow_call
		[[ $id =~ $is_of_a_slow_call ]] || { echo "$flags, loaded: $id" && false; }
	done
	# In the program itself, whose distance from the thread pointer its own file tells.
	make_traced otel.c -Wl,--export-dynamic-symbol=otel_thread_ctx_v1
	trace_id_of_a_slow_call
	[[ $id =~ $is_of_a_slow_call ]]
	# A record that is being written is none.
	trace_id_of_a_slow_call invalid
	[ "$id" = null ]
}
