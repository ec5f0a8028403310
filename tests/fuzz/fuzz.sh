#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs every fuzzer for T (60) seconds, JOBS (2) at a time, from seeds, the texts in tests/golden/NAME,
# and the regressions in tests/fuzz/corpus-NAME; what they learn is kept in $O/corpus-NAME. With T=0
# all of that is only run through once. A line for each says how often it ran. A finding is printed,
# stays in $O/findings, and fails. FUZZERS="elf fxt" names some.
set -u
source "$(dirname "$0")/corpora.bash"
O=$(realpath -m "${O:?}")
T=${T:-60}
export ASAN_OPTIONS=${ASAN_OPTIONS-}:allocator_may_return_null=1

# Whole files are larger than what is in them.
max_len() {
	case $1 in
	elf) echo 65536 ;;
	sections | unwind) echo 16384 ;;
	perf_data) echo 16384 ;;
	*) echo 4096 ;;
	esac
}

# run_one NAME: says in one line how it went; 1 where something was found.
run_one() {
	local name=$1 dirs limit=(-max_total_time="$T") runs status
	[ "$T" != 0 ] || limit=(-runs=0)
	mkdir -p "$O/corpus-$name"
	mapfile -t dirs < <(echo "$O/corpus-$name"; corpora "$name")
	"$O/tests/fuzz/fuzz_$name" "${limit[@]}" -timeout=10 -max_len="$(max_len "$name")" -rss_limit_mb=4096 \
		-artifact_prefix="$O/findings/$name-" -print_final_stats=1 "${dirs[@]}" >"$O/$name.log" 2>&1 </dev/null
	status=$?
	runs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$O/$name.log")
	if [ "$status" = 0 ]; then
		echo "fuzz_$name: ${runs:-0} runs, 0 findings"
		return 0
	fi
	echo "fuzz_$name: ${runs:-?} runs, 1 finding:"
	grep -Ev '^(#[0-9]|INFO: |\t+NEW_)' "$O/$name.log" | tail -60
	return 1
}

mkdir -p "$O/findings"
make_seeds || exit 1
failed=0 running=0 total=0
for name in $(fuzzers); do
	if [ "$running" -ge "${JOBS:-2}" ]; then
		wait -n || failed=$((failed + 1))
		running=$((running - 1))
	fi
	run_one "$name" &
	running=$((running + 1)) total=$((total + 1))
done
for ((; running; running--)); do
	wait -n || failed=$((failed + 1))
done
echo "$total fuzzers, $failed with a finding"
[ "$total" -gt 0 ] && [ "$failed" -eq 0 ]
