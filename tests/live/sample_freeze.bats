# SPDX-License-Identifier: MIT
# -source sample through what Intel PT goes through in tests/vm: the trigger in any thread stops all rings,
# rings that are full, snapshots one after the other, targets that end, exec, or have two who look on.

load causes

# In clock ticks on a CPU.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$target/stat"
}

has_come_on() {
	[ "$(ticks)" -ge "$1" ]
}

# comes_on [TICKS]: until the target has run for a while, however busy the machine is.
comes_on() {
	eventually 60 has_come_on $(($(ticks) + ${1:-5}))
}

# iterations NAME: calls of one_iter in it.
iterations() {
	"$O/mtbpf" decode "$1" -print calls | grep -c ' one_iter$'
}

@test "a worker's hit stops the rings of all threads" {
	start threads -scale native
	sample -delay-thresh 2ms -v
	[ "$status" -eq 0 ]
	[[ $output =~ thread\ ([0-9]+):\ [0-9.]+\ [mun]*s\ after ]]
	[ "${BASH_REMATCH[1]}" -ne "$target" ]
	grep -q 'in the kernel, by a BPF program' slow.mtbpf/meta.json
	# Some, where the thread that hit lost its CPU within the program.
	[[ $output =~ sample:\ ([0-9]+)\ samples,\ [0-9]+\ switches\;\ ([0-9]+)\ samples\ after\ the\ hit ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
	[ "${BASH_REMATCH[2]}" -le 50 ]
	[ "$("$O/mtbpf" decode slow.mtbpf -print calls | awk '{ print $1 }' | sort -u | wc -l)" -ge 3 ]
}

@test "the recording ends with the hit: what came behind it, in whatever thread, is not in it" {
	command -v perf >/dev/null || skip "perf is missing"
	start threads -scale native
	sample -delay-thresh 2ms -sample-rate 10000 -also one_iter
	[ "$status" -eq 0 ]
	perf script -i slow.mtbpf --ns -F tid,time,event --show-switch-events >script 2>err 3>&-
	# Begins of calls are logged as such; what a hit takes is in the time of its own probe.
	awk '{ what[++n] = $0; sub(":", "", $2); time[n] = $2 + 0 } / mtbpf:hit:/ { hit = time[n] }
		END { for (i = 1; i <= n; i++) if (time[i] > hit) { print "hit " hit ": " what[i]; ++late }
			exit !hit || late || n < 10 }' script
}

@test "a ring that is full many times over: the latest is kept, up to the hit" {
	start causes branch
	sample -duration-thresh 20ms -after 500ms -snapshot-size 64K -sample-rate 10000
	[ "$status" -eq 0 ]
	[[ $output == *"iteration of one_iter took "* ]]
	[[ $output =~ :\ ([0-9]+)\ samples, ]]
	# A record has 64 bytes and more, and each CPU has a ring.
	[ "${BASH_REMATCH[1]}" -gt 0 ]
	[ "${BASH_REMATCH[1]}" -le $((1024 * $(nproc))) ]
	[ "$("$O/mtbpf" decode slow.mtbpf -print calls | grep -c ' work_us$')" -ge 1 ]
}

@test "how much memory the rings take, and how far back they reach" {
	start causes branch
	# One CPU: there is one ring then.
	taskset -a -p -c 0 "$target" >/dev/null
	attach -source sample -pid "$target" -snapshot-size 64K -sample-rate 10000 -o full.fxt
	comes_on 30
	kill -INT "$attached"
	attach_ends 20
	[[ $output == *"sample: stacks by a timer and at every context switch; a ring of 64.0 KiB for each CPU (1), 264.0 KiB in all"* ]]
	[[ $output =~ sample:\ a\ full\ ring\ looks\ back\ ([0-9.]+\ m?s)\; ]]
	back=${BASH_REMATCH[1]}
	# Less than that where nothing ran for a while at first: a trace begins with a stack.
	[[ $output =~ the\ trace\ looks\ back\ ([0-9.]+\ m?s): ]]
	awk -v back="$back" -v shown="${BASH_REMATCH[1]}" '
		function ms(time, t) { split(time, t, " "); return t[1] * (t[2] == "ms" ? 1 : 1000) }
		BEGIN { exit !(ms(shown) <= 1.1 * ms(back) && ms(shown) >= 0.1 * ms(back)) }'
}

# record_long_call [ARGS]: a call of four seconds, with copies of the stack, in rings of 4 MB that hold half
# a second of them at 1 kHz.
record_long_call() {
	rm -f ask
	mkfifo ask
	"$O/programs/causes" ask long <ask >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	exec 8>ask
	eventually 10 grep -q '^ready' out
	# Each loss of its CPU copies a stack as well.
	come_first
	attach -source sample -pid "$target" -unwind dwarf -max-memory $((8 * $(nproc)))M \
		-symbol one_iter -duration-thresh 3s -o long.fxt "$@"
	eventually 20 grep -q '^waiting for a call' "$attach_log"
	echo long >&8
	exec 8>&-
	attach_ends 60
	[ "$status" -eq 0 ]
}

# The stacks that are kept cover the call, with its callers.
covers_long_call() {
	[[ $output != *"warning: the rings look back"* ]] || return
	"$O/mtbpf" decode long.mtbpf -print calls | awk -v tid="$target" '
		$1 != tid { next }
		{ name[$2] = $5 }
		$5 == "one_iter" { took = $4 - $3; by = name[0] " " name[$2 - 1] }
		$5 == "work_us" && name[$2 - 1] == "one_iter" { seen += $4 - $3 }
		END { print took, seen, by
			exit !(took > 3e9 && seen > 0.95 * took && by == "_start main") }'
}

# bats test_tags=slow
@test "a threshold of seconds, with copies of the stack: fewer of them, and the call is there from its begin" {
	local try
	# Others on its CPU make it switch, which fills the rings as well.
	for try in 1 2 3; do
		record_long_call
		[[ $output =~ sample:\ ([0-9]+)\ stacks\ per\ second\ instead\ of\ [0-9]+,\ so\ that\ the\ rings\ look\ back\ twice ]]
		[ "${BASH_REMATCH[1]}" -le 85 ]
		! covers_long_call || break
	done
	covers_long_call
	# Who insists on a rate is told what would do, before the hit.
	record_long_call -sample-rate 1000
	[[ $output == *"warning: the rings look back"*"hint: use -sample-rate "*", or -snapshot-size "*"waiting for a call"* ]]
}

@test "five snapshots in a row, armed again after each" {
	start causes read
	sample -duration-thresh 1us -multi-snapshot 5
	[ "$status" -eq 0 ]
	[ "$(grep -c '^call [0-9]* of one_iter' <<<"$output")" -eq 5 ]
	[ "$("$O/mtbpf" decode slow.mtbpf -print calls | awk -v tid="$target" '$1 == tid && $5 == "[gap]"' | wc -l)" -ge 4 ]
}

# opened N: the rings' events that N snapshots have opened. Those of uprobes are not among them: the code of the
# kernel's page for them is read for each snapshot.
opened() {
	strace -f -o calls -e trace=perf_event_open -- "$O/mtbpf" attach -source sample -unwind fp -pid "$target" \
		-symbol one_iter -duration-thresh 1us -multi-snapshot "$1" -timeout 30s -o many.fxt >many.log 2>&1 3>&-
	[ "$(grep -c 'hit of one_iter\|call [0-9]* of one_iter' many.log)" -eq "$1" ]
	grep -c 'perf_event_open({type=PERF_TYPE_SOFTWARE' calls
}

@test "a snapshot opens no event of its own: the rings of the first one go on" {
	command -v strace >/dev/null || skip "strace is missing"
	start causes read
	[ "$(opened 1)" -gt 0 ]
	[ "$(opened 1)" -eq "$(opened 4)" ]
	# What an earlier one has is not in the next.
	"$O/mtbpf" decode many.mtbpf -print calls | awk -v tid="$target" '
		$1 == tid && $2 == 0 { if ($3 < last) { print; exit 1 } last = $4 }'
}

@test "Ctrl-C before a trigger: the snapshot is of now, status 0" {
	start causes branch
	attach -source sample -pid "$target" -symbol one_iter -delay-thresh 100s -o now.fxt
	comes_on
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 0 ]
	says interrupted
	[ "$(iterations now.mtbpf)" -ge 1 ]
	kill -0 "$target"
}

@test "the target ends, or crashes, before a trigger: its last moments" {
	local signal
	for signal in TERM SEGV; do
		start causes branch
		attach -source sample -pid "$target" -symbol one_iter -delay-thresh 100s -o end.fxt
		comes_on
		kill -$signal "$target"
		attach_ends 20
		[ "$status" -eq 0 ]
		says target-exited-snapshot
		[ "$(iterations end.mtbpf)" -ge 2 ]
	done
}

@test "a target that executes another program is recorded in both" {
	cat >two.sh <<-EOF
		echo "pid \$\$"
		while [ ! -e go ]; do i=0; while [ \$i -lt 1000 ]; do i=\$((i + 1)); done; done
		exec "$O/programs/service" -scale native
	EOF
	bash two.sh >two.log 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' two.log
	attach -source sample -pid "$target" -o two.fxt
	comes_on
	touch go
	eventually 20 eval '[ "$(grep -c "^pid " two.log)" -eq 2 ]'
	comes_on
	kill -INT "$attached"
	attach_ends 20
	[ "$status" -eq 0 ]
	"$O/mtbpf" decode two.mtbpf -print calls >calls
	grep -q ' one_iter$' calls
	[ "$(awk '$5 == "one_iter" { print NR; exit }' calls)" -gt 1 ]
}

@test "two mtbpf on one target: each has its trigger, and its stacks" {
	start causes branch
	attach -source sample -pid "$target" -symbol one_iter -duration-thresh 20ms -o first.fxt
	sample -duration-thresh 20ms
	[ "$status" -eq 0 ]
	[[ $output == *"iteration of one_iter took "* ]]
	attach_ends 20
	[ "$status" -eq 0 ]
	[[ $output == *"iteration of one_iter took "* ]]
	[ "$(iterations first.mtbpf)" -ge 1 ]
	kill -0 "$target"
}
