# SPDX-License-Identifier: MIT
# Functions of a JIT as the begin and the end of regions, and where their calls have no duration.

load ../helpers

setup() {
	[ -x "${O:?}/programs/jit_service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	take_breakpoints
}

teardown() {
	end_started
}

region=(-start jit:jit_inner -stop 'jit:jit shared(int)')

@test "soft: what a JIT has compiled is stepped from -start to -stop" {
	start jit_service -scale small -pause 1ms
	for trigger in "-duration-thresh 1us" "-symbol one_iter"; do
		mtbpf_run attach -source soft -pid "$target" "${region[@]}" $trigger -skip 3 -timeout 30s -o x.fxt
		[ "$status" -eq 0 ]
		"$O/mtbpf" decode x.mtbpf -format text >x.text
		cat x.text
		# In each region the end of a call of jit_inner, and the next one.
		awk '$5 == "jit_inner" { n++ } / \[gap: outside / { if (n != 2) bad++; n = 0; regions++ }
			END { exit bad > 0 || regions < 2 }' x.text
		! grep -E ' (jit_shared_inner|sample__next|clock_nanosleep)$' x.text || false
		[ "$(awk '/^TracerPid:/ { print $2 }' "/proc/$target/status")" -eq 0 ]
		rm -r x.*
	done
	mtbpf_run watch -pid "$target" "${region[@]}" -max-hits 50
	[[ $output == *"50 hits"* ]]
	# Its own breakpoint is one of the four.
	mtbpf_run attach -source soft -pid "$target" "${region[@]}" -duration-thresh 1us \
		-symbol 'jit:jit_shared_inner,jit:jit shared(int)' -o x.fxt
	[ "$status" -ne 0 ]
	complains too-many-breakpoints 5 ", with those that begin and end the trace at -start and -stop"
}

@test "calls of virtual threads change threads: no durations" {
	cat >virtual.c <<-'END'
		#define _GNU_SOURCE
		#include <pthread.h>
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		static void *wait_for_ever(void *name)
		{
			pthread_setname_np(pthread_self(), name);
			pause();
			return NULL;
		}
		int main(void)
		{
			unsigned char *code = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			char path[64];
			pthread_t thread;
			FILE *map;

			memcpy(code, "\x90\x90\x90\xc3", 4);
			snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
			map = fopen(path, "w");
			fprintf(map, "%lx 4 LShop;::handle\n", (unsigned long)code);
			fclose(map);
			/* As a JVM names the thread that wakes them; -x: another name. */
			pthread_create(&thread, NULL, wait_for_ever, access("ordinary", F_OK) ? "VirtualThread-u" : "worker");
			usleep(100000);
			printf("pid %d\n", getpid()), fflush(stdout);
			for (;; usleep(1000))
				((void (*)(void))code)();
		}
	END
	"${CC:-gcc}" -O1 -pthread -o virtual virtual.c
	start_file ./virtual
	mtbpf_run attach -source sample -pid "$target" -symbol jit:handle -duration-thresh 1ms -o x.fxt
	[ "$status" -eq 2 ]
	complains virtual-threads "LShop;::handle" hint without-return
	rm "/tmp/perf-$target.map"
	end_started
	touch ordinary
	start_file ./virtual
	mtbpf_run watch -pid "$target" -symbol jit:handle -durations -max-hits 20
	[ "$status" -eq 0 ]
	[[ $output == *"20 hits"* ]]
	rm "/tmp/perf-$target.map"
}

# As Erlang's map has them: "handle/1", and "handle/1-CodeInfoPrologue" for what stands before it.
@test "a function's whole name means that function, even if it is a part of another name" {
	start jit_service -scale small -pause 1ms
	at=$(awk '$3 == "jit_inner" { print $1; exit }' "/tmp/perf-$target.map")
	printf '%x 1 jit_inner-prologue\n' $((0x$at & ~0xfff | 0xff0)) >>"/tmp/perf-$target.map"
	mtbpf_run watch -pid "$target" -symbol jit:jit_inner -max-hits 5 -timeout 60s
	[ "$status" -eq 0 ]
	[[ $output == *"5 hits"* ]]
	mtbpf_run watch -pid "$target" -symbol 'jit:jit_inner*' -max-hits 5 -timeout 60s
	[ "$status" -ne 0 ]
	says jit-several
}
