# SPDX-License-Identifier: MIT
# .ci/run with make replaced: its closing line and exit code for each way a step can end.

setup() {
	bin=$BATS_TEST_TMPDIR/bin
	mkdir -p "$bin"
	export PATH=$bin:$PATH
}

# make CASES: what the replaced make does, as the body of a case on its arguments.
fake_make() {
	printf '#!/bin/bash\ncase "$*" in\n%s\nesac\n' "$1" >"$bin/make"
	chmod +x "$bin/make"
}

ci() {
	run "$BATS_TEST_DIRNAME/../../.ci/run"
	printf '%s\n' "$output"
	last=${lines[-1]}
}

@test "all is well: one line that counts both runs comes last, and the exit code is 0" {
	fake_make '"test WERROR=1 KEEP"*) echo "5 passed, 0 failed, 2 skipped"; echo "make: bye" ;;
		"test-rest WERROR=1"*) echo "7 passed, 0 failed, 1 skipped" ;;'
	ci
	[ "$status" -eq 0 ]
	[ "$last" = "12 passed, 0 failed, 3 skipped" ]
}

@test "a failed test of either run is counted once" {
	fake_make '"test WERROR=1 KEEP"*) echo "5 passed, 1 failed, 2 skipped"; exit 2 ;;
		"test-rest WERROR=1"*) echo "7 passed, 2 failed, 0 skipped"; exit 2 ;;'
	ci
	[ "$status" -eq 1 ]
	[ "$last" = "12 passed, 3 failed, 2 skipped" ]
}

@test "a wrong format is a failure beside the tests" {
	fake_make 'format-check) exit 2 ;; test*) echo "5 passed, 0 failed, 0 skipped" ;;'
	ci
	[ "$status" -eq 1 ]
	[ "$last" = "10 passed, 1 failed, 0 skipped" ]
}

@test "a failed build ends it: no test ran" {
	fake_make '-j2*) exit 2 ;; test*) echo "5 passed, 0 failed, 0 skipped" ;;'
	ci
	[ "$status" -eq 1 ]
	[ "$last" = "0 passed, 1 failed, 0 skipped" ]
}

@test "tests that never come to their closing line are a failure" {
	fake_make '"test WERROR=1 KEEP"*) echo "5 passed, 0 failed, 0 skipped" ;;
		"test-rest WERROR=1"*) echo "cannot link"; exit 2 ;;'
	ci
	[ "$status" -eq 1 ]
	[ "$last" = "5 passed, 1 failed, 0 skipped" ]
}
