# SPDX-License-Identifier: MIT
# -key and -print with Intel PT: requests that change threads, by an argument and by a member of it, and what a hit has read:
# on its line, in the report and in the recording.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
start /build/programs/requests
target=$pid

# attach NAME ARGS: of all threads; its lines are in /tmp/out, and the hit's alone is $line.
attach() {
	local name=$1
	shift
	mtbpf attach -source pt -pid "$target" -multi-thread -timeout 60s -o "/tmp/$name.fxt" "$@" >/tmp/out 2>/tmp/err ||
		fail "attach $*: status $? $(cat /tmp/err)"
	grep -E '^(hit|call|frozen|gaps)' /tmp/out
	line=$(grep -E '^(hit|call) ' /tmp/out) || fail "no hit: $(cat /tmp/out)"
	# The kernel steps copies of the probed instructions, of another one at -start than at -stop.
	! grep -q '^gaps' /tmp/out || fail "gaps"
	mtbpf report "/tmp/$name.mtbpf" | grep -qF "$line" || fail "the report of the recording lacks: $line"
	mtbpf report "/tmp/$name.fxt" | grep -qF "${line%%:*}" || fail "the report of the trace lacks: $line"
	mtbpf report "/tmp/$name.mtbpf" -json >/tmp/json || fail "report -json"
}

# is PATTERN: sets BASH_REMATCH to the parts of the hit's line.
is() {
	[[ $line =~ $1 ]] || fail "not '$1': $line"
}

# keeps TEXT...: the report's JSON has each.
keeps() {
	local text
	for text; do
		grep -qF -- "$text" /tmp/json || fail "no '$text' in $(cat /tmp/json)"
	done
}

# is_of NUMBER PATH METHOD: as the program makes them.
is_of() {
	[ "$2" = "/$([ $(($1 % 20)) -eq 7 ] && echo slow || echo fast)/$1" ] || fail "$2 is not the path of $1"
	[ "$3" = "$([ $(($1 % 2)) -eq 1 ] && echo GET || echo PUT)" ] || fail "$3 is not the method of $1"
}

# The object is the key: the pointer that is the second argument.
attach object -start request_begin -stop request_end -key arg1,arg2 -duration-thresh 50ms \
	-print 'str(arg2->path.data, arg2->path.len), str(arg2->method), arg2->at.number, (long)arg2'
grep -q 'a request lasts from request_begin to request_end, matched by -key arg1,arg2' /tmp/out /tmp/err || fail "it does not tell what a request is"
is "^hit [0-9]+ of request_end, thread ([0-9]+): [0-9.]+ m?s after -start in thread $target, key (0x[0-9a-f]+), str\(arg2->path.data, arg2->path.len\) \"([^\"]*)\", str\(arg2->method\) \"([A-Z]*)\", arg2->at.number ([0-9]+), \(long\)arg2 ([0-9]+), threshold"
is_of "${BASH_REMATCH[5]}" "${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}"
[ "${BASH_REMATCH[1]}" != "$target" ] || fail "the first thread does not end requests"
[ $((BASH_REMATCH[2])) = "${BASH_REMATCH[6]}" ] || fail "the key is not the pointer"
keeps "${BASH_REMATCH[2]}" "\"str(arg2->path.data, arg2->path.len)\"" "\"${BASH_REMATCH[3]}\"" "\"${BASH_REMATCH[4]}\""
grep -qF 'str(arg2->path.data, arg2->path.len)' /tmp/object.mtbpf/meta.json || fail "meta.json lacks the prints"
grep -aqF "\"${BASH_REMATCH[3]}\"" /tmp/object.fxt || fail "the trace lacks the path"
# Intel PT recorded what that thread did: it came out of answer().
mtbpf decode /tmp/object.mtbpf -format text >/tmp/text || fail "decode"
grep -q ' answer$' /tmp/text || fail "the trace lacks what preceded the hit"
must mtbpf decode /tmp/object.mtbpf -o /tmp/again.fxt
must cmp /tmp/object.fxt /tmp/again.fxt

# The same request by its number, which is an argument at its start and a member at its end.
attach member -start request_begin -stop request_end -key 'arg2,arg2->at.number' -duration-thresh 50ms -print 'arg2->at.number'
is "^hit [0-9]+ of request_end, thread [0-9]+: [0-9.]+ m?s after -start in thread $target, key ([0-9a-fx]+), arg2->at.number ([0-9]+), "
[ $((BASH_REMATCH[1])) = "${BASH_REMATCH[2]}" ] || fail "the key is not the number"

# The time between two hits with one key, which is the worker's number.
attach delay -symbol request_end -key arg1 -delay-thresh 20ms -print arg1,arg2-\>at.number
is 'of request_end, thread ([0-9]+): [0-9.]+ m?s after the one before it with this key in thread ([0-9]+), key (0x)?([0-2]), arg1 ([0-9]+), arg2->at.number [0-9]+, '
[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] && [ "${BASH_REMATCH[4]}" = "${BASH_REMATCH[5]}" ] || fail "the key is not the worker: $line"

# A call: what it got, and what it returns.
attach call -symbol answer -duration-thresh 50ms -print 'str(arg1->path.data, arg1->path.len), str(arg1->method), arg3, retval'
is '^call [0-9]+ of answer, thread [0-9]+: took [0-9.]+ m?s, str\(arg1->path.data, arg1->path.len\) "([^"]*)", str\(arg1->method\) "([A-Z]*)", arg3 ([0-9]+), retval ([0-9]+), '
[ "${BASH_REMATCH[3]}" = "${BASH_REMATCH[4]}" ] || fail "it returns its third argument: $line"
keeps '"retval"' '"arg3"'
is_of $((BASH_REMATCH[3] - 100)) "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"

# By types and offsets, which need no debug info.
attach offset -symbol request_end -key '(int)arg1' -delay-thresh 20ms -print '(int)arg2->4, str((char *)arg2->24)'
is 'key (0x)?([0-2]), \(int\)arg2->4 ([0-9]+), str\(\(char \*\)arg2->24\) "/(slow|fast)/[0-9]+GARBAGE", '

# System calls, by their descriptor.
start /build/programs/signals -scale small -pause 5ms
writer=$pid requests=$target target=$pid
attach descriptor -symbol syscall:write -key arg1 -delay-thresh 1us -print arg1
is 'of syscall:write, thread ([0-9]+): [0-9.]+ [mun]?s after the one before it with this key in thread ([0-9]+), key ([0-9a-fx]+)(, in [a-z_]+)?, arg1 ([0-9]+)'
[ $((BASH_REMATCH[3])) = "${BASH_REMATCH[5]}" ] || fail "the key is not the descriptor: $line"
# The number of bytes is the same at both calls.
attach region -start syscall:write -stop syscall:read -key arg3 -duration-thresh 1us -print arg3
is 'of syscall:read, thread ([0-9]+): [0-9.]+ [mun]?s after -start in thread ([0-9]+), key 0x1, (.*, )?arg3 1, '
must kill -0 "$writer"
target=$requests
no_probe || fail "a probe is left"
must kill -0 "$target"
