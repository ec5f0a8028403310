#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# docs/dev/architecture.md is true: who includes whom, and whose each library is.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	page=docs/dev/architecture.md
}

# rows HEADING: the first and the last cell of the table below it, "cell: cell"
rows() {
	awk -F ' *[|] *' -v heading="## $1" '
		/^## / { here = $0 == heading; next }
		here && NF >= 4 && $2 !~ /^-|^folder$|^header$/ { print $2 ": " $(NF - 1) }' "$page" |
		sed 's/: *$/:/' | sort
}

# includes: "FILE HEADER" of each #include of user/
includes() {
	grep -rHoE --include='*.[ch]' '^#include ["<][^">]+' user |
		sed -E 's|^user/([^:]+):#include ["<]|\1 |'
}

# of_each: "KEY VALUE" lines to "KEY: VALUE VALUE...", both sorted
of_each() {
	sort -u | awk '{ if ($1 != key) { if (key != "") print line; key = $1; line = key ":" }
		if ($2 != "-") line = line " " $2 } END { print line }'
}

@test "what the folders of user/ include of each other" {
	rows Folders >"$BATS_TEST_TMPDIR/said"
	includes | awk '
		split($1, from, "/") > 1 {
			print from[1], "-"
			n = split($2, to, "/")
			if (n > 1 && to[1] != from[1] && to[1] != "util" && system("test -d user/" to[1]) == 0)
				print from[1], to[1]
		}' | of_each >"$BATS_TEST_TMPDIR/is"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/said")" -gt 15 ]
	diff "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/is"
}

# Headers that declare functions of several files. elf_internal.h: the tables of an image, which the files of target/elf
# and target/unwind fill.
shared_headers="sampled/goroutines_internal session/session_internal
stack/stack_internal stack/tree_passes target/elf/elf_internal trigger/trigger_internal view/account
view/report_internal"

# A .c and the .h of its name are one file; a header of several files would hide what they take from each other.
@test "no circle among the files of user/" {
	includes | awk '
		{ sub(/\.[ch]$/, "", $1); ours = sub(/\.h$/, "", $2) && (getline line < ("user/" $2 ".h")) > 0 }
		ours && $1 != $2 { print $2, $1 }' \
		>"$BATS_TEST_TMPDIR/pairs"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/pairs")" -gt 1000 ]
	tsort "$BATS_TEST_TMPDIR/pairs" >"$BATS_TEST_TMPDIR/order" 2>"$BATS_TEST_TMPDIR/found" ||
		{ cat "$BATS_TEST_TMPDIR/found"; false; }
}

@test "a header's functions are those of the .c of its name, but for the headers that are listed" {
	find user -name '*.h' | while read -r header; do
		name=${header#user/} name=${name%.h}
		[ -e "user/$name.c" ] || [[ " ${shared_headers//$'\n'/ } " == *" $name "* ]] ||
			! grep -HnE '^[a-z][a-z0-9_ ]*[ *][a-z0-9_]+\(' "$header" | grep -vE ':(static|typedef) ' || exit 1
	done
}

@test "whose each library is" {
	rows Libraries >"$BATS_TEST_TMPDIR/said"
	cut -d: -f1 "$BATS_TEST_TMPDIR/said" >"$BATS_TEST_TMPDIR/headers"
	includes | awk 'NR == FNR { known[$1]; next }
		$2 in known { sub(/\/[^\/]*$/, "", $1); print $2, $1 }' "$BATS_TEST_TMPDIR/headers" - |
		of_each >"$BATS_TEST_TMPDIR/is"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/said")" -gt 10 ]
	diff "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/is"
}

@test "frames are changed by their own module, by the operations and on the common path, and nowhere else" {
	local others
	others=$(find user/stack -name '*.c' | grep -vE '/(frames[a-z_]*|stack)\.c$')
	[ "$(wc -w <<<"$others")" -gt 5 ]
	# shellcheck disable=SC2086 # file names
	! grep -nE '\b(top|frame|caller|base)->(call\.[a-z_]+|return_ip|resume_ip|role|slack|is_resolving) *[-+|&]?=[^=]' $others
}

# The walk through the code names functions as `name()`.
@test "the functions that the page names are in the code" {
	grep -oE '`[a-z_]+\(\)`' "$page" | tr -d '`()' | sort -u >"$BATS_TEST_TMPDIR/named"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -gt 20 ]
	while read -r name; do
		grep -rqE "\b$name\(" --include='*.[ch]' user bpf || { echo "$page: no $name()"; return 1; }
	done <"$BATS_TEST_TMPDIR/named"
}
