# SPDX-License-Identifier: MIT
# record -dir: what does not belong together is said in one line, with what to do; nothing is written.

load ../helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# refused MESSAGE... -- OPTION...
refused() {
	local said=()
	while [ "$1" != -- ]; do
		said+=("$1")
		shift
	done
	shift
	mtbpf_run record -pid $$ "$@"
	[ "$status" -eq 2 ]
	complains "${said[@]}"
	[ ! -e d ]
}

@test "what is about a folder needs one" {
	refused needs-dir hint add-dir -- -keep 3
	refused needs-dir hint add-dir -- -max-per-hour 3
	refused needs-dir hint add-dir -- -max-size 3M
	refused needs-dir hint add-dir -- -metrics 127.0.0.1:0
}

@test "what is about one capture does not go with a folder" {
	refused output-and-dir hint leave-out-output -- -dir d -o x.mtbpf
	refused multi-snapshot-and-dir hint dir-makes-recordings -- -dir d -multi-snapshot 3
}

@test "numbers that make no sense" {
	refused keep-range hint keep-default 20 -- -dir d -keep 0
	refused max-per-hour-range "*" 1000000 hint no-limit-per-hour -- -dir d -max-per-hour 1000001
}

@test "only this machine may ask for metrics" {
	mtbpf_run record -pid $$ -dir d -metrics 0.0.0.0:9464
	[ "$status" -eq 2 ]
	complains bad-metrics-address hint metrics-addresses
}

@test "a folder that cannot be" {
	touch file
	mtbpf_run record -pid $$ -dir file
	[ "$status" -ne 0 ]
	complains cannot-keep-recordings file "Not a directory" hint choose-with-dir
	mtbpf_run record -pid $$ -dir no/such
	[ "$status" -ne 0 ]
	complains cannot-keep-recordings no/such "No such file or directory" hint parent-folder-must-exist
}

@test "a process that is not there: said before anything is written" {
	[ ! -e /proc/1234567 ] || skip "there is a process 1234567 here"
	mtbpf_run record -pid 1234567 -dir d
	[ "$status" -eq 2 ]
	complains no-pid 1234567 hint pids-listed
	[ ! -e d ]
}

@test "attach has none of it" {
	mtbpf_run attach -pid $$ -dir d
	[ "$status" -eq 2 ]
	complains unknown-option "*" -dir
}
