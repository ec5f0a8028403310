# SPDX-License-Identifier: MIT
# Commands and options: what is wrong is named, with what was probably meant; nothing is touched.

load ../helpers

all="attach run record decode report diff view watch list check"

setup() {
	[ -x "${O:?}/mtbpf" ] || skip "mtbpf is not built"
	cd "$BATS_TEST_TMPDIR"
}

@test "without a command: the commands on stderr, status 2" {
	"$O/mtbpf" >out 2>err && status=0 || status=$?
	[ "$status" -eq 2 ]
	[ ! -s out ]
	for name in $all help version; do
		grep -Eq "^  $name  +[a-z]" err
	done
}

@test "without a command: it fits on the smallest screen" {
	"$O/mtbpf" >out 2>&1 || true
	[ "$(wc -l <out)" -lt 24 ]
	! grep -E '^.{80}' out || false
}

@test "help is the same on stdout, status 0, however it is asked for" {
	"$O/mtbpf" >expected 2>&1 || true
	for word in help -help --help -h; do
		"$O/mtbpf" $word >out 2>err
		cmp expected out
		[ ! -s err ]
	done
}

@test "an unknown command: the nearest one, status 2" {
	mtbpf_run atach
	[ "$status" -eq 2 ]
	complains unknown-command atach hint meant-command attach
	mtbpf_run help recrod
	[ "$status" -eq 2 ]
	complains unknown-command recrod hint meant-command record
	mtbpf_run xyzzy
	[ "$status" -eq 2 ]
	complains unknown-command xyzzy hint commands-listed
	! says meant-command || false
}

@test "each command's help begins with an example, and names every option on one line" {
	for name in $all; do
		mtbpf_run $name -help
		[ "$status" -eq 0 ]
		[[ ${lines[0]} =~ ^"  "(sudo )?"mtbpf $name" ]]
		[[ $output == *"usage: mtbpf $name"* ]]
		[[ $output == *"  -help, -h"* ]]
		[ "$output" = "$("$O/mtbpf" help $name)" ]
	done
}

# Each is parsed to its end, and then refused for want of a process 1234, or of Intel PT.
@test "on a terminal help's lines end between words, within its columns" {
	command -v script >/dev/null || skip "script(1) is missing"
	"$O/mtbpf" attach -help >whole
	for columns in 57 58 59 60 61 62; do
		script -qec "stty cols $columns; '$O/mtbpf' attach -help" typescript </dev/null >/dev/null 2>&1
		tr -d '\r' <typescript | sed '/^Script /d' >shown
		# Examples are to be copied: they stay whole.
		sed '1,/^usage:/{/^usage:/!d}' shown >wrapped
		[ -z "$(grep -E "^.{$((columns + 1))}" wrapped)" ]
		[ "$(tr -s ' \n' '\n\n' <shown)" = "$(tr -s ' \n' '\n\n' <whole)" ]
	done
}

@test "what a summary has of lines of its own is kept where there is room, and filled where there is none" {
	cd "$BATS_TEST_TMPDIR"
	"$O/mtbpf" view -help | sed -n '/^Serves/,/^$/p' >whole
	[ "$(wc -l <whole)" -gt 2 ]
	for columns in 100 50; do
		script -qec "stty cols $columns; '$O/mtbpf' view -help" typescript </dev/null >/dev/null 2>&1
		sed '1d; $d; s/\r//' typescript | sed -n '/^Serves/,/^$/p' >at_$columns
	done
	cmp whole at_100
	# No line ends where the next one's first word would still have had room.
	awk 'NR > 1 && $1 != "" && length(last) + 1 + length($1) <= 50 { exit 1 } { last = $0 }' at_50
	[ "$(tr '\n' ' ' <at_50)" = "$(tr '\n' ' ' <whole)" ]
}

@test "the examples in the help are no usage errors" {
	[ ! -e /proc/1234 ] || skip "there is a process 1234 here"
	for name in attach record watch list; do
		while read -r line; do
			eval "mtbpf_run ${line#mtbpf }"
			[ "$status" -eq 0 ] || says no-pid 1234 || says no-intel-pt || says no-cgroup || says no-process-named ||
				says container-not-running-here
		done < <("$O/mtbpf" $name -help | sed '/^$/,$d' | grep "mtbpf $name " | grep -v -- -dir)
	done
}

@test "an unknown option: the nearest one, status 2" {
	mtbpf_run attach -pid 1 -symbl main
	[ "$status" -eq 2 ]
	complains unknown-option attach -symbl hint meant-option symbol
	mtbpf_run decode -uotput x
	[ "$status" -eq 2 ]
	complains unknown-option decode -uotput hint meant-option output
	mtbpf_run check -zzz
	[ "$status" -eq 2 ]
	complains unknown-option "*" -zzz hint options-listed check
}

@test "a prefix of two options names both" {
	mtbpf_run attach -d 10ms
	[ "$status" -eq 2 ]
	complains ambiguous-option "*" -d hint possible-options "-delay-thresh, -duration-thresh"
}

