#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What record -dir does with each recording once it is whole: a summary, and the user's program.

load ../helpers

setup() {
	[ -x "${O:?}/programs/causes" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	begin_log told
	start causes read
}

teardown() {
	end_started
}

# hook LINES: a program that tells what it was given, and then does LINES.
hook() {
	cat >hook <<-END
		#!/bin/sh
		echo "\$# \$(cd "\$1" && [ -s meta.json ] && [ -s summary.json ] && pwd)" >>$PWD/told
		$1
	END
	chmod +x hook
}

# has MESSAGE...: the log says so already.
has() {
	output=$(<log)
	says "$@"
}

# has_captured: record -dir has told of a recording in the log.
has_captured() {
	grep -q '^20.* d/.*\.mtbpf$' log
}

# keep_until CONDITION... -- ARGS: recordings of slow calls in d, until the condition is true; $status and $output as
# after run.
keep_until() {
	local condition=() came=0
	while [ "$1" != -- ]; do
		condition+=("$1")
		shift
	done
	shift
	begin_log log
	env --default-signal=INT "$O/mtbpf" record -source sample -pid "$target" -symbol one_iter -duration-thresh 15ms -dir d \
		-max-per-hour 0 -keep 100 "$@" </dev/null >log 2>&1 3>&- &
	recorder=$!
	started+=("$recorder")
	eventually 60 "${condition[@]}" || came=1
	kill -INT "$recorder"
	status=0
	wait "$recorder" || status=$?
	output=$(<log)
	printf '%s\n' "$output" "-> $status"
	return $came
}

@test "the program runs with each recording's path, once it is whole and has its summary; report reads these" {
	hook ''
	keep_until has_captured -- -on-capture ./hook
	[ "$status" -eq 0 ]
	ls -d "$PWD"/d/*.mtbpf | sed 's/^/1 /' >expected
	[ "$(wc -l <expected)" -ge 1 ]
	diff expected told
	chmod -w d/*.mtbpf
	"$O/mtbpf" report -json d >json
	# Whatever else is slow on this machine, the answer comes late in each.
	[ "$(jq '[.causes[] | select(.kind == "blocked" and .of == "read of pipe:[*]" and .path == ["one_iter", "read"])
		| .captures + .also_in] | add' json)" -ge 1 ]
	[ "$(jq -r '.files | map(.no_report) | unique | tostring' json)" = '[null]' ]
}

# bats test_tags=slow
@test "one that fails, hangs, or is not there: said, counted, ended; no capture waits for it" {
	for line in 'exit 3' 'sleep 60'; do
		rm -rf d
		hook "$line"
		case $line in
		exit*) message=(hook-exited ./hook "$PWD/d/*" 3) ;;
		*) message=(hook-too-slow "*" "summary and -on-capture" "500 ms") ;;
		esac
		keep_until has "${message[@]}" -- -on-capture ./hook -on-capture-timeout 500ms -metrics unix:m
		[ "$status" -eq 0 ]
		[ "$(ls d | wc -l)" -ge 1 ]
		# It is said once per recording.
		[ -z "$(grep -F -- "$PWD/d/" log | sort | uniq -d)" ]
	done
	! pgrep -f "^sleep 60$" || false
	rm -rf d
	keep_until has cannot-run ./none "No such file" -- -on-capture ./none
	[ "$status" -eq 0 ]
	says name-an-executable
	[ "$(ls d | wc -l)" -ge 1 ]
}

@test "without -dir there is nothing to run it for; -no-summary decodes nothing" {
	mtbpf_run record -pid "$target" -on-capture true -timeout 1s
	[ "$status" -eq 2 ]
	complains needs-dir hint add-dir
	keep_until has_captured -- -no-summary
	[ "$(ls d | wc -l)" -ge 1 ]
	[ -z "$(find d -name summary.json)" ]
}

@test "attach, and record without -dir, leave the summary that report would make; -no-summary leaves none" {
	start causes read
	mtbpf_run attach -q -source sample -pid "$target" -symbol one_iter -duration-thresh 15ms -o a.fxt
	[ "$status" -eq 0 ]
	mtbpf_run record -q -source sample -pid "$target" -symbol one_iter -duration-thresh 15ms -o r.mtbpf
	[ "$status" -eq 0 ]
	for name in a r; do
		cp "$name.mtbpf/summary.json" first
		"$O/mtbpf" report -q -again "$name.mtbpf" >/dev/null
		cmp first "$name.mtbpf/summary.json"
	done
	mtbpf_run record -q -source sample -no-summary -pid "$target" -symbol one_iter -duration-thresh 15ms -o n.mtbpf
	[ "$status" -eq 0 ]
	[ -s n.mtbpf/meta.json ]
	[ ! -e n.mtbpf/summary.json ]
	mtbpf_run attach -q -source sample -no-inline -pid "$target" -symbol one_iter -duration-thresh 15ms -o i.fxt
	[ "$status" -eq 0 ]
	[ ! -e i.mtbpf/summary.json ]
}

# bats test_tags=slow
@test "a recording that -on-capture works on stays beyond -keep, and the line says why" {
	hook 'sleep 4'
	rm -rf d
	keep_until has not-removed-yet -- -keep 1 -on-capture ./hook
	[ "$status" -eq 0 ]
	[[ $output != *"another process reads it"* ]]
}

# A Prometheus that scrapes http://$1 each second; sets prometheus to its address.
start_prometheus() {
	prometheus=127.0.0.1:$(python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	cat >prometheus.yml <<-END
		scrape_configs:
		- job_name: mtbpf
		  scrape_interval: 1s
		  static_configs:
		  - targets: ['$1']
	END
	prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address="$prometheus" \
		--enable-feature=exemplar-storage >prometheus.log 2>&1 3>&- &
	started+=($!)
}

# exemplars QUERY: as JSON.
exemplars() {
	curl -sG "http://$prometheus/api/v1/query_exemplars" --data-urlencode "query=$1" --data-urlencode start=0 \
		--data-urlencode "end=$(($(date +%s) + 1000))"
}

has_exemplar() {
	exemplars "$1" | grep -q '"trace_id"'
}

@test "exemplars: Prometheus has the trace ids of captures, and their causes; curl gets the classic text" {
	for tool in prometheus promtool curl; do command -v "$tool" >/dev/null || skip "$tool is missing"; done
	end_started
	cat >traced.c <<-'END'
		#include <mtbpf.h>
		#include <unistd.h>
		__attribute__((noipa)) void work(int us) { usleep(us); __asm__ volatile(""); }
		int main(void)
		{
			unsigned char id[16] = {0xab, 2, 3};
			for (int i = 0;; i++) {
				id[15] = (unsigned char)i;
				mtbpf_set_trace_id(id);
				work(i % 64 == 7 ? 90000 : 10000);
			}
		}
	END
	cc -O2 -I"$BATS_TEST_DIRNAME/../../include" -o traced traced.c
	./traced 3>&- &
	target=$!
	started+=("$target")
	"$O/mtbpf" record -source sample -pid "$target" -symbol work -duration-thresh 60ms -dir d -max-per-hour 0 \
		-metrics 127.0.0.1:0 >log 2>&1 3>&- &
	started+=($!)
	eventually 20 grep -q '^metrics: http' log
	address=$(sed -n 's,^metrics: http://\([^/]*\)/metrics$,\1,p' log)
	start_prometheus "$address"
	eventually 60 has_exemplar mtbpf_cause_seconds_total
	eventually 60 has_exemplar mtbpf_captures_total
	exemplars mtbpf_cause_seconds_total >seen.json
	cat seen.json
	[ "$(jq -r '.data[0].seriesLabels.kind' seen.json)" = blocked ]
	# The id of the slow call, and of no other; how long it was, and when.
	id=$(jq -r '.data[0].exemplars[-1].labels.trace_id' seen.json)
	[[ $id =~ ^ab0203(00){12}[0-9a-f][0-9a-f]$ ]]
	[ "$((16#${id: -2} % 64))" -eq 7 ]
	jq -e '.data[0].exemplars[-1].value | tonumber | . > 0.05 and . < 5' seen.json
	jq -e --argjson now "$(date +%s)" '.data[0].exemplars[-1].timestamp | . > $now - 600 and . <= $now + 1' seen.json
	"$O/mtbpf" report -q -json d d | jq -r '.files[].trace_id' | grep -qx "$id"
	# Whoever asks for nothing else gets what promtool takes.
	curl -s "http://$address/metrics" >text
	! grep -q 'trace_id\|EOF' text || false
	promtool check metrics <text
	/usr/bin/python3 -c 'import prometheus_client' || skip "the rest needs python3-prometheus-client"
	curl -s -H 'Accept: application/openmetrics-text' "http://$address/metrics" >open
	/usr/bin/python3 - <<-'END'
		from prometheus_client.openmetrics.parser import text_string_to_metric_families
		families = list(text_string_to_metric_families(open("open").read()))
		assert any(s.exemplar for f in families for s in f.samples)
		assert any(f.name == "mtbpf_captures" and f.type == "counter" for f in families)
	END
}

# The service's own log: which cause each of its slow iterations had.
# bats test_tags=slow
@test "five causes at known rates: the report has them in their order, as often as the service says" {
	end_started
	mkfifo asked
	"$O/programs/causes" ask lock "$PWD/none" <asked >answers 3>&- &
	target=$!
	started+=("$target")
	exec 7>asked
	eventually 10 grep -q ready answers
	# Before all others on the machine, whose turns on its CPUs would be a cause as well.
	chrt -a -f -p 10 "$target"
	mtbpf_log=$PWD/log
	"$O/mtbpf" record -source sample -pid "$target" -symbol one_iter -duration-thresh 15ms -dir d -max-per-hour 0 \
		-keep 100 -label run=soak >"$mtbpf_log" 2>&1 3>&- 7>&- &
	recorder=$!
	started+=("$recorder")
	eventually 20 grep -q '^waiting' "$mtbpf_log"
	n=0
	for cause in lock read lock tcp lock read alarm lock read tcp branch lock read lock tcp alarm lock read tcp lock read branch alarm; do
		# Between two captures the probe is away for a moment.
		eventually 10 is_probed || { cat "$mtbpf_log" && false; }
		printf 'quick\nquick\nquick\nquick\n%s\n' "$cause" >&7
		echo "$cause" >>service.log
		n=$((n + 1))
		eventually 10 enough "$n" || { cat "$mtbpf_log" && false; }
	done
	exec 7>&-
	eventually 20 gone "$recorder" || kill "$recorder"
	"$O/mtbpf" report -json -label run=soak d >json
	"$O/mtbpf" report d
	[ "$(jq .captures json)" -eq "$n" ]
	# Of each the place that is its own: what is waited for, or the code that ran. (That may be the kernel's once, where
	# a page of the clock is not there: another cause for the report.)
	jq -r '.causes[] | select(.captures > 0) | "\(.captures) " + (
		if .kind == "on_cpu" or .kind == "kernel" then "branch"
		elif (.of // "") | test("^futex held by") then "lock"
		elif (.of // "") | test("pipe") then "read"
		elif (.of // "") | test("TCP") then "tcp"
		elif .kind == "blocked" then "alarm" else .cause end)' json |
		awk '!($2 in n) { order[++names] = $2 } { n[$2] += $1 }
			END { for (i = 1; i <= names; i++) print n[order[i]], order[i] }' >found
	sort service.log | uniq -c | sort -rn | awk '{ print $1, $2 }' >expected
	cat found
	diff expected found
}

# The kernel's int3 is in place of the first byte of one_iter.
is_probed() {
	local base at
	base=$(awk '/\/causes$/ { split($1, range, "-"); print range[1]; exit }' "/proc/$target/maps")
	at=$(nm "$O/programs/causes" | awk '$3 == "one_iter" { print $1 }')
	[ "$(dd if="/proc/$target/mem" bs=1 count=1 skip=$((16#$base + 16#$at)) status=none | od -An -tx1)" = " cc" ]
}

enough() {
	[ "$(ls d | grep -c 'mtbpf$')" -ge "$1" ]
}
