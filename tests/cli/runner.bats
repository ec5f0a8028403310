# SPDX-License-Identifier: MIT
# tests/run on suites made here: what passes, fails, dies, hangs or skips is counted as such.
load ../helpers

setup() {
	export TESTS_DIR=$BATS_TEST_TMPDIR/tests O=$BATS_TEST_TMPDIR/build TEST_TIMEOUT=20
	mkdir -p "$TESTS_DIR"/{unit,cli} "$O/tests/unit"
}

# program NAME: a unit test whose program is the shell script on stdin.
program() {
	touch "$TESTS_DIR/unit/test_$1.c"
	{ echo '#!/bin/bash'; cat; } >"$O/tests/unit/test_$1"
	chmod +x "$O/tests/unit/test_$1"
}

run_suites() {
	run "$BATS_TEST_DIRNAME/../run" "$@"
	printf '%s\n' "$output"
}

last_line() {
	printf '%s\n' "${lines[@]: -1}"
}

@test "a passing program and a passing bats file are counted, and the exit code is 0" {
	program good <<<'echo 1..2; echo ok 1 - a; echo ok 2 - b'
	echo '@test "c" { true; }' >"$TESTS_DIR/cli/good.bats"
	run_suites unit cli
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "3 passed, 0 failed, 0 skipped" ]
	[[ $output == *"ok     unit/test_good "*"ok     cli/good "* ]]
}

@test "what each VM took is shown with the verdict" {
	program vms <<<'echo 1..1; echo "# 6.1: 12.3 s in all"; echo "# another note"; echo ok 1 - a'
	run_suites unit
	[ "$status" -eq 0 ]
	[[ $output == *$'\n       6.1: 12.3 s in all\n'* ]]
	[[ $output != *"another note"* ]]
}

@test "only the named suites run" {
	program good <<<'echo 1..1; echo ok 1 - a'
	echo '@test "c" { false; }' >"$TESTS_DIR/cli/bad.bats"
	run_suites unit
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "1 passed, 0 failed, 0 skipped" ]
}

@test "one file of a suite runs by its name, and one that is not there is a failure" {
	program good <<<'echo 1..1; echo ok 1 - a'
	program other <<<'echo 1..1; echo not ok 1 - b; exit 1'
	echo '@test "c" { true; }' >"$TESTS_DIR/cli/good.bats"
	run_suites unit/test_good cli/good
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "2 passed, 0 failed, 0 skipped" ]
	run_suites unit/test_good unit/test_gone
	[ "$status" -eq 1 ]
	[[ $output == *"unit/test_gone: there is no such test"* ]]
	[ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ]
}

@test "a suite with a folder before it runs what was built there, and counts too" {
	program good <<<'echo 1..1; echo ok 1 - a'
	mkdir -p "$O/asan/tests/unit"
	printf '#!/bin/bash\necho 1..1\n[[ $O = */asan ]] && echo ok 1 - a\n' >"$O/asan/tests/unit/test_good"
	chmod +x "$O/asan/tests/unit/test_good"
	run_suites asan:unit unit
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "2 passed, 0 failed, 0 skipped" ]
	[[ $output == *"ok     asan:unit/test_good "* && $output == *"ok     unit/test_good "* ]]
}

@test "some files of a suite by a pattern, with or without what they end with" {
	program good <<<'echo 1..1; echo ok 1 - a'
	program gone <<<'echo 1..1; echo ok 1 - b'
	program bad <<<'echo 1..1; echo not ok 1 - c'
	echo '@test "d" { true; }' >"$TESTS_DIR/unit/good.bats"
	run_suites 'unit/test_go*'
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "2 passed, 0 failed, 0 skipped" ]
	run_suites 'unit/*.bats'
	[ "$(last_line)" = "1 passed, 0 failed, 0 skipped" ]
}

# meets OTHER: a test that passes where the other runs at the same time.
meets() {
	echo 'echo 1..1; touch "$0.here"; for i in {1..3000}; do'
	echo "[ ! -e \"\${0%/*}/test_$1.here\" ] || { echo ok 1 - $1; break; }; sleep 0.02; done"
}

