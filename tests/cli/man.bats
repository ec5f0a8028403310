# SPDX-License-Identifier: MIT
# The man pages: one a command, with every option of its help, and clean for groff and mandoc.

load ../helpers

setup() {
	pages=${O:?}/man
	[ -e "$pages/mtbpf.1" ] || skip "no man pages were made: scdoc is missing"
	cd "$BATS_TEST_TMPDIR"
}

# The commands that have options.
commands() {
	"$O/mtbpf" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx help
}

# The names of a command's options, a line each: "-output".
options() {
	"$O/mtbpf" "$1" -help | sed '1,/^options:/d' | sed -n 's/^  \(-.*\)/\1/p' |
		grep -oE '^(-[a-z0-9-]+(, )?)+' | tr -d ' ' | tr , '\n'
}

# page NAME: as it is read, without bold and underline, and each paragraph on one line.
page() {
	groff -Tascii -mandoc -P-cbou -rLL=400n -rHY=0 "$pages/$1.1" >"$1.txt"
}

@test "each command has a page, and each page a command" {
	expected=$(commands | sed 's/^/mtbpf-/'; echo mtbpf)
	[ "$(sort <<<"$expected")" = "$(cd "$pages" && ls ./*.1 | sed 's|^\./||; s/\.1$//' | sort)" ]
}

@test "a page has all options of the command's help" {
	command -v groff >/dev/null || skip "groff is missing"
	n=0
	for name in $(commands); do
		page "mtbpf-$name"
		for option in $(options "$name"); do
			grep -qE -- "^ +([^ ].*, )?$option(,| |\$)" "mtbpf-$name.txt" ||
				{ echo "mtbpf-$name(1) has no $option"; return 1; }
			n=$((n + 1))
		done
	done
	[ "$n" -gt 100 ]
}

@test "a page has the command's examples, word by word" {
	command -v groff >/dev/null || skip "groff is missing"
	for name in $(commands); do
		page "mtbpf-$name"
		while read -r line; do
			grep -qF -- "$line" "mtbpf-$name.txt" || { echo "$name: $line"; return 1; }
		done < <("$O/mtbpf" "$name" -help | sed '/^$/,$d')
	done
}

@test "mtbpf(1) has all commands and exit codes" {
	command -v groff >/dev/null || skip "groff is missing"
	page mtbpf
	for name in $(commands); do
		grep -qE "^ +mtbpf-$name\(1\)\$" mtbpf.txt
	done
	grep -qE "^ +mtbpf help\$" mtbpf.txt
	for code in 0 1 2 3; do
		grep -qE "^ +$code\$" mtbpf.txt
	done
}

@test "groff has nothing to say against them" {
	command -v groff >/dev/null || skip "groff is missing"
	for file in "$pages"/*.1; do
		run groff -Tutf8 -mandoc -ww -z "$file"
		[ "$status" -eq 0 ]
		[ -z "$output" ] || { echo "$file: $output"; return 1; }
	done
}

@test "mandoc has nothing to say against them" {
	command -v mandoc >/dev/null || skip "mandoc is missing"
	run mandoc -Tlint -W warning -Oman=%N.%S "$pages"/*.1
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "whatis finds a page by what its first lines say" {
	command -v lexgrog >/dev/null || skip "lexgrog (man-db) is missing"
	for file in "$pages"/*.1; do
		lexgrog "$file" >/dev/null || { echo "$file"; return 1; }
	done
}

@test "mtbpf(1) and the help of -symbol name every kind of trigger" {
	local kinds kind
	"$O/mtbpf" attach -help >help
	kinds=$(sed -n 's/^#define [A-Z_]*_PREFIX[ \t]*"\([a-z]*:\).*/\1/p' "$BATS_TEST_DIRNAME"/../../user/kernel/kernel.h)
	[ "$(wc -w <<<"$kinds")" -ge 7 ]
	for kind in $kinds line: addr: usdt:; do
		grep -q -- "\*$kind" "$BATS_TEST_DIRNAME/../../docs/man/mtbpf.scd" || { echo "mtbpf(1) lacks $kind"; return 1; }
		grep -e '-symbol, -trigger' help | grep -q "$kind" || { echo "the help lacks $kind"; return 1; }
	done
}
