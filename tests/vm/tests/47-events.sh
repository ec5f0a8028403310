# SPDX-License-Identifier: MIT
# What newer CPUs tell: Event Trace names what interrupted the program, with the address of a page fault; PTWRITE its
# values and the functions that wrote them. perf decodes the same; and a PMU that tells wrong is noticed.
# only: newest
. /tests/vm/lib.sh
need_pmu
softpt=/sys/module/softpt/parameters
clean_up() { rmmod softpt; insmod /lib/softpt.ko; }
cd /tmp || exit 1

# record NAME: everything that the program does, as text in NAME.txt, and as perf tells it in NAME.perf.
record() {
	mtbpf run -full-execution -source pt -portable -o "$1.fxt" -- /build/programs/events >"$1.out" 2>"$1.err" ||
		fail "status $?: $(cat "$1.err")"
	mtbpf decode "$1.mtbpf" -format text >"$1.txt" 2>"$1.err" || fail "decode: $(cat "$1.err")"
	mtbpf decode "$1.mtbpf" -print branches >"$1.branches" 2>/dev/null
}

# The page faults that the program says it makes, each once, within touch_page().
faults_of() {
	for at in $(awk '$1 == "fault" { print $2 }' "$1.out"); do
		grep -q " \[page fault $at\]\$" "$1.txt" || return 1
	done
}

record all
cat all.err all.out
[ "$(grep -c '^fault ' all.out)" = 8 ] || fail "not eight page faults"
grep -q '^PTWRITE$' all.out || fail "no PTWRITE"
faults_of all || fail "a page fault is missing: $(grep 'page fault' all.txt)"
for name in int3 'invalid opcode' 'divide error'; do
	[ "$(grep -c " \[$name\]\$" all.txt)" = 1 ] || fail "[$name]: $(grep -F '[' all.txt | awk '{ $1=$2=$3=$4=""; print }' | sort | uniq -c)"
done
awk '{ $1 = $2 = $3 = $4 = ""; print }' all.txt | grep '^ *\[' | grep -v + | sed 's/ 0x.*\]/]/' | sort | uniq -c
# In order, with the function.
awk '$3 == "ptwrite" { print $5 }' all.branches >values
printf '%s\n' 100000001 200000002 300000003 400000004 1122334455667788 55667788 | diff - values ||
	fail "not the values that were written"
perf script -i all.mtbpf --itrace=wI -F event,ip,sym,synth >perf.txt 2>&1
[ "$(grep -c 'ptwrite:.*write_' perf.txt)" = 6 ] || fail "perf: $(grep ptwrite perf.txt)"
[ "$(grep -c 'evt:.*cfe: INTR' perf.txt)" = "$(awk '$3 == "cfe"' all.branches | wc -l)" ] ||
	fail "perf: $(grep -c evt: perf.txt) events, not $(awk '$3 == "cfe"' all.branches | wc -l)"
[ "$(grep -c 'evt:.*PFA: ' perf.txt)" = "$(awk '$3 == "pfa"' all.branches | wc -l)" ] || fail "perf: other page faults"
# The calls before a fault or a value are not moved to its time.
same_branches all.mtbpf
echo "$(wc -l </tmp/ours) branches at the times that perf has"

# A PMU that tells of other events.
echo 7 >$softpt/broken
record broken
echo 0 >$softpt/broken
! faults_of broken || fail "a PMU that tells of other vectors is not noticed"

# A hybrid CPU: the cores that cannot tell write what they can: no event, no value, no cycle.
must rmmod softpt
must insmod /lib/softpt.ko little=2
[ "$(cat /sys/devices/cpu_core/cpus /sys/devices/cpu_atom/cpus | tr '\n' ' ')" = "0 1 " ] || fail "not a core of each kind"
told() { awk '$3 ~ /^(cfe|pfa|ptwrite)$/' "$1.branches" | wc -l; }
taskset -p 1 $$ >/dev/null && record core
taskset -p 2 $$ >/dev/null && record atom
taskset -p 3 $$ >/dev/null
must rmmod softpt
must insmod /lib/softpt.ko old=1
record old
faults_of core || fail "a core that can tell does not"
for name in atom old; do
	grep -q ' touch_page$' $name.txt || fail "$name: no call: $(cat $name.err)"
	[ "$(told $name)" = 0 ] || fail "$name: a core tells what it cannot"
	grep -q ' \[untraced\]$' $name.txt || fail "$name: nothing is [untraced]"
done
