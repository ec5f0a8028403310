# SPDX-License-Identifier: MIT
# How far long work has come. What it reads comes through a pipe, which ends when the test has seen
# enough: however slow the machine is, it takes long enough.

load ../helpers

setup() {
	golden=$BATS_TEST_DIRNAME/../golden/perf_text
	cd "$BATS_TEST_TMPDIR"
	mkfifo pipe
	started=()
}

teardown() {
	end_started
}

# feed TEXT...: to whoever reads the pipe, which stays open.
feed() {
	exec 5>pipe
	cat "$@" >&5
}

@test "on a terminal: a line that goes with the work, and leaves nothing there" {
	command -v script >/dev/null || skip "script(1) is missing"
	script -qefc "$O/mtbpf decode - -o x.fxt <pipe" screen >/dev/null 2>&1 3>&- &
	started+=($!)
	feed "$golden/6.15-marks.txt"
	eventually 20 grep -q $'\r\033\\[Kreading [0-9]' screen
	exec 5>&-
	wait "${started[0]}"
	cat -v screen
	# What came last is gone before the first message.
	grep -q $'reading [0-9.]* [KB][^\r]*\r\033\\[Kx.fxt: ' screen
}

@test "elsewhere: a line every few seconds" {
	"$O/mtbpf" decode - -o x.fxt <pipe >out 2>err 3>&- &
	started+=($!)
	feed "$golden/6.15-marks.txt"
	eventually 20 grep -q '^reading [0-9]' err
	exec 5>&-
	wait "${started[0]}"
	! grep -q $'[\r\033]' err || false
}

# It has come to its work.
catches_ctrl_c() {
	((0x$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status") & 2))
}

@test "Ctrl-C: what is left is said, and no half trace" {
	echo before >x.fxt.gz
	for how in "" -q; do
		env --default-signal=INT "$O/mtbpf" decode $how - -o x.fxt.gz <pipe >out 2>err 3>&- &
		started+=($!)
		feed "$golden/6.15-marks.txt"
		eventually 20 catches_ctrl_c "$!"
		kill -INT $!
		wait $! || [ $? -eq 130 ]
		exec 5>&-
		[ ! -s out ]
		if [ "$how" ]; then
			[ ! -s err ]
		else
			[ "$(tail -1 err)" = "stopped: x.fxt.gz is not written" ]
		fi
		[ "$(cat x.fxt.gz)" = before ]
		! compgen -G 'x.fxt.gz.*' || false
	done
}
