# SPDX-License-Identifier: MIT
# -start and -stop: a thread is recorded from the one to the other, and nothing else is.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# Of small regions, which are stepped: some hundred instructions each.
request=(-source soft -start receive_request -stop parse_request)
# And one that is sampled: it takes milliseconds of the CPU.
rehash=(-source sample -sample-rate 10000 -start table_rehash -stop format_reply)

# text NAME: the trace as text.
text() {
	"$O/mtbpf" decode "$1.mtbpf" -format text >"$1.text" 2>decode.log
}

# has_requests NAME N: at least so many regions, each of which has what a request does once.
has_requests() {
	text "$1"
	awk -v least="$2" '
		$5 == "receive_request" { n++ }
		/ \[gap: outside -start and -stop\]$/ { if (n != 1) bad++; n = 0; regions++ }
		END { print regions + 1, "regions"; exit bad > 0 || n != 1 || regions + 1 < least }' "$1.text"
	! grep -E ' (table_find|format_reply)$' "$1.text" || false
}

# It works on, through the start and the stop.
runs_on() {
	[ "$(awk '/^TracerPid:/ { print $2 }' "/proc/$target/status")" -eq 0 ]
	mtbpf_run watch -pid "$target" -symbol format_reply -max-hits 200
	[[ $output == *"200 hits"* ]]
}

@test "soft: only requests are stepped, and the stop triggers" {
	start service -scale small
	mtbpf_run attach -v -pid "$target" "${request[@]}" -duration-thresh 1us -skip 5 -o x.fxt
	[ "$status" -eq 0 ]
	says region-recorded receive_request parse_request
	[[ $output =~ hit\ [0-9]+\ of\ parse_request,\ thread\ $target:\ [0-9.]+\ [mu]?s\ after\ -start ]]
	[[ $output == *"region from -start to parse_request took "*"(mean of "*" in the same lookback"* ]]
	[[ $output =~ ([0-9]+)\ instructions\ stepped ]]
	steps=${BASH_REMATCH[1]}
	has_requests x 6
	# A request is twice as many without a rehash, and a hundred times with one.
	[ "$steps" -lt $((300 * $(grep -c ' receive_request$' x.text))) ]
	runs_on
}

@test "soft: another trigger fires as ever; the trace and the report are the same when decoded later" {
	start service -scale small
	mtbpf_run attach -pid "$target" "${request[@]}" -symbol one_iter -delay-thresh 1us -skip 5 -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ [0-9]+\ of\ one_iter,\ thread\ $target: ]]
	says partly-outside
	has_requests x 5
	"$O/mtbpf" decode x.mtbpf -o again.fxt
	cmp x.fxt again.fxt
}

@test "soft: a program from its start on" {
	mtbpf_run run "${request[@]}" -skip 3 -o x.fxt -- "$O/programs/service" -scale small -n 40
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ 4\ of\ parse_request ]]
	has_requests x 4
	[ "$(grep -c ' receive_request$' x.text)" -eq 4 ]
}

@test "soft: mtbpf killed, or interrupted, in front of a start: the target runs on" {
	start service -scale small
	for signal in KILL INT; do
		attach -pid "$target" "${request[@]}" -symbol one_iter -delay-thresh 100s -o x.fxt
		sleep 0.3
		kill -$signal "$attached"
		attach_ends 5
		eventually 5 grep -q '^TracerPid:[[:space:]]*0$' "/proc/$target/status"
		runs_on
	done
	has_requests x 1
}

@test "soft: in a thread that is in neither nothing is recorded, which is said" {
	start service -scale small
	mtbpf_run attach -pid "$target" -source soft -start main -stop format_reply -symbol one_iter -o x.fxt
	[ "$status" -eq 1 ]
	complains no-region-recorded hint check-regions ", or use -duration-thresh"
	mtbpf_run attach -pid "$target" -source soft -start main -stop format_reply -symbol one_iter -duration-thresh 1ns \
		-o x.fxt
	[ "$status" -eq 1 ]
	complains no-region-recorded hint check-regions
	[[ $output != *"or use -duration-thresh"* ]]
	runs_on
}