@test "an option without its argument says what it takes" {
	for args in "attach -pid" "attach -symbol -pid 1" "watch -pid 1 -timeout"; do
		mtbpf_run $args
		[ "$status" -eq 2 ]
		complains option-needs-argument
	done
}

@test "a duration without a unit is refused: 10 of what?" {
	for value in 10 10parsec ms -ms 1e3s ""; do
		mtbpf_run attach -pid 1 -symbol main -delay-thresh "$value"
		[ "$status" -eq 2 ]
		complains bad-value "*" delay-thresh "$value" @not-a-duration hint threshold-units
	done
	mtbpf_run watch -pid 1 -symbol main -timeout 5
	[ "$status" -eq 2 ]
	complains bad-value "*" timeout 5 @not-a-duration
	mtbpf_run attach -pid 1 -duration-thresh 1000000000000s
	[ "$status" -eq 2 ]
	complains bad-value "*" "*" "*" @too-large hint threshold-maximum
	mtbpf_run attach -pid 1 -symbol main -delay-thresh p100
	[ "$status" -eq 2 ]
	complains bad-value "*" delay-thresh p100 @too-large hint threshold-maximum
	mtbpf_run attach -pid 1 -symbol main -duration-thresh p9x
	[ "$status" -eq 2 ]
	complains bad-value "*" duration-thresh p9x @not-a-duration hint threshold-units
}

@test "a bad size, number or choice says what would be good" {
	for value in "skip -1" "snapshot-size -4K" "delay-thresh -1ms" "multi-snapshot=-1"; do
		mtbpf_run attach -pid 1 -symbol main -$value
		[ "$status" -eq 2 ]
		complains bad-value "*" "*" "-*" @negative
	done
	mtbpf_run attach -pid 1 -snapshot-size 4X
	[ "$status" -eq 2 ]
	complains bad-value "*" snapshot-size 4X @not-a-size hint size-units
	mtbpf_run attach -pid 1 -stack-copy 61K
	[ "$status" -eq 2 ]
	complains stack-copy-limit "*" 60 hint stack-copy-maximum
	mtbpf_run attach -pid self
	[ "$status" -eq 2 ]
	complains not-a-pid "*" self
	mtbpf_run attach -pid -5
	[ "$status" -eq 2 ]
	complains not-a-pid "*" -5
	mtbpf_run attach -pid 1 -source sofd
	[ "$status" -eq 2 ]
	complains bad-value "*" source sofd hint choices source "auto, pt, sample, soft"
	mtbpf_run decode x.mtbpf -print everything
	[ "$status" -eq 2 ]
	complains bad-value "*" print everything hint choices print "calls, branches"
}

@test "decode: a format and a name that do not go together are refused" {
	mtbpf_run decode x.mtbpf -format yaml
	[ "$status" -eq 2 ]
	complains bad-value "*" format yaml hint choices format "fxt, text"
	mtbpf_run decode x.mtbpf -format text -o x.fxt
	[ "$status" -eq 2 ]
	complains not-a-text-name x.fxt hint text-suffixes
	mtbpf_run decode x.mtbpf -format fxt -o x.txt
	[ "$status" -eq 2 ]
	complains not-an-output-name x.txt hint output-suffixes
	for args in "-o -" "-format fxt -o -"; do
		mtbpf_run decode x.mtbpf $args
		[ "$status" -eq 2 ]
		complains no-trace-on-stdout hint use-name-or-text
	done
}

@test "decode and report: a filter that is none is refused before the recording is read" {
	for name in decode report; do
		mtbpf_run $name x.mtbpf -filter 5ms
		[ "$status" -eq 2 ]
		complains bad-filter 5ms @range-missing hint give-range
		mtbpf_run $name x.mtbpf -filter parse..3ms
		[ "$status" -eq 2 ]
		complains bad-filter "*" @mixed-ends
	done
	mtbpf_run decode x.mtbpf -portable -filter -5ms..
	[ "$status" -eq 2 ]
	complains portable-and-filter
	echo "x 1 [000] 1.000000000: branches: call 401000 a+0x0 (x) => 401010 b+0x0 (x)" >"$BATS_TEST_TMPDIR/x.script"
	mtbpf_run decode "$BATS_TEST_TMPDIR/x.script" -o "$BATS_TEST_TMPDIR/x.fxt" -filter -5ms..
	complains filter-of-text hint use-perf-time
	mtbpf_run report x.fxt.gz -filter -5ms..
	complains cannot-open x.fxt.gz
}

@test "-trace-kernel-only and -trace-power are Intel PT's, and -full-execution that of what follows every call" {
	for source in sample soft; do
		mtbpf_run record -pid $$ -trace-kernel-only -source $source
		[ "$status" -eq 2 ]
		complains kernel-only-needs-pt "*" "$source" hint use-kernel-stacks
	done
	mtbpf_run attach -pid $$ -trace-power -source sample
	[ "$status" -eq 2 ]
	complains power-needs-pt "*" sample hint leave-out-trace-power
	mtbpf_run run -full-execution -source sample -- /bin/true
	[ "$status" -eq 2 ]
	complains full-execution-of-samples hint every-call-sources
	for args in "-symbol main" "-delay-thresh 1ms -symbol main" "-multi-snapshot 2" "-skip 1"; do
		mtbpf_run run -full-execution $args -- /bin/true
		[ "$status" -eq 2 ]
		complains full-execution-and-trigger hint leave-out-trigger
	done
}

