# SPDX-License-Identifier: MIT
# Address filters as perf sets them: a range is all that is traced, a stop range ends the trace, and a
# single address is refused, as the real driver does.
# only: newest
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
program=/build/programs/events
# filtered NAME FILTER
filtered() {
	pt_record -o "$1.data" --filter "$2" -- $program >"$1.out" 2>"$1.err" || fail "$1: $(cat "$1.err")"
	perf script -i "$1.data" --itrace=be -F ip,sym,flags >"$1.txt" 2>&1
	! grep -i 'trace error' "$1.txt" || fail "$1: perf cannot decode it"
}
filtered range "filter touch_page @ $program"
# Each call ends once by its RET; and all that is traced begins and ends there.
[ "$(grep -c 'tr end  return .* touch_page$' range.txt)" = 8 ] || fail "not eight calls: $(head -20 range.txt)"
! grep -v 'tr strt' range.txt | grep -v ' touch_page$' || fail "other code is traced"
filtered stop "tracestop stop_at_int3 @ $program"
grep -q 'touch_page' stop.txt || fail "nothing before the stop"
! grep 'write_register' stop.txt || fail "the trace went on behind the stop"
for single in start stop; do
	! perf record -q -e intel_pt//u --filter "$single touch_page @ $program" -o no.data -- $program >no.err 2>&1 ||
		fail "$single: a single address is taken for a filter"
done
mtbpf check 2>&1 | grep -q ' 2 address ranges' || fail "$(mtbpf check 2>&1 | grep pt_caps)"