@test "files run beside each other, as many as -j says, and are counted together" {
	program one < <(meets two)
	program two < <(meets one)
	program bad <<<'echo 1..2; echo ok 1 - a; echo why it failed; echo not ok 2 - b'
	program skips <<<'echo 1..1; echo "# skip: no such CPU"; echo "not ok 1 # SKIP c"'
	TEST_TIMEOUT=100 run_suites -j 2 unit
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "3 passed, 1 failed, 1 skipped" ]
	[[ $output == *"---- unit/test_bad"*"why it failed"*"unit/test_skips: c: no such CPU"* ]]
	rm "$O"/tests/unit/*.here
	TEST_TIMEOUT=2 run_suites -j 1 unit/test_one unit/test_two
	[ "$status" -eq 1 ]
	[[ $output == *"unit/test_one: ended by a signal or after the limit"* ]]
}

@test "a file whose process is killed is a failure, and the others are counted" {
	program good <<<'echo 1..1; echo ok 1 - a'
	program kills <<<'echo 1..1; kill -KILL "$(ps -o ppid= $PPID)"; echo ok 1 - b'
	run_suites unit/test_kills unit/test_good
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ]
	[[ $output == *"unit/test_kills: ended before its end"* ]]
}

@test "slow tests are left out, or run alone, as their tags say" {
	program good <<<'echo 1..1; echo ok 1 - quick'
	program slow <<<'echo 1..1; echo ok 1 - slow'
	echo '// test_tags=slow' >"$TESTS_DIR/unit/test_slow.c"
	printf '# bats file_tags=slow\n@test "a" { true; }\n' >"$TESTS_DIR/cli/all.bats"
	printf '@test "b" { true; }\n# bats test_tags=slow\n@test "c" { true; }\n@test "d" { true; }\n' \
		>"$TESTS_DIR/cli/some.bats"
	run_suites quick:unit quick:cli
	[ "$(last_line)" = "3 passed, 0 failed, 0 skipped" ]
	[[ $output != *test_slow* && $output != *cli/all* ]]
	run_suites slow:unit slow:cli
	[ "$(last_line)" = "3 passed, 0 failed, 0 skipped" ]
	[[ $output != *test_good* ]]
	run_suites unit cli
	[ "$(last_line)" = "6 passed, 0 failed, 0 skipped" ]
}

@test "the file that took longest the last time starts first" {
	program a <<<'echo 1..1; sleep 0.3; echo ok 1'
	program b <<<'echo 1..1; sleep 0.8; echo ok 1'
	run_suites -j 1 unit
	[[ $output == *test_a*test_b* ]]
	run_suites -j 1 unit
	[[ $output == *test_b*test_a* ]]
}

@test "what a file's quick tests took says nothing of its slow ones" {
	for name in a b; do
		printf '@test "quick" { true; }\n# bats test_tags=slow\n@test "slow" { true; }\n' >"$TESTS_DIR/cli/$name.bats"
	done
	printf '90 quick:cli/a\n10 quick:cli/b\n20 slow:cli/a\n80 slow:cli/b\n' >"$O/tests/seconds"
	run_suites -j 1 slow:cli
	[[ $output == *"ok     cli/b "*"ok     cli/a "* ]]
	printf '90 quick:cli/a\n10 quick:cli/b\n20 slow:cli/a\n80 slow:cli/b\n' >"$O/tests/seconds"
	run_suites -j 1 quick:cli
	[[ $output == *"ok     cli/a "*"ok     cli/b "* ]]
	# Their times are in it now, and those of the slow ones are still there.
	[ "$(sort "$O/tests/seconds" | grep -c ' slow:cli/[ab]$')" = 2 ]
	! grep -q '^90 \|^10 ' "$O/tests/seconds"
}

@test "traces of bats tests are kept where they are asked for" {
	echo '@test "a" { echo it >"$BATS_TEST_TMPDIR/t.fxt"; }' >"$TESTS_DIR/cli/keeps.bats"
	KEEP_TRACES=$BATS_TEST_TMPDIR/kept run_suites cli
	[ "$(find "$BATS_TEST_TMPDIR/kept" -name t.fxt | wc -l)" -eq 1 ]
}

@test "an option that there is not is refused" {
	run_suites -fast unit
	[ "$status" -eq 2 ]
	run_suites -j 0 unit
	[ "$status" -eq 2 ]
}

@test "a run that is ended ends its tests" {
	program hangs <<<'echo $$ >"$0.pid"; echo 1..1; sleep 100'
	"$BATS_TEST_DIRNAME/../run" unit >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
	runner=$!
	eventually 60 test -s "$O/tests/unit/test_hangs.pid"
	kill "$runner"
	! wait "$runner" || false
	gone "$(cat "$O/tests/unit/test_hangs.pid")"
}

@test "a failing test fails the run, and its output is shown whole" {
	program bad <<<'echo 1..2; echo ok 1 - a; echo why it failed; echo not ok 2 - b; exit 1'
	program good <<<'echo 1..1; echo ok 1 - c; echo quiet'
	run_suites unit
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "2 passed, 1 failed, 0 skipped" ]
	[[ $output == *"why it failed"* ]]
	[[ $output != *quiet* ]]
}

@test "what failed is named at once; of the long output of one that fails, what passed is left out" {
	program bad <<-'END'
		echo 1..5; echo of a; echo ok 1 - a; echo of b; echo ok 2 - b; echo why; echo not ok 3 - c
		echo more; echo ok 4 - d; echo of e; echo ok 5 - e; echo at the end; exit 1
	END
	program leaks <<<'echo 1..2; echo ok 1 - a; echo a leak; echo ok 2 - b; exit 1'
	run_suites unit
	[[ $output == *"FAILED unit/test_bad "*$'\n       not ok: c\n'*"---- unit/test_bad"* ]]
	[[ $output == *$'\nwhy\nnot ok 3 - c\nmore\n'*$'\nat the end'* ]]
	[[ $output != *"of "[abe]* ]]
	[[ $output == *"a leak"* ]]
}

@test "a failing bats test fails the run" {
	printf '@test "a" { true; }\n@test "b" { echo seen; false; }\n' >"$TESTS_DIR/cli/bad.bats"
	run_suites cli
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ]
	[[ $output == *seen* ]]
}

@test "a live test that fails is run once more, and what was wrong is shown" {
	mkdir "$TESTS_DIR/live"
	printf '@test "a" {\necho seen\nmkdir "$TESTS_DIR/once" || return 0\nfalse\n}\n' >"$TESTS_DIR/live/race.bats"
	echo '@test "b" { true; }' >"$TESTS_DIR/live/good.bats"
	echo '@test "c" { skip why; }' >"$TESTS_DIR/live/skips.bats"
	run_suites live
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "2 passed, 0 failed, 1 skipped" ]
	[[ $output == *"later  live/race "*"again  live/race "*"live/race, at its first try"*seen* ]]
}

@test "a live test that fails twice has failed, and another's is not run again" {
	mkdir "$TESTS_DIR/live"
	echo "@test a { echo a >>$BATS_TEST_TMPDIR/tries; false; }" >"$TESTS_DIR/live/bad.bats"
	echo "@test b { echo b >>$BATS_TEST_TMPDIR/tries; false; }" >"$TESTS_DIR/cli/bad.bats"
	printf '@test "c" { skip why; }\n@test "d" { false; }\n' >"$TESTS_DIR/live/skips.bats"
	run_suites live cli
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "0 passed, 3 failed, 1 skipped" ]
	[ "$(sort "$BATS_TEST_TMPDIR/tries" | tr -d '\n')" = aab ]
}

@test "tests that a dying program announced and did not reach have failed" {
	program dies <<<'echo 1..3; echo ok 1 - a; kill -SEGV $$'
	run_suites unit
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 2 failed, 0 skipped" ]
}

@test "a program that dies before and after its results counts as failed" {
	program early <<<'exit 3'
	program late <<<'echo 1..1; echo ok 1 - a; exit 3'
	run_suites unit
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 2 failed, 0 skipped" ]
	[[ $output == *"unit/test_late: ended with status 3"* ]]
}

@test "a program that was not built, or says nothing, counts as failed" {
	touch "$TESTS_DIR/unit/test_absent.c"
	program silent <<<'true'
	run_suites unit
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "0 passed, 2 failed, 0 skipped" ]
}

@test "a program that hangs is ended at the limit and counts as failed" {
	program hangs <<<'echo 1..1; sleep 100'
	TEST_TIMEOUT=1 run_suites unit
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "0 passed, 1 failed, 0 skipped" ]
	[[ $output == *"after the limit of 1 s"* ]]
}

@test "a bats file that does not load, or holds no test, counts as failed" {
	echo '@test "a" { true;' >"$TESTS_DIR/cli/syntax.bats"
	printf 'load nothing-there\n@test "a" { true; }\n' >"$TESTS_DIR/cli/load.bats"
	echo '# empty' >"$TESTS_DIR/cli/empty.bats"
	run_suites cli
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "0 passed, 3 failed, 0 skipped" ]
}

@test "a skipped test is counted and listed with its reason, and is not a failure" {
	program skips <<<'echo 1..2; echo "# skip: no such CPU"; echo "not ok 1 # SKIP a"; echo "ok 2 - b"'
	printf '@test "c" { skip "not root"; }\n@test "d" { skip; }\n' >"$TESTS_DIR/cli/skips.bats"
	run_suites unit cli
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "1 passed, 0 failed, 3 skipped" ]
	[[ $output == *"unit/test_skips: a: no such CPU"* ]]
	[[ $output == *"cli/skips: c: not root"* ]]
	[[ $output == *"cli/skips: d: no reason given"* ]]
}

@test "the reason of one skip is not given for the next" {
	program skips <<'END'
echo 1..3
echo "# skip: no such CPU"; echo "not ok 1 # SKIP a"
echo "not ok 2 # SKIP b"
echo "ok 3 - c"
END
	run_suites unit
	[[ $output == *"unit/test_skips: b: no reason given"* ]]
}

@test "a skip as newer versions of cmocka write it" {
	program skips <<'END'
echo 1..3
echo "# skip: no such CPU"; echo "ok 1 # SKIP a"
echo "ok 2 - b"
echo "# skip: no such bus"; echo "ok 3 - c # SKIP"
END
	run_suites unit
	[ "$(last_line)" = "1 passed, 0 failed, 2 skipped" ]
	[[ $output == *"unit/test_skips: a: no such CPU"* ]]
	[[ $output == *"unit/test_skips: c: no such bus"* ]]
}

@test "cmocka itself: passed, failed, skipped and crashed tests" {
	pkg-config --exists cmocka || skip "no cmocka"
	touch "$TESTS_DIR/unit/test_real.c"
	${CC:-cc} -x c -o "$O/tests/unit/test_real" - -lcmocka <<'END'
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
static void passes(void **state) { (void)state; }
static void fails(void **state) { (void)state; assert_int_equal(1, 2); }
static void skips(void **state) { (void)state; print_message("# skip: not today\n"); skip(); }
static void crashes(void **state) { (void)state; *(volatile int *)8 = 1; }
int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(passes), cmocka_unit_test(fails),
					   cmocka_unit_test(skips), cmocka_unit_test(crashes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
END
	run_suites unit
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 2 failed, 1 skipped" ]
	[[ $output == *"unit/test_real: skips: not today"* ]]
}

# runner: a suite vm with a runner of its own, the shell script on stdin.
runner() {
	mkdir -p "$TESTS_DIR/vm"
	{ echo '#!/bin/bash'; cat; } >"$TESTS_DIR/vm/run"
	chmod +x "$TESTS_DIR/vm/run"
}

@test "a suite with a runner of its own is counted by its TAP" {
	runner <<'END'
echo 1..4; echo "ok 1 6.1: a"; echo "# # skip: inside"; echo "not ok 2 6.1: b"
echo "ok 3 6.12: c # skip no PMU"
END
	touch "$TESTS_DIR/vm/test_inside.c"
	run_suites vm
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 2 failed, 1 skipped" ]
	[[ $output == *"vm: 6.12: c: no PMU"* ]]
}

@test "a suite that cannot run here is one skip with its reason, and no failure" {
	runner <<<'echo "1..0 # skip no qemu"; echo "# skip: no qemu"'
	run_suites vm
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "0 passed, 0 failed, 1 skipped" ]
	[[ $output == *"vm: all of it: no qemu"* ]]
}

@test "a run in which no test ran fails" {
	run_suites unit cli
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "0 passed, 0 failed, 0 skipped" ]
	program skips <<<'echo 1..1; echo "not ok 1 # SKIP a"'
	run_suites unit
	[ "$status" -eq 1 ]
}
