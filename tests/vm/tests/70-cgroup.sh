# SPDX-License-Identifier: MIT
# -cgroup: a ring a CPU, of all threads in the cgroup and of nobody else; perf tells them apart.
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
box=/sys/fs/cgroup/box
mkdir -p $box/inner

# begin GROUP PROGRAM...: the program, in that cgroup.
begin() {
	start bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$@" -scale small
}

begin $box /build/programs/threads; a=$pid
begin $box/inner /build/programs/threads; b=$pid
start /build/programs/threads -scale small; decoy=$pid
sleep 0.5

no_probe() {
	[ -z "$(cat /sys/kernel/tracing/uprobe_events)" ]
}

# Where the program's own code is in a process: "PID START END".
code_of() {
	awk -v pid="$1" '$2 ~ /x/ && /programs\// { split($1, at, "-"); print pid, at[1], at[2] }' "/proc/$1/maps"
}

# read NAME: perf decodes it without an error; its branches are in NAME.txt, their processes in $seen.
# An end has the time of the interrupt's return here, when somebody else may be on already.
read_by_perf() {
	perf script -i "$1.mtbpf" --itrace=be -F pid,tid,ip,flags >"$1.all" 2>"$1.err"
	! grep -qi error "$1.all" "$1.err" || fail "perf: $(grep -hi error "$1.all" "$1.err" | head -3)"
	awk '$1 ~ /^[0-9]+\/[0-9]+$/ && !/ tr end / {
		split($1, id, "/")
		for (i = 2; i <= NF; i++) if ($i ~ /^[0-9a-f]+$/ && length($i) > 5) {
			print id[1], id[2], $i; next } }' "$1.all" >"$1.txt"
	seen=$(awk '{ print $1 }' "$1.txt" | sort -u | tr '\n' ' ')
	echo "$1: processes $seen: $(wc -l <"$1.txt") branches of $(awk '{ print $2 }' "$1.txt" | sort -u | wc -l) threads"
}

# in_their_code NAME PID...: no branch of one process is in the code of another.
in_their_code() {
	local name=$1
	shift
	for p; do code_of "$p"; done >ranges
	awk 'NR == FNR { from[$1] = $2; to[$1] = $3; next }
		{ at = sprintf("%16s", $3)
		for (p in from) if (at >= sprintf("%16s", from[p]) && at < sprintf("%16s", to[p])) {
			if (p == $1) right++; else { wrong++; print "wrong:", $0, "is in", p } } }
		END { print right + 0, "in their code"; exit wrong > 0 || right < 100 }' ranges "$name.txt" >judged ||
		fail "$name: $(tail -5 judged)"
	tail -1 judged
}

# ends_with_hit NAME: the CPU of the hit has no branch behind it. (The thread may have gone on, on one
# that was not stopped yet.)
ends_with_hit() {
	perf script -i "$1.mtbpf" --itrace=b --ns -F cpu,time,event | awk '
		/mtbpf:hit/ { gsub(/[^0-9.]/, "", $2); cpu = $1; at = $2; next }
		/branches/ { gsub(/[^0-9.]/, "", $2); last[$1] = $2; n[$1]++ }
		END { print "hit on", cpu, "at", at ", its last branch at", last[cpu], "of", n[cpu]
			exit !n[cpu] || last[cpu] > at + 0.0001 }' >judged || fail "$1: $(cat judged)"
	cat judged
}

methods=refresh
if has_aux_pause; then methods="pause refresh"; fi
for method in $methods disable; do
	mtbpf attach -cgroup box -symbol one_iter -delay-thresh 60ms -timeout 30s -freeze "$method" \
		-o "$method.fxt" >out 2>err || fail "attach -freeze $method: status $? $(cat err)"
	! grep -q '^warning' err || fail "$(cat err)"
	no_probe || fail "a probe is left"
	grep -E '^(hit|frozen)' out
	! grep -q '^gaps' out || fail "$(grep '^gaps' out)"
	grep -q '^hit [0-9]* of one_iter' out || fail "the hit has no name"
	[ "$method" = disable ] || ends_with_hit "$method"
	read_by_perf "$method"
	[ "$(xargs -n1 <<<"$seen" | sort | xargs)" = "$(printf '%s\n' "$a" "$b" | sort | xargs)" ] ||
		fail "processes $seen were recorded, not $a and $b ($decoy is the decoy)"
	in_their_code "$method" "$a" "$b"
