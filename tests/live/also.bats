# SPDX-License-Identifier: MIT
# -also: each call of a few more functions is in the trace, however short, among what is sampled.

load causes

# Each one_iter of the service calls work_us once, for 50 us, which no sample sees but by chance. The first
# and the last may be cut, by what was attached first, and by the end.
each_has_one() {
	"$O/mtbpf" decode "$1" -print calls | awk -v tid="$target" '
		$1 != tid { next }
		$5 == "one_iter" { if (n++ > 1 && calls != 1) wrong++; depth = $2; calls = 0 }
		$5 == "work_us" && $2 == depth + 1 { ++calls; if ($4 - $3 < 50000) wrong++ }
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
	# As long as each works; the last may not be over.
	"$O/mtbpf" decode all.mtbpf -print calls | awk '$5 == "work_us" { took[++n] = $4 - $3 }
		END { for (i = 1; i < n; i++) if (took[i] < 50000) exit 1; exit n < 3 }'
	kill -0 "$target"
}

@test "-also refuses what is no whole function, what is too much, and other sources" {
	start causes branch
	sample() {
		mtbpf_run attach -pid "$target" -timeout 1s "$@"
	}
	sample -source soft -also work_us
	[ "$status" -eq 2 ]
	complains "-also belongs to -source sample" "leave -also out"
	sample -source sample -also usdt:a:b
	[ "$status" -eq 2 ]
	complains "-also usdt:a:b: not a whole function" "name the function alone"
	sample -source sample -also 'libc.so.6:*'
	[ "$status" -eq 2 ]
	complains "more than 64 functions" "mtbpf list"
	sample -source sample -also work_us,
	[ "$status" -eq 2 ]
	complains "an empty name between the commas of -also 'work_us,'" "-also A,B"
	sample -source sample -also no_such_thing
	[ "$status" -eq 2 ]
	complains "no function 'no_such_thing'"
}

@test "-also of a Go program: why not, and what measures its calls instead" {
	[ -x "$O/programs/go_stacks" ] || skip "the Go sample is not built: there is no Go"
	start go_stacks
	mtbpf_run attach -source sample -pid "$target" -also main.main -timeout 1s
	[ "$status" -eq 2 ]
	complains "calls of a Go program are its goroutines', which change threads" "-symbol main.main -duration-thresh"
}
