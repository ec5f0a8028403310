# SPDX-License-Identifier: MIT
# docs/stacks.md has each rule by which stacks are known, and each is tried by a unit test.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	table=$O/tests/unit/rules/test_rules
	[ -x "$table" ] || skip "the unit tests are not built"
}

@test "the document's table of rules is the code's" {
	sed -n '/<!-- rules -->/,/<!-- end of rules -->/p' docs/stacks.md | grep '^| ' | tail -n +2 >"$BATS_TEST_TMPDIR/said"
	"$table" -print >"$BATS_TEST_TMPDIR/is"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/is")" -gt 50 ]
	diff "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/is"
}

@test "each rule has named an event in a unit test" {
	export RULES_TRIED=$BATS_TEST_TMPDIR/tried
	for source in tests/unit/rules/test_*.c tests/unit/stack/test_stack*.c; do
		"$O/${source%.c}" >/dev/null 2>&1 || { echo "$source"; return 1; }
	done
	sort -u "$RULES_TRIED" >"$BATS_TEST_TMPDIR/is"
	"$table" -print | sed 's/^| //; s/ | .*//' | sort >"$BATS_TEST_TMPDIR/rules"
	comm -23 "$BATS_TEST_TMPDIR/rules" "$BATS_TEST_TMPDIR/is" >"$BATS_TEST_TMPDIR/untried"
	cat "$BATS_TEST_TMPDIR/untried"
	[ ! -s "$BATS_TEST_TMPDIR/untried" ]
}