@test "-no-inline is of what is decoded" {
	for name in attach run decode; do
		mtbpf_run $name -help
		[[ $output == *-no-inline* ]]
	done
	mtbpf_run record -pid 1 -no-inline
	[ "$status" -eq 2 ]
	complains unknown-option record -no-inline hint options-listed
}

@test "both thresholds, or one without a function, are refused with the difference" {
	for name in attach record; do
		mtbpf_run $name -pid 1 -symbol main -delay-thresh 1ms -duration-thresh 1ms
		[ "$status" -eq 2 ]
		complains both-thresholds hint delay-or-duration
		mtbpf_run $name -pid $$ -delay-thresh 1ms
		[ "$status" -eq 2 ]
		complains no-own-trigger @need-a-function hint add-symbol
	done
	mtbpf_run run -duration-thresh 1ms -- true
	[ "$status" -eq 2 ]
	complains no-own-trigger @need-a-function hint add-symbol-of-program
	for limit in "-after 1s" "-min-interval 1s" "-skip 1" "-max-hits 1"; do
		mtbpf_run attach -pid $$ $limit
		[ "$status" -eq 2 ]
		complains no-own-trigger @about-a-trigger hint add-symbol
	done
}

@test "the kernel and soft stepping do not go together: nothing is touched" {
	for args in "attach -pid $$" "record -pid $$" "run"; do
		set -- $args
		name=$1
		[ "$name" != run ] || set -- run -source soft -trace-include-kernel -- touch made
		[ "$name" = run ] || set -- "$@" -source soft -trace-include-kernel
		mtbpf_run "$@"
		[ "$status" -eq 2 ]
		complains soft-and-kernel hint leave-out-kernel
	done
	[ -z "$(ls)" ]
}

@test "without -pid a command asks which process" {
	for args in attach "attach -pid 0" record "list *" list; do
		set -f; mtbpf_run $args; set +f
		[ "$status" -eq 2 ]
		complains no-process-given
	done
	for args in watch "watch -symbol main"; do
		mtbpf_run $args
		[ "$status" -eq 2 ]
		complains watch-no-process hint usage "watch *-pid PID*"
	done
	mtbpf_run run
	[ "$status" -eq 2 ]
	complains no-program-given hint usage "run *-- CMD*"
	mtbpf_run decode
	[ "$status" -eq 2 ]
	complains which-argument decode recording hint usage "decode RECORDING*"
}

@test "a word too many is named; a bare number was meant as a pid" {
	mtbpf_run attach 4711
	[ "$status" -eq 2 ]
	complains unexpected-argument attach 4711 hint meant-pid 4711
	mtbpf_run watch -pid 1 -symbol main now
	[ "$status" -eq 2 ]
	complains unexpected-argument watch now hint usage "watch*"
	mtbpf_run check it
	[ "$status" -eq 2 ]
	complains unexpected-argument check it
	mtbpf_run list -pid 1 'a*' 'b*'
	[ "$status" -eq 2 ]
	complains more-than-one-glob
	# What is no option may stand before one.
	mtbpf_run list 'a*' -piid 1
	[ "$status" -eq 2 ]
	complains unknown-option list -piid hint meant-option pid
	mtbpf_run decode a.mtbpf b.mtbpf
	[ "$status" -eq 2 ]
	complains one-at-a-time "*" recording
}

@test "-source pt without Intel PT: why, what to use instead and what that costs" {
	! has_pt || skip "there is Intel PT"
	mtbpf_run attach -pid $$ -source pt
	[ "$status" -eq 2 ]
	complains no-intel-pt hint use-other-source
	says use-other-source
	first=$output
	mtbpf_run run -source pt -- true
	[ "$status" -eq 2 ]
	[ "$output" = "$first" ]
	[ -z "$(ls)" ]
}

@test "what only Intel PT can do is not replaced by samples" {
	! has_pt || skip "there is Intel PT"
	for option in -immediate-stop "-freeze pause"; do
		mtbpf_run attach -pid $$ $option
		[ "$status" -eq 2 ]
		complains no-intel-pt
	done
	[ -z "$(ls)" ]
}

@test "-source sample: a rate and a share that make sense" {
	mtbpf_run attach -source sample -pid $$ -sample-rate 0
	[ "$status" -eq 2 ]
	complains sample-rate-too-low hint samples-per-second
	for share in 1 0% -1% 101% much; do
		mtbpf_run attach -source sample -pid $$ -max-overhead=$share
		[ "$status" -eq 2 ]
		complains not-a-percentage hint percentage-range
	done
	[ -z "$(ls)" ]
}