# not_between NAME: nothing of what the service does outside of its regions. It sleeps once per iteration; within a
# region it may wait for its mmap lock, which others hold who read its mappings, once or twice.
not_between() {
	! grep -E ' (clock_nanosleep|parse_request)$' "$1.text" || false
	[ "$(grep -c ' \[blocked\]$' "$1.text")" -le 2 ]
}

@test "sample: stacks from between the two only, compared region by region" {
	start service -pause 300us -slow-every 20
	mtbpf_run attach -pid "$target" "${rehash[@]}" -duration-thresh 100us -skip 3 -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ [0-9]+\ of\ format_reply,\ thread\ $target:\ [0-9.]+\ [mu]?s\ after\ -start ]]
	[[ $output =~ region\ from\ -start\ to\ format_reply\ took\ .*\(mean\ of\ ([0-9]+)\ in\ the\ same\ lookback\) ]]
	# But for the first one, of which nobody knows whether it is whole.
	[ "${BASH_REMATCH[1]}" -ge 2 ]
	text x
	[ "$(grep -c ' \[gap: outside -start and -stop\]$' x.text)" -ge 3 ]
	[ "$(grep -c ' rehash_entry$' x.text)" -ge 4 ]
	not_between x
	"$O/mtbpf" decode x.mtbpf -o again.fxt
	cmp x.fxt again.fxt
	# Without them the rest of the service is there as well.
	mtbpf_run attach -pid "$target" -source sample -sample-rate 10000 -symbol one_iter -delay-thresh 1us \
		-skip 60 -o y.fxt
	[ "$status" -eq 0 ]
	text y
	grep -q ' clock_nanosleep$' y.text
}

@test "sample: another trigger, and several snapshots of regions" {
	start service -pause 300us -slow-every 20
	mtbpf_run attach -pid "$target" "${rehash[@]}" -symbol one_iter -delay-thresh 1us -skip 100 -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ [0-9]+\ of\ one_iter ]]
	text x
	grep -q ' rehash_entry$' x.text
	not_between x
	mtbpf_run attach -pid "$target" "${rehash[@]}" -multi-snapshot 3 -o y.fxt
	[ "$status" -eq 0 ]
	[ "$(grep -c '^hit .* of format_reply' <<<"$output")" -eq 3 ]
	text y
	not_between y
}

@test "watch: how long it takes from the one to the other, of one process and of several" {
	start service -pause 300us -slow-every 20
	first=$target
	LIMIT=60 mtbpf_run watch -pid "$target" -start table_rehash -stop format_reply -max-hits 1
	[ "$status" -eq 0 ]
	[[ $output == *$'\n'"1 hits"* ]]
	# The first has a begin, and so a duration; a delay needs two.
	[[ $output == *" duration : count"* ]]
	awk '/^ .* - / { n += $7 } END { exit n != 1 }' <<<"$output"
	start service -scale small -pause 300us
	mtbpf_run watch -pid "$first,$target" -start receive_request -stop format_reply -max-hits 5
	[ "$status" -eq 0 ]
	[[ $output == *$'\n'"5 hits"* ]]
	mtbpf_run watch -pid "$target" -start receive_request -stop format_reply -symbol one_iter
	[ "$status" -eq 2 ]
	complains watch-regions-exclude -symbol hint use-start-stop
	mtbpf_run watch -pid "$target" -start receive_request
	[ "$status" -eq 2 ]
	complains option-needs-option "*" start stop
}

