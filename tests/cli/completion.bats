# SPDX-License-Identifier: MIT
# Completion in bash, zsh and fish: commands, options and what they take, from the tables that mtbpf goes by.

load ../helpers

setup() {
	script=${O:?}/completion/mtbpf
	[ -e "$script" ] || skip "mtbpf is not built"
	PATH=$O:$PATH
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

# proposed LINE: what bash proposes at its end, a line each.
proposed() {
	bash --norc -c '
		. "$1"
		COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$'"' \\t\\n\"><=;|&(:'"'
		_mtbpf mtbpf "" ""
		[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' - "$script" "$1"
}

# proposes LINE WORD...: these, in any order, and nothing else.
proposes() {
	local line=$1 out
	shift
	out=$(proposed "$line" | sort)
	echo "'$line': $out"
	[ "$out" = "$(printf '%s\n' "$@" | sort)" ]
}

# The names of a command's options as its help has them, a line each.
options() {
	"$O/mtbpf" "$1" -help | sed '1,/^options:/d' | sed -n 's/^  \(-.*\)/\1/p' |
		grep -oE '^(-[a-z0-9-]+(, )?)+' | tr -d ' ' | tr , '\n'
}

@test "bash: mtbpf's completion is for mtbpf, and leaves nothing but its own names" {
	run bash --norc -c '. "$1"; complete -p mtbpf; compgen -A function | grep -v "^_mtbpf"; compgen -v' - "$script"
	[[ ${lines[0]} == "complete -F _mtbpf mtbpf" ]]
	! grep -qx -e words -e typed -e value -e table <<<"$output" || false
}

@test "bash: commands" {
	# shellcheck disable=SC2046
	proposes "mtbpf " $("$O/mtbpf" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx mtbpf)
	proposes "mtbpf re" record report
	proposes "mtbpf help v" version view
	proposes "mtbpf nothing "
}

@test "bash: each command's options, all of them" {
	for name in $("$O/mtbpf" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx help); do
		# shellcheck disable=SC2046
		proposes "mtbpf $name -" $(options "$name" | grep -vx -e -h)
	done
	proposes "mtbpf attach -d" -delay-thresh -duration-thresh
	proposes "mtbpf attach -pid 1 --dur" --duration-thresh
	proposes "mtbpf diff -j"
}

@test "bash: what an option takes" {
	proposes "mtbpf attach -source " auto pt sample soft
	proposes "mtbpf attach -source=s" sample soft
	proposes "mtbpf attach --source s" sample soft
	proposes "mtbpf decode x -format t" text
	proposes "mtbpf attach -timeout "
	proposes "mtbpf attach -pid $$" $$
	touch 'a trace.fxt' b.fxt
	mkdir folder
	proposes "mtbpf attach -o b" b.fxt
	proposes "mtbpf report " 'a trace.fxt' b.fxt folder
	proposes "mtbpf attach -children -o f" folder
	proposes "mtbpf record -dir " folder
	proposes "mtbpf run -- ./b" ./b.fxt 2>/dev/null || proposes "mtbpf run -- true b" b.fxt
	proposed "mtbpf run -s x -- tru" | grep -qx true
}

@test "bash: processes' names, and the functions of the one that the line names" {
	[ -x "$O/programs/service" ] || skip "the sample programs are not built"
	start service -scale small
	proposed "mtbpf attach -name serv" | grep -qx service
	proposes "mtbpf attach -pid $target -symbol one_" one_iter
	proposes "mtbpf watch -p $target -s service:one_" one_iter
	proposes "mtbpf list -pid $target one_" one_iter
	proposes "mtbpf attach -pid $target -symbol no_such_"
	proposes "mtbpf attach -symbol one_"
}

# shows LINE PATTERN...: zsh does, one after the other.
shows() {
	timeout 60 zsh -f "$BATS_TEST_DIRNAME/completion/type.zsh" "$O/completion" "$@" ||
		{ echo "zsh does not show that"; return 1; }
}

@test "zsh: commands, options and what they take" {
	command -v zsh >/dev/null || skip "zsh is missing"
	touch only.fxt
	shows "mtbpf re" "record*-- *report*-- *<mtbpf re>" \
		"mtbpf help ver" "<mtbpf help version >" \
		"mtbpf report -" "-folded*-- *-json*-- *<mtbpf report ->" \
		"mtbpf attach -d" "<mtbpf attach -d-thresh>" \
		"mtbpf attach -sour" "<mtbpf attach -source >" \
		"mtbpf attach -source so" "<mtbpf attach -source soft >" \
		"mtbpf decode x -format t" "<mtbpf decode x -format text >" \
		"mtbpf attach -pid 1 -o on" "<mtbpf attach -pid 1 -o only.fxt >" \
		"mtbpf report on" "<mtbpf report only.fxt >" \
		"mtbpf run -symbol x -- unlin" "<mtbpf run -symbol x -- unlink >"
}

@test "zsh: the functions of the process that the line names" {
	command -v zsh >/dev/null || skip "zsh is missing"
	[ -x "$O/programs/service" ] || skip "the sample programs are not built"
	start service -scale small
	shows "mtbpf attach -pid $target -symbol one_" "<mtbpf attach -pid $target -symbol one_iter >" \
		"mtbpf watch -p $target -s service:one_" "<mtbpf watch -p $target -s service:one_iter >"
}

@test "zsh: each command's options, all of them, in a form that it reads" {
	command -v zsh >/dev/null || skip "zsh is missing"
	zsh -fn "$O/completion/_mtbpf"
	lines=()
	for name in $("$O/mtbpf" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx help); do
		lines+=("mtbpf $name -he" "<mtbpf $name -help >")
		specs=$(zsh -fc '_arguments() { print -rl -- "$@"; }; words=(mtbpf $2 "") CURRENT=3; . $1' - \
			"$O/completion/_mtbpf" "$name")
		for option in $(options "$name" | grep -vx -e -h); do
			grep -qF -- "$option[" <<<"$specs" || { echo "$name has no $option"; return 1; }
		done
	done
	shows "${lines[@]}"
}

# fish_proposes LINE WORD...: what fish proposes at its end, in any order, without what it says of them. fish 4
# adds words that have the typed letters elsewhere than at their begin: not those.
fish_proposes() {
	local line=$1 out
	shift
	out=$(fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$O/completion/mtbpf.fish" "$line" |
		cut -f1 | awk -v typed="${line##* }" 'index($0, typed) == 1' | sort)
	echo "'$line': $out"
	[ "$out" = "$(printf '%s\n' "$@" | sort)" ]
}

@test "fish: commands, options and what they take" {
	command -v fish >/dev/null || skip "fish is missing"
	touch only.fxt
	mkdir folder
	fish_proposes "mtbpf re" record report
	fish_proposes "mtbpf help ver" version
	fish_proposes "mtbpf attach -d" -delay-thresh -duration-thresh
	fish_proposes "mtbpf attach -source s" sample soft
	fish_proposes "mtbpf attach -source=s" -source=sample -source=soft
	fish_proposes "mtbpf attach -timeout "
	fish_proposes "mtbpf attach -pid $$" $$
	fish_proposes "mtbpf attach -o o" only.fxt
	fish_proposes "mtbpf report " folder/ only.fxt
	fish_proposes "mtbpf record -dir " folder/
	fish_proposes "mtbpf run -symbol x -- unlin" unlink
	fish_proposes "mtbpf run -symbol x -- true o" only.fxt
	fish_proposes "mtbpf run -symbol x -- true -sym"
}

@test "fish: the functions of the process that the line names" {
	command -v fish >/dev/null || skip "fish is missing"
	[ -x "$O/programs/service" ] || skip "the sample programs are not built"
	start service -scale small
	fish_proposes "mtbpf attach -pid $target -symbol one_" one_iter
	fish_proposes "mtbpf watch -p $target -s service:one_" service:one_iter
	fish_proposes "mtbpf list --pid $target one_" one_iter
	fish_proposes "mtbpf attach -symbol one_"
}

@test "fish: each command's options, all of them" {
	command -v fish >/dev/null || skip "fish is missing"
	fish --no-execute "$O/completion/mtbpf.fish"
	for name in $("$O/mtbpf" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx help); do
		# shellcheck disable=SC2046
		fish_proposes "mtbpf $name -" $(options "$name" | grep -vx -e -h)
	done
}
