# SPDX-License-Identifier: MIT
# record -dir: what does not belong together is said in one line, with what to do; nothing is written.

load ../helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# refused TEXT HINT OPTION...
refused() {
	local text=$1 hint=$2
	shift 2
	mtbpf_run record -pid $$ "$@"
	[ "$status" -eq 2 ]
	complains "$text" "$hint"
	[ ! -e d ]
}

@test "what is about a folder needs one" {
	refused "need a folder" "-dir DIR" -keep 3
	refused "need a folder" "-dir DIR" -max-per-hour 3
	refused "need a folder" "-dir DIR" -max-size 3M
	refused "need a folder" "-dir DIR" -metrics 127.0.0.1:0
}

@test "what is about one capture does not go with a folder" {
	refused "-o and -dir" "named after the process" -dir d -o x.mtbpf
	refused "makes its own recording" "-multi-snapshot" -dir d -multi-snapshot 3
}

@test "numbers that make no sense" {
	refused "-keep must be at least 1" "0 sets no limit" -dir d -keep 0
	refused "at most 1000000" "0 sets no limit" -dir d -max-per-hour 1000001
}

@test "only this machine may ask for metrics" {
	mtbpf_run record -pid $$ -dir d -metrics 0.0.0.0:9464
	[ "$status" -eq 2 ]
	complains "neither a loopback address" "127.0.0.1:9464"
}

@test "a folder that cannot be" {
	touch file
	mtbpf_run record -pid $$ -dir file
	[ "$status" -ne 0 ]
	complains "cannot keep recordings in file: Not a directory" "choose a folder with -dir"
	mtbpf_run record -pid $$ -dir no/such
	[ "$status" -ne 0 ]
	complains "cannot keep recordings in no/such: No such file or directory" "must exist"
}

@test "a process that is not there: said before anything is written" {
	[ ! -e /proc/1234567 ] || skip "there is a process 1234567 here"
	mtbpf_run record -pid 1234567 -dir d
	[ "$status" -eq 2 ]
	complains "no process with pid 1234567" "pgrep"
	[ ! -e d ]
}

@test "attach has none of it" {
	mtbpf_run attach -pid $$ -dir d
	[ "$status" -eq 2 ]
	complains "-dir" ""
}