@test "what cannot be asked for: a line, a hint, status 2" {
	start service -scale small
	for one in -start -stop; do
		mtbpf_run attach -pid "$target" $one handle_request -o x.fxt
		[ "$status" -eq 2 ]
		complains option-needs-option "*" "*" "st*" hint give-start-and-stop
	done
	mtbpf_run attach -pid "$target" -start one_iter -stop one_iter -source sample -o x.fxt
	[ "$status" -eq 2 ]
	complains same-place hint choose-later-stop
	mtbpf_run attach -pid "$target" -start one_iter -stop nowhere -source sample -o x.fxt
	[ "$status" -eq 2 ]
	complains no-function nowhere
	mtbpf_run attach -pid "$target" -start one_iter -stop main -freeze refresh -o x.fxt
	[ "$status" -eq 2 ]
	complains freeze-cannot-resume "*" refresh hint use-freeze-pause
	[ ! -e x.mtbpf ]
}

@test "regions of goroutines: that they belong to threads is said" {
	[ -x "$O/programs/go_waits" ] || skip "go is not installed"
	start go_waits stop
	mtbpf_run watch -pid "$target" -start runtime.gopark -stop runtime.ready -timeout 300ms
	says regions-of-goroutines
	mtbpf_run watch -pid "$target" -requests -timeout 300ms
	says regions-of-goroutines
	mtbpf_run watch -pid "$target" -start syscall:read -stop syscall:write -key goroutine -timeout 300ms
	[ "$status" -eq 0 ]
	[[ $output != *"matched within a thread"* ]]
	kill "$target"
	start service
	mtbpf_run watch -pid "$target" -requests -timeout 300ms
	[[ $output != *"matched within a thread"* ]]
	mtbpf_run watch -pid "$target" -requests -key goroutine -timeout 300ms
	[ "$status" -eq 2 ]
	complains not-a-go-program hint leave-out-key
	mtbpf_run watch -pid "$target" -start one_iter -stop exit -key goroutine,arg1 -timeout 300ms
	[ "$status" -eq 2 ]
	complains "-key: unexpected text"
}

# A program with a USDT probe in 70 places, the last of which ends each region. MAPPED=N maps its code N times more.
write_many() {
	{
		echo '#define _GNU_SOURCE'
		printf '#include <%s>\n' fcntl.h stdio.h stdlib.h sys/mman.h unistd.h
		echo '#include "usdt_note.h"'
		echo '__attribute__((noipa)) void stop_at(int n) { switch (n) {'
		for i in {1..70}; do
			echo "case $i: USDT_PROBE(many, stop, 0, \"\"); break;"
		done
		cat <<-'END'
			} }
			__attribute__((noipa)) void begin_here(void) { __asm__ volatile("push %rax; pop %rax"); }
			__attribute__((noipa)) void in_between(void) { __asm__ volatile("nop"); }
			__attribute__((noipa)) void outside(void) { __asm__ volatile("nop"); }
			int main(void)
			{
				int fd = open("/proc/self/exe", O_RDONLY), n = atoi(getenv("MAPPED") ?: "0");
				for (int i = 0; i < n; i++)
					mmap(NULL, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
				printf("pid %d\n", getpid()), fflush(stdout);
				for (;; usleep(1000))
					begin_here(), in_between(), stop_at(70), outside();
			}
		END
	} >many.c
	"${CC:-gcc}" -O1 -I "$BATS_TEST_DIRNAME/../programs" -o many many.c
}

@test "soft: each of 70 places of -stop ends a region" {
	write_many
	start_file ./many
	mtbpf_run attach -pid "$target" -source soft -start begin_here -stop usdt:many:stop -duration-thresh 1ns -skip 5 -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ [0-9]+\ of\ usdt:many:stop ]]
	text x
	[ "$(grep -c ' in_between$' x.text)" -ge 5 ]
	! grep -q ' outside$' x.text || false
}

@test "soft: a start that is mapped more often than a CPU has breakpoints is refused, and the target runs on" {
	write_many
	MAPPED=4 start_file ./many
	mtbpf_run attach -pid "$target" -source soft -start begin_here -stop usdt:many:stop -timeout 3s -o x.fxt
	[ "$status" -eq 2 ]
	complains soft-too-many-starts 4 hint name-one-start
	[ "$(awk '/^TracerPid:/ { print $2 }' "/proc/$target/status")" -eq 0 ]
	kill -0 "$target"
}
