# SPDX-License-Identifier: MIT
# tests/messages is true: its texts are the program's, and each is used.

load ../helpers

setup() {
	[ -x "${O:?}/mtbpf" ] || skip "mtbpf is not built"
	cd "$BATS_TEST_DIRNAME/../.." || return
	load_messages
	[ "${#messages[@]}" -gt 200 ]
}

# A string that ends like another one may share its bytes.
@test "each text is a string of the program" {
	tr '\0\n' '\n\r' <"$O/mtbpf" | tr -d '\r' | LC_ALL=C sort -u >"$BATS_TEST_TMPDIR/strings"
	printf '%s\n' "${messages[@]}" | LC_ALL=C sort -u >"$BATS_TEST_TMPDIR/texts"
	LC_ALL=C comm -23 "$BATS_TEST_TMPDIR/texts" "$BATS_TEST_TMPDIR/strings" >"$BATS_TEST_TMPDIR/others"
	while IFS= read -r text; do
		LC_ALL=C awk -v text="${text//\\/\\\\}" '
			(at = length($0) - length(text)) >= 0 && substr($0, at + 1) == text { found = 1; exit }
			END { exit !found }' "$BATS_TEST_TMPDIR/strings" || { echo "not in the program: $text"; return 1; }
	done <"$BATS_TEST_TMPDIR/others"
}

@test "each is used by a test, and has one name" {
	for name in "${!messages[@]}"; do
		grep -qrE --include='*.bats' --include='*.bash' "(^|[ @])$name([ \"';]|\$)" tests/cli tests/live ||
			grep -qrw --include='*.[ch]' "TEXT_${name//-/_}" tests/unit ||
			{ echo "not used: $name"; return 1; }
	done
	[ -z "$(sed -n 's/^\([a-z][a-z0-9-]*\): .*/\1/p' tests/messages | sort | uniq -d)" ]
	[ -z "$(printf '%s\n' "${messages[@]}" | sort | uniq -d)" ]
}

@test "says and complains: arguments, any text, another name's text, and what is wrong" {
	output="mtbpf: attach: -delay-thresh '10' is not a duration
hint: durations need a unit: 10ns, 10us, 10ms, 10s, 10min or 10h; p99.9 is a percentile"
	both=$output
	complains bad-value attach delay-thresh 10 @not-a-duration hint threshold-units
	complains bad-value "*" "delay*"
	says bad-value
	! complains bad-value record || false
	! complains bad-value attach delay-thresh 10 @not-a-size || false
	! complains bad-value hint size-units || false
	! complains no-such-name || false
	! says bad-value a b c d e || false
	complains "-delay-thresh '10' is not" "10ns, 10us"
	! complains "-delay-thresh '1*' is not" || false
	! complains "-delay-thresh '10' is not" "4096" || false
	output+=$'\n'"mtbpf: attach: -delay-thresh '10' is not a duration"
	! complains bad-value || false
	output=${both%%$'\n'*}
	! complains bad-value || false
	output="a [b] (c) 100% d?"
	messages[odd]='a [b] (%s) 100%% d?'
	says odd c
	! says odd x || false
}
