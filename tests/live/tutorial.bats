# SPDX-License-Identifier: MIT
# docs/user/tutorial.md: each command in it does what it says, and what it shows of an output has that shape.

load ../helpers

setup() {
	tutorial=$BATS_TEST_DIRNAME/../../docs/user/tutorial.md
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# The tutorial's blocks: 1.sh, and 1.shown where an output follows.
extract() {
	awk '
	/^```sh$/ { file = ++n ".sh"; next }
	/^```$/ && file { close(file); file = ""; next }
	/^```$/ && n { file = n ".shown"; next }
	file { print >file }' "$tutorial"
}

# What is the same in any run: D a time, N a number, X an address; rows and bars of tables. Which machine tells
# what interrupts, quotas and the hypervisor took is its own.
shape() {
	sed -E 's/\b[0-9a-f]{16}\b/X/; s/[0-9]+(\.[0-9]+)? (ns|us|ms|s)\b/D/g; s/[0-9]+(\.[0-9]+)?/N/g
		s/ · (interrupts|throttled|stolen) D//g; s/ +/ /g; s/^ D - D : N.*/BAR/; s/^ [+-]?D D D .*/ROW/; s/^reason: .*/REASON/' "$@"
}

# A program of the tutorial that Ctrl-C ends, once it has said that it works. The page of ui.perfetto.dev reads from
# one port only, and another test may serve there.
interrupted() {
	local log=$PWD/interrupted.log pid tries
	for ((tries = 60; tries; tries--)); do
		begin_log "$log"
		env --default-signal=INT "$O/mtbpf" "$@" >"$log" 2>&1 3>&- &
		pid=$!
		started+=("$pid")
		eventually 60 grep -Eq '127\.0\.0\.1|^waiting' "$log" || { cat "$log"; return 1; }
		grep -q 'Address already in use' "$log" || break
		sleep 0.5
	done
	kill -INT "$pid"
	eventually 30 gone "$pid"
	wait "$pid" || { cat "$log"; return 1; }
}

# What the tutorial's commands mean here.
sudo() { "$@"; }
make() { command make --no-print-directory -C "$BATS_TEST_DIRNAME/../.." O="$O" "$@"; }
mtbpf() {
	case $1 in
	view) interrupted "$@" -no-open -port 0 ;;
	record) interrupted "$@" ;;
	# Without Intel PT it says so by its status.
	check) timeout 60 "$O/mtbpf" "$@" || [ $? -eq 1 ] ;;
	*) timeout 100 "$O/mtbpf" "$@" ;;
	esac
}

@test "every command of the tutorial works, and prints what is shown" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	[ -x "$O/programs/causes" ] || skip "the sample programs are not built"
	! has_pt || skip "what is shown is what -source sample prints"
	ln -s "$O" build
	extract
	[ -e 11.sh ]
	for ((n = 1; ; n++)); do
		[ -e $n.sh ] || break
		echo "--- block $n"; cat $n.sh
		# bats ends the test where a command of the block fails.
		source ./$n.sh >$n.real 2>$n.err 3>&- || { cat $n.real $n.err; return 1; }
		[ -z "${service:-}" ] || started=("$service")
		[ -e $n.shown ] || continue
		shape $n.real >$n.shape
		cat $n.real
		while IFS= read -r line; do
			# The cause is that of the machine, where that is busy.
			[ "$line" = ... ] || [ "$line" = REASON ] || [ "$line" = ROW ] || grep -qxF -- "$line" $n.shape ||
				{ echo "not in the output: $line"; cat $n.err; return 1; }
		done < <(shape $n.shown)
	done
	# What the text promises of these.
	grep -q '^causes;' slow.folded
	grep -q ' one_iter$' calls.txt
	[ -s slow.mtbpf/meta.json ]
	eventually 5 gone "$service"
}

@test "the tutorial's links lead somewhere, and all documents are in the README" {
	cd "$BATS_TEST_DIRNAME/../.."
	for file in README.md docs/*/*.md; do
		while read -r link; do
			[ -e "$(dirname "$file")/$link" ] || { echo "$file: $link"; return 1; }
		done < <(grep -oE '\]\([a-z.][A-Za-z0-9_./-]*\)' "$file" | sed 's/^](//; s/)$//' | grep -v '^http')
		[ "$file" = README.md ] || grep -q "$file" README.md || { echo "README.md has no $file"; return 1; }
	done
}
