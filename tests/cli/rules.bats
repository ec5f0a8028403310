# SPDX-License-Identifier: MIT
# docs/dev/stacks.md has each rule by which stacks are known, and each is tried by a unit test.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	table=$O/tests/unit/rules/test_rules
	[ -x "$table" ] || skip "the unit tests are not built"
}

@test "the document's table of rules is the code's" {
	sed -n '/<!-- rules -->/,/<!-- end of rules -->/p' docs/dev/stacks.md | grep '^| ' | tail -n +2 >"$BATS_TEST_TMPDIR/said"
	"$table" -print >"$BATS_TEST_TMPDIR/is"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/is")" -gt 50 ]
	diff "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/is"
}

# The tests that a rule names an event in are run without it: tests/unit/without_rule.c.
@test "each rule has named an event in a unit test, one of which fails without the rule" {
	local tried=$BATS_TEST_TMPDIR/tried missed=0 rule program
	mkdir "$tried"
	for source in tests/unit/rules/test_*.c tests/unit/stack/test_stack*.c; do
		program=${source#tests/unit/} program=${program%.c}
		RULES_TRIED=$tried/${program//\//-} "$O/tests/unit/$program" >/dev/null 2>&1 ||
			{ echo "$source fails"; return 1; }
	done
	while read -r rule; do
		for program in $(grep -lxF "$rule" "$tried"/*); do
			program=${program##*/}
			WITHOUT_RULE=$rule timeout 20 "$O/tests/unit/${program/-//}" >/dev/null 2>&1 || continue 2
		done
		echo "no test misses '$rule'"
		missed=1
	done < <("$table" -print | sed 's/^| //; s/ | .*//')
	[ "$missed" = 0 ]
}
