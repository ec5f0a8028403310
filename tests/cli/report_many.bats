#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mtbpf report of many captures: those in folders, by what was the cause. Summaries are written here, as those of
# recordings that nobody has to decode; what decoding finds is tested live.

load ../messages

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	mtbpf=$(realpath "${O:-build}")/mtbpf
	cd "$BATS_TEST_TMPDIR" || return 1
	golden=$BATS_TEST_DIRNAME/../golden/nest
}

# captures DIR N HOST BUILD TIME MS PATH [KEY VALUE]: N recordings in DIR whose slow iteration waited for so long.
captures() {
	local dir=$1 n=$2 host=$3 build=$4 unix_ms=$5 ms=$6 path=$7 i name
	mkdir -p "$dir"
	for ((i = 0; i < n; i++)); do
		name=$dir/web-$(date -u -d "@$((unix_ms / 1000 + i))" +%Y-%m-%dT%H:%M:%S.000Z).mtbpf
		mkdir "$name"
		echo 1234567 >"$name/data"
		echo '{"version":2}' >"$name/meta.json"
		cat >"$name/summary.json" <<-END
			{"summary":2,"data_bytes":8,"command":"web","build_id":"$build","unix_ms":$((unix_ms + i * 1000)),
			"labels":{"host":"$host","${8:-zone}":"${9:-z}"},"hit":{"function":"handle"},"slow_ns":$((ms + i + 10))000000,
			"ordinary_ns":10000000,"account":{"slow":{"blocked_ns":$((ms + i))000000,"on_cpu_ns":10000000},
			"ordinary":{"on_cpu_ns":10000000}},"causes":[{"kind":"blocked","ns":$((ms + i))000000,
			"text":"blocked in it","of":"read of pipe:[$RANDOM] (fd $i)",
			"meanwhile":"helper ($i) was on the CPU","path":$path}],
			"functions":[{"name":"[blocked]","in":"read","extra_ns":$((ms + i))000000,"slow_ns":$((ms + i))000000}],
			"frames":[[0,"handle",$((ms + i + 10))000000],[1,"read",$((ms + i))000000]]}
		END
	done
}

# fleet DIR: of two hosts and two builds, 50 captures of two causes; one build has inlined get().
fleet() {
	captures "$1/a/one" 20 host-a build1 1763700000000 40 '["handle","get","read"]'
	captures "$1/b/one" 10 host-b build2 1763710000000 40 '["handle","read"]'
	captures "$1/a/two" 15 host-a build1 1763720000000 100 '["main","handle","put","read"]'
	captures "$1/b/two" 5 host-b build2 1763730000000 100 '["handle","put","read"]'
}

@test "a folder of folders: the causes, the largest excess first, of two hosts and two builds alike" {
	fleet d
	run "$mtbpf" report d
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "50 captures of 2 hosts, host-a, host-b, 2025-11-21T04:40:00.000Z to 2025-11-21T13:00:04.000Z" ]
	[[ ${lines[3]} == *" 2.12 s "*" 20 "*" 105 ms "*" 114 ms  blocked in handle > put > read: read of pipe:[*]" ]]
	[[ ${lines[4]} == *"2025-11-21T10:13:20.000Z to 2025-11-21T13:00:04.000Z; host-a, host-b" ]]
	[[ ${lines[5]} == *" d/a/two/web-2025-11-21T10:13:34.000Z.mtbpf" ]]
	[[ ${lines[6]} == *" while: helper (14) was on the CPU" ]]
	[[ ${lines[7]} == *" 1.44 s "*" 30 "*"blocked in handle > get > read: "* ]]
	[[ $output == *"slow     on CPU 500 ms · blocked 3.55 s"* ]]
	[[ $output == *" 3.55 s       50  [blocked] in read"* ]]
	[ "${lines[-1]}" = "labels: zone z (50)" ]
}

