# SPDX-License-Identifier: MIT
# -also: each call of a few more functions is in the trace, however short, among what is sampled.

load causes

# Each one_iter of the service calls work_us once, for 50 us, which no sample sees but by chance. one_iter may be
# probed some iterations before work_us, and the last iteration may be cut by the end. Neither is called by the other
# functions of the service that are known to be leaves.
each_has_one() {
	"$O/mtbpf" decode "$1" -print calls | awk -v tid="$target" '
		$1 != tid { next }
		{ name[$2] = $5; caller = $2 ? name[$2 - 1] : "" }
		$5 ~ /^(one_iter|work_us|main)$/ && caller ~ /nanosleep|read|write|work_us/ { wrong++; print }
		$5 ~ /^(one_iter|main)$/ && caller == "one_iter" { wrong++; print }
		$5 == "one_iter" { if (seen && n++ && calls != 1) { wrong++; print } depth = $2; calls = 0 }
		$5 == "work_us" && $2 > depth { seen = 1; ++calls; if ($4 - $3 < 50000) { wrong++; print } }
		END { print n " iterations, " wrong + 0 " wrong"; exit !(n > 10 && !wrong) }'
}

# The second that is slow, so that there are others before it.
@test "-also: each call is exact, in the trigger's own calls" {
	start causes read
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -duration-thresh 20ms -skip 1 \
		-also work_us -timeout 15s -o slow.fxt
	[ "$status" -eq 0 ]
	each_has_one slow.mtbpf
}

@test "-also by the instructions that return; the trigger's function, whose returns are not probed, is one" {
	start causes read
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -delay-thresh 30ms -skip 1 \
		-return-probes ret-insns -also one_iter,work_us -timeout 15s -o slow.fxt
	[ "$status" -eq 0 ]
	each_has_one slow.mtbpf
}

@test "-also without a trigger: all that a glob matches" {
	start causes branch
	mtbpf_run attach -source sample -pid "$target" -also 'work_*' -timeout 1s -o all.fxt
	[ "$status" -eq 3 ]
	# As long as each works, 50 us by the CPU clock of its thread, which may go a little faster; the last may not be
	# over.
	"$O/mtbpf" decode all.mtbpf -print calls | awk '$5 == "work_us" { took[++n] = $4 - $3 }
		END { for (i = 1; i < n; i++) if (took[i] < 40000) exit 1; exit n < 3 }'
	kill -0 "$target"
}

@test "-also refuses what is no whole function, what is too much, and other sources" {
	start causes branch
	sample() {
		mtbpf_run attach -pid "$target" -timeout 1s "$@"
	}
	sample -source soft -also work_us
	[ "$status" -eq 2 ]
	complains also-is-for-samples hint leave-out-also
	sample -source sample -also usdt:a:b
	[ "$status" -eq 2 ]
	complains also-not-a-function usdt:a:b hint name-whole-function
	sample -source sample -also 'libc.so.6:*'
	[ "$status" -eq 2 ]
	complains also-too-many "*" 64 hint use-narrower-glob
	sample -source sample -also work_us,
	[ "$status" -eq 2 ]
	complains empty-name -also work_us, hint name-several -also
	sample -source sample -also no_such_thing
	[ "$status" -eq 2 ]
	complains no-function no_such_thing
}

# Each iteration sleeps for 2 ms, in a goroutine that goes on wherever there is a thread for it. The first of a
# goroutine may have begun before its caller was probed, and the last may not be over.
@test "-also of a Go program: each goroutine's calls are exact, on a track of their own" {
	[ -x "$O/programs/go_stacks" ] || skip "the Go sample is not built: there is no Go"
	start go_stacks
	mtbpf_run attach -source sample -pid "$target" -also main.work,main.iteration -timeout 2s -o go.fxt
	[ "$status" -eq 3 ]
	"$O/mtbpf" decode go.mtbpf -print calls | awk '
		$1 !~ /\./ { next }
		$1 != track { track = $1; ++tracks; last = seen = 0 }
		last && last < 2000000 { ++wrong }
		{ last = 0 }
		$5 == "main.work" { work = $3; next }
		# What stacks show of it, and what they do not.
		$5 != "main.iteration" { next }
		{ last = $4 - $3; ++n; if (seen++ && ($2 != 1 || $3 < work)) ++wrong }
		END { print n " iterations, " tracks " tracks, " wrong + 0 " wrong"
			exit !(n > 5 && tracks > 1 && !wrong) }'
	kill -0 "$target"
}

@test "-also of a Go program: no return probes, and no function that does not return" {
	[ -x "$O/programs/go_stacks" ] || skip "the Go sample is not built: there is no Go"
	start go_stacks
	mtbpf_run attach -source sample -pid "$target" -also main.work -return-probes uretprobe -timeout 1s
	[ "$status" -eq 2 ]
	complains uretprobe-crashes hint leave-out-return-probes
	mtbpf_run attach -source sample -pid "$target" -also main.main -timeout 1s
	[ "$status" -eq 2 ]
	complains also-no-returns main.main hint name-callee
	# Of a glob it is left out.
	mtbpf_run attach -source sample -pid "$target" -also 'main.*' -timeout 1s -o all.fxt
	[ "$status" -eq 3 ]
	"$O/mtbpf" decode all.mtbpf -print calls >calls
	grep -q '\..* main.iteration$' calls
	# Where its stack was moved for that, main.wide began twice, which is one call of main.work's.
	awk '$1 !~ /\./ { next }
		$5 == "main.work" { wide = 0 }
		$5 == "main.wide" { ++all; wrong += ++wide > 1 }
		END { print all + 0 " calls, " wrong + 0 " wrong"; exit !all || wrong }' calls
	kill -0 "$target"
}

@test "a call that is open at one snapshot is whole in the next one" {
	cat >open.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <unistd.h>
		__attribute__((noipa)) void quick(void)
		{
			__asm__ volatile("" ::: "memory");
		}
		__attribute__((noipa)) void long_call(int us)
		{
			usleep(us);
			__asm__ volatile("" ::: "memory");
		}
		static void *slow(void *arg)
		{
			for (;; usleep(1000))
				long_call(1500000);
			return arg;
		}
		int main(void)
		{
			pthread_t thread;

			pthread_create(&thread, NULL, slow, NULL);
			printf("pid %d\n", getpid()), fflush(stdout);
			for (;; usleep(20000))
				quick();
		}
	END
	"${CC:-gcc}" -O1 -fno-omit-frame-pointer -pthread -o open open.c
	start_file ./open
	mtbpf_run record -source sample -pid "$target" -symbol quick -also long_call -min-interval 2500ms \
		-max-overhead none -dir d -timeout 12s
	# The call that was open when mtbpf attached is not known to have begun.
	local n=0 each
	for each in d/*.mtbpf; do
		"$O/mtbpf" decode "$each" -print calls >calls
		# It began before all else of this recording.
		! awk '$5 == "long_call" && $3 == 0 && $4 >= 1490000000 { found++ } END { exit !found }' calls || ((++n))
	done
	[ "$n" -gt 0 ]
}
