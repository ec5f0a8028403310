# SPDX-License-Identifier: MIT
# What the judges share: recordings of the sample programs, made once, and how they are read.
# $recordings is a folder: NAME.mtbpf, NAME.fxt, NAME.truth (the stepper's log of calls and returns),
# NAME.tasks (the threads at the end, "tid name"), NAME.log.

# shellcheck source=tests/messages.bash
source "${BASH_SOURCE[0]%/*}/../messages.bash"

cd_root() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	O=$(realpath -m "${O:-build}")
	mtbpf=$O/mtbpf
	recordings=$BATS_FILE_TMPDIR
}

# start_program PROGRAM: at the small scale; sets $pid once it has set itself up.
start_program() {
	local out=$recordings/out i
	rm -f "$out"
	"$O/programs/$1" -scale small >"$out" 2>&1 3>&- &
	pid=$!
	echo "$pid" >"$recordings/running"
	for ((i = 0; i < 500; i++)); do
		[ ! -s "$out" ] || return 0
		sleep 0.02
	done
	echo "$1 does not start"
	return 1
}

# For teardown_file too, where a recording has failed.
stop_program() {
	[ -e "$recordings/running" ] || return 0
	kill "$(cat "$recordings/running")" 2>/dev/null || true
	rm "$recordings/running"
}

# steps_of LOG: the instructions stepped by an mtbpf with -v.
steps_of() {
	sed -n 's/.*soft: \([0-9]*\) instructions stepped.*/\1/p' "$1"
}

# A step takes 2 to 1000 us, by the machine and what else it does: thresholds are counted in steps. Where the machine
# stands still meanwhile there are few of them, or none: measured again.
measure_steps() {
	local try
	for ((try = 0; try < 20; try++)); do
		start_program service || return
		timeout 120 "$mtbpf" record -v -source soft -pid "$pid" -timeout 500ms \
			-o "$recordings/measure.mtbpf" >"$recordings/measure.log" 2>&1 3>&- || true
		stop_program
		steps_in_500ms=$(steps_of "$recordings/measure.log")
		[ "${steps_in_500ms:-0}" -lt 100 ] || return 0
	done
	cat "$recordings/measure.log"
	return 1
}

# attach NAME THRESHOLD TIMEOUT [OPTION...]: to $pid, in the background; sets $attached.
attach() {
	local name=$1 threshold=$2 limit=$3
	shift 3
	"$mtbpf" attach -source soft -pid "$pid" -symbol one_iter \
		-delay-thresh "$threshold" -timeout "$limit" \
		-truth "$recordings/$name.truth" -o "$recordings/$name.fxt" "$@" \
		>"$recordings/$name.log" 2>&1 3>&- &
	attached=$!
}

list_tasks() {
	local task
	for task in "/proc/$pid/task"/*; do
		echo "${task##*/} $(cat "$task/comm")"
	done
}

# record NAME PROGRAM STEPS [OPTION...]: until two iterations lie this many steps apart. Once more where the machine
# has become so much faster that none do: as fast as it was meanwhile, and at the least twice as fast. Measured while
# others had the CPUs, a threshold may be ten times too long.
record() {
	local name=$1 program=$2 steps=$3 try status steps_in_try
	shift 3
	for try in 1 2 3 4 5 6; do
		start_program "$program" || return
		status=0
		attach "$name" "$((steps * 500 / steps_in_500ms + 1))ms" "$((30 * try))s" -v "$@"
		wait "$attached" || status=$?
		list_tasks >"$recordings/$name.tasks"
		stop_program
		[ $status -eq 3 ] || break
		steps_in_try=$(steps_of "$recordings/$name.log")
		steps_in_500ms=$((steps_in_500ms * 2))
		[ "$steps_in_500ms" -ge $((steps_in_try / (60 * try))) ] || steps_in_500ms=$((steps_in_try / (60 * try)))
	done
	[ $status -eq 0 ] || cat "$recordings/$name.log"
	return $status
}

# record_until NAME PROGRAM EVENTS [OPTION...]: until so many calls and returns were seen, however long
# that takes. There is no hit.
record_until() {
	local name=$1 program=$2 events=$3
	shift 3
	start_program "$program" || return
	attach "$name" 1000s 600s "$@"
	while [ "$(cat "$recordings/$name.truth" 2>/dev/null | wc -l)" -lt "$events" ]; do
		kill -0 "$attached" 2>/dev/null || break
		sleep 0.1
	done
	kill "$attached" 2>/dev/null || true
	wait "$attached" || true
	list_tasks >"$recordings/$name.tasks"
	stop_program
	[ -e "$recordings/$name.fxt" ] || cat "$recordings/$name.log"
}

# Sorts lines that begin with a tid by it, and leaves each thread's in their order.
by_thread() {
	sort -s -n -k 1,1
}

# our_branches RECORDING: "tid kind from to time", a thread behind another
our_branches() {
	"$mtbpf" decode "$1" -print branches | awk '{ print $1, $3, $4, $5, $2 }' | by_thread
}

# Why perf cannot be asked, or nothing.
why_no_perf() {
	if ! command -v perf >/dev/null; then
		echo "perf is missing"
	elif ! perf version --build-options 2>/dev/null | grep -q ' on .*HAVE_AUXTRACE_SUPPORT'; then
		echo "this perf cannot decode Intel PT"
	fi
}

# perf_branches RECORDING FILE [FIELD]: what perf decodes, to FILE, in our words as above (time: where
# FIELD is "time"); its complaints and its error events, to FILE.err.
perf_branches() {
	perf script -i "$1" --itrace=be --ns -F "tid,${3:+$3,}flags,ip,addr" >"$2.text" 2>"$2.err" 3>&-
	grep 'instruction trace error' "$2.text" >>"$2.err" || true
	awk '{
		at = 2
		time = ""
		if ($2 ~ /^[0-9]+\.[0-9]+:$/) {
			time = $2
			gsub(/[.:]/, "", time) # with 9 decimals: ns
			at = 3
		}
		kind = $at
		if (kind == "tr") {
			at++
			kind = "begin"
			if ($at == "end")
				kind = "end-" $(++at)
		}
		for (to = at + 1; to <= NF && $to != "=>"; to++)
			;
		if (to < NF)
			print $1, kind, $(at + 1), $(to + 1), time
	}' "$2.text" | by_thread >"$2"
}

# Why Perfetto cannot be asked, or nothing.
why_no_perfetto() {
	local said
	if ! command -v node >/dev/null; then
		echo "node is missing"
	elif ! said=$(tests/perfetto/get-tp.sh "$O/trace-processor" 2>&1); then
		echo "cannot fetch Perfetto's trace processor: ${said##*$'\n'}"
	fi
}

# check ARGUMENT...: tests/perfetto/check.js
check() {
	MTBPF_TRACE_PROCESSOR=$O/trace-processor node tests/perfetto/check.js "$@" 3>&-
}

# section NAME FILE: of what several queries printed, each behind a row "= NAME"
section() {
	awk -v name="= $1" '/^= / { inside = $0 == name; next } inside' "$2"
}

# same FILE FILE: prints where they differ; two empty ones are not the same.
same() {
	diff "$1" "$2" | head -20
	[ -s "$1" ] && cmp -s "$1" "$2"
}