done

# The return probe, and -multi-snapshot.
mtbpf attach -cgroup /box -symbol one_iter -duration-thresh 20ms -multi-snapshot 3 -timeout 60s -o d.fxt \
	>out 2>err || fail "-duration-thresh: status $? $(cat err)"
[ "$(grep -c '^snapshot . taken' err)" = 2 ] || fail "not three snapshots: $(cat err)"
[ "$(grep -c '^call [0-9]* of one_iter' out)" = 3 ] || fail "not three calls: $(cat out)"
! grep -q '^gaps' out || fail "$(grep '^gaps' out)"
no_probe || fail "a probe is left"

# A process that joins later, one that forks all the time.
begin $box /bin/busybox sh -c 'while :; do /bin/true; (exit 3); done' sh; shell=$pid
start /build/programs/service -scale small; late=$pid
mtbpf record -cgroup $box -timeout 4s -snapshot-size 64K -o join.mtbpf >out 2>err &
tool=$!
sleep 2
echo "$late" >$box/cgroup.procs
wait "$tool"
[ $? = 3 ] || fail "record: $(cat err)"
read_by_perf join
grep -qw "$late" <<<"$seen" || fail "the one that joined is missing"
in_their_code join "$a" "$b" "$late"
kill -9 "$shell" "$late"

# The decoy's slow calls are nobody's; those of the cgroup are.
kill -STOP "$a" "$b"
mtbpf record -cgroup box -symbol one_iter -delay-thresh 1ms -timeout 60s -o s.mtbpf >out 2>err &
tool=$!
sleep 4
must kill -0 "$tool"
kill -CONT "$a" "$b"
wait "$tool" || fail "no trigger: $(cat err)"
grep -q '^triggered' err || fail "$(cat err)"
hit=$(perf script -i s.mtbpf -F event,pid | awk '/mtbpf:hit/ { print $1 }')
[ "$hit" = "$a" ] || [ "$hit" = "$b" ] || fail "the hit is of process $hit"

# Killed with no chance to tidy up.
mtbpf record -cgroup box -symbol one_iter -delay-thresh 100s -o k.mtbpf 2>err &
tool=$!
for _ in $(seq 100); do
	no_probe || break
	sleep 0.1
done
sleep 0.5
no_probe && fail "there was no probe to begin with: $(cat err)"
disown "$tool"
kill -9 "$tool"
for _ in $(seq 50); do
	no_probe && break
	sleep 0.1
done
no_probe || fail "a probe is left after kill -9"
before=$(steps)
sleep 0.5
[ "$(steps)" = "$before" ] || fail "an event is left after kill -9"

# Said in a line.
refused() {
	local text=$1
	shift
	mtbpf record -o r.mtbpf "$@" 2>err && fail "$* is taken"
	grep -q "$text" err && grep -q '^hint: ' err || fail "$*: $(cat err)"
}
refused "function 'one_itr'" -cgroup box -symbol one_itr
refused "no cgroup 'nowhere'" -cgroup nowhere
refused 'is no cgroup' -cgroup /tmp
refused 'max-memory allows 4.0 MiB' -cgroup box -max-memory 4M
grep -q 'snapshot-size 2048K fits' err || fail "$(cat err)"
refused '6 threads with\|5 threads with\|4 threads with\|7 threads with' -pid "$a" -multi-thread -max-memory 4M
grep -q -- '-cgroup takes a ring a CPU' err || fail "$(cat err)"

# Threads that start when the memory is full are left out, and counted.
kill -STOP "$a" "$b" "$decoy"
n=$(ls "/proc/$a/task" | wc -l)
mtbpf record -pid "$a" -multi-thread -snapshot-size 64K -max-memory $((64 * n))K -timeout 10s -o n.mtbpf 2>err &
tool=$!
for _ in $(seq 100); do
	grep -q '^recording' err && break
	sleep 0.1
done
kill -CONT "$a"
wait "$tool"
[ $? = 3 ] || fail "-max-memory $((64 * n))K: $(cat err)"
kill -CONT "$b" "$decoy"
grep -q '^warning: [0-9]* threads* that started later .* not recorded: -max-memory' err || fail "$(cat err)"
for p in "$a" "$b" "$decoy"; do must kill -0 "$p"; done