@test "-json and -csv have the same figures; -folded the stacks of the slow iterations" {
	fleet d
	"$mtbpf" report -json d >json
	[ "$(jq -c '[.captures, .lost_ns, (.causes | map([.captures, .lost_ns, .kind, .path]))]' json)" = \
		'[50,3550000000,[[20,2115000000,"blocked",["handle","put","read"]],[30,1435000000,"blocked",["handle","get","read"]]]]' ]
	[ "$(jq -r '.causes[0].meanwhile' json)" = "helper (14) was on the CPU" ]
	[ "$(jq -c .labels json)" = '{"zone":{"z":50}}' ]
	[ "$(jq '[.files[].cause] | group_by(.) | map(length) | tostring' json)" = '"[20,30]"' ]
	"$mtbpf" report -csv d >csv
	[ "$(python3 -c '
import csv
print([(r["function"], r["captures"], r["lost_ns"], r["hosts"]) for r in csv.DictReader(open("csv", newline=""))])')" = \
		"[('read', '20', '2115000000', 'host-a host-b'), ('read', '30', '1435000000', 'host-a host-b')]" ]
	"$mtbpf" report -folded d | awk '{ sum[$1] += $2 } END { exit sum["web;handle;read"] != 3550000000 || sum["web;handle"] != 500000000 }'
}

@test "names that somebody chose: no control characters, no formulas, no broken rows" {
	captures d 1 '=cmd|x\"y' b 1763700000000 40 '["handle","f\u001b[2J\n,\"q\";<b>","=1+1"]'
	run "$mtbpf" report d
	[ "$status" -eq 0 ]
	[[ $output != *$'\e'* ]]
	[[ $output == *'f?[2J?,"q";<b> > =1+1'* ]]
	"$mtbpf" report -csv d >csv
	[ "$(python3 -c '
import csv
(row,) = csv.DictReader(open("csv", newline=""))
print(row["function"], row["captures"], len(row))')" = "'=1+1 1 14" ]
	[ "$("$mtbpf" report -folded d | wc -l)" -eq 2 ]
}

@test "-since and -label leave captures out; none left is said" {
	fleet d
	[ "$("$mtbpf" report -json -since 2025-11-21T10:00:00.000Z d | jq .captures)" -eq 20 ]
	[ "$("$mtbpf" report -json -since 2025-11-20 d | jq .captures)" -eq 50 ]
	[ "$("$mtbpf" report -json -label host=host-b d | jq .captures)" -eq 15 ]
	[ "$("$mtbpf" report -json -label host=host-b -label zone=z d | jq .captures)" -eq 15 ]
	run "$mtbpf" report -since 1h d
	[ "$status" -ne 0 ]
	complains no-capture-left
	run "$mtbpf" report -label host=c d
	[ "$status" -ne 0 ]
	run "$mtbpf" report -since yesterday d
	[ "$status" -eq 2 ]
	complains not-a-time
	run "$mtbpf" report -label host d
	[ "$status" -eq 2 ]
}

@test "before and after a release: what came, what went, what became more, and what is as it was" {
	captures a 30 h b1 1763700000000 40 '["handle","get","read"]'
	captures a/gone 5 h b1 1763700000000 40 '["handle","old"]'
	captures a/more 4 h b1 1763700000000 20 '["handle","put"]'
	captures b 45 h b2 1763800000000 41 '["handle","read"]'
	captures b/came 7 h b2 1763800000000 40 '["handle","new"]'
	captures b/more 30 h b2 1763800000000 20 '["handle","put"]'
	run "$mtbpf" report -diff a b
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"captures with a report: 39 in A, 82 in B;"* ]]
	grep -q "came .* - .* in 7  blocked in handle > new" <<<"$output"
	grep -q "went .* in 5 .* -  blocked in handle > old" <<<"$output"
	grep -q "more .* in 4 .* in 30  blocked in handle > put" <<<"$output"
	grep -q "same .* in 30 .* in 45  blocked in handle > get > read" <<<"$output"
	[ "$("$mtbpf" diff -q a b)" = "$output" ]
	[ "$("$mtbpf" report -json -diff a b | jq -c '[.changes[].change]')" = '["came","went","more","same"]' ]
	run "$mtbpf" report -diff a
	[ "$status" -eq 2 ]
}

@test "a recording without a summary is decoded, once; a summary that is none is made again" {
	mkdir d
	cp -r "$golden" d/nest.mtbpf
	run "$mtbpf" report d
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"no cause in 1 capture: "*"d/nest.mtbpf" ]]
	[ "$(jq .data_bytes d/nest.mtbpf/summary.json)" -eq "$(stat -c %s d/nest.mtbpf/data)" ]
	[ "$(jq -r .no_report d/nest.mtbpf/summary.json)" != null ]
	ino=$(stat -c %i d/nest.mtbpf/summary.json)
	"$mtbpf" report d >/dev/null
	[ "$(stat -c %i d/nest.mtbpf/summary.json)" = "$ino" ]
	for bad in '{}' '[' '{"summary":1}' '{"summary":2,"data_bytes":1,"slow_ns":1}'; do
		echo "$bad" >d/nest.mtbpf/summary.json
		"$mtbpf" report d >/dev/null
		jq -e .no_report d/nest.mtbpf/summary.json >/dev/null
	done
	# A link would lead out of it.
	echo '{}' >other
	ln -sf ../../other d/nest.mtbpf/summary.json
	"$mtbpf" report d >/dev/null
	[ ! -L d/nest.mtbpf/summary.json ]
	[ "$(cat other)" = '{}' ]
	[ -z "$(find d -name '.summary*')" ]
}

@test "what is in a folder: recordings, traces without one, and what cannot be read" {
	mkdir -p d/.writing-x.mtbpf d/sub d/unfinished.mtbpf
	cp -r "$golden" d/sub/nest.mtbpf
	"$mtbpf" decode -q d/sub/nest.mtbpf 2>/dev/null
	cp d/sub/nest.fxt.gz d/sub/other.fxt.gz
	cp -r "$golden" d/broken.mtbpf
	head -c 100 "$golden/data" >d/broken.mtbpf/data
	cp "$golden/data" d/unfinished.mtbpf/data
	cp "$golden/data" d/.writing-x.mtbpf/data
	ln -s .. d/sub/up
	run "$mtbpf" report -json d
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep '^{' <<<"$output" | jq -c '[.files[].file]')" = '["d/sub/nest.mtbpf","d/sub/other.fxt.gz"]' ]
	says captures-unread 1 ''
	[[ $output == *"1 capture cannot store a summary"* ]]
	mkdir empty
	run "$mtbpf" report empty
	[ "$status" -ne 0 ]
	complains no-capture-there
}

@test "a thousand captures in two seconds" {
	captures d 1 host b 1763700000000 40 '["handle","read"]'
	first=$(echo d/*)
	for ((i = 0; i < 999; i++)); do
		cp -r "$first" "d/c$i.mtbpf"
	done
	SECONDS=0
	run timeout 20 "$mtbpf" report d
	[ "$status" -eq 0 ]
	[ "$SECONDS" -le 2 ]
	[[ ${lines[0]} == "1000 captures of 1 host, "* ]]
}

@test "what does not go together" {
	captures d 1 h b 1763700000000 40 '["handle"]'
	for words in "-json -csv" "-csv -folded" "-filter ..hit" "-diff -csv"; do
		# shellcheck disable=SC2086
		run "$mtbpf" report $words d
		echo "$words: $output"
		[ "$status" -eq 2 ]
		[[ $output == *"hint: "* ]]
	done
}
