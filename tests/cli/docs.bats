# SPDX-License-Identifier: MIT
# The commands of the documents and the man pages are ones that mtbpf takes: each is parsed to its end.

load ../helpers

setup() {
	root=$BATS_TEST_DIRNAME/../..
	cd "$BATS_TEST_TMPDIR"
}

# code_of FILE: the lines of its code blocks, indented or fenced, with continued lines joined.
code_of() {
	awk '/^```/ { fenced = !fenced; next }
		fenced || sub(/^    /, "") {
			if (sub(/ *\\$/, "")) { printf "%s", $0; next }
			print
		}' "$1"
}

# commands_in: of lines of code, each call of mtbpf, without sudo, its neighbours in a pipe, and remarks.
commands_in() {
	sed -E 's/^ *(\$ )?//; s/ +#.*//; s/^.*\| *mtbpf/mtbpf/; s/^sudo (setpriv .* )?mtbpf/mtbpf/; s/ [|>&].*//' |
		sed 's/\$service/4711/' | grep -E '^mtbpf [a-z]'
}

# An option is looked at where it stands, and -help ends it before anything is done. What the
# command line of a program is, after --, is no option.
parsed_to_the_end() {
	local line=$1 program=
	[[ $line != *" -- "* ]] || { program=" -- ${line#* -- }"; line=${line%% -- *}; }
	eval "run '$O/mtbpf' ${line#mtbpf } -help$program"
	[[ $status -eq 0 && $output == *usage:* ]] || { printf '%s\n' "$1" "$output"; return 1; }
}

@test "the documents' commands are mtbpf's, and so are their options" {
	n=0
	for file in "$root/README.md" "$root"/docs/*/*.md; do
		while read -r line; do
			parsed_to_the_end "$line" || { echo "$file"; return 1; }
			n=$((n + 1))
		done < <(code_of "$file" | commands_in)
	done
	[ "$n" -gt 30 ]
}

@test "the examples of the help and of the man pages are" {
	n=0
	for name in $("$O/mtbpf" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx help); do
		while read -r line; do
			parsed_to_the_end "$line"
			n=$((n + 1))
		done < <("$O/mtbpf" "$name" -help | sed '/^$/,$d' | commands_in)
	done
	[ "$n" -gt 25 ]
	while read -r line; do
		parsed_to_the_end "$line"
	done < <(code_of "$root/docs/man/mtbpf.scd" | commands_in)
}

# A message of the first column is in backquotes; ... is what differs, and each piece between is in the program.
@test "the messages that troubleshooting.md explains are mtbpf's" {
	strings -n 6 "$O/mtbpf" >strings
	n=0
	while read -r piece; do
		grep -qF -- "$piece" strings || { echo "no message has: $piece"; return 1; }
		n=$((n + 1))
	done < <(sed -n 's/^| `\([^`]*\)` |.*/\1/p' "$root/docs/user/troubleshooting.md" | sed "s/\.\.\./\n/g" |
		sed "s/^[ ,':]*//; s/[ ,':]*$//" | grep -E '.{6}')
	[ "$n" -gt 15 ]
}
