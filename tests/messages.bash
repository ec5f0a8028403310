# SPDX-License-Identifier: MIT
# Compares output with the program's messages, whose wording is in tests/messages, and nowhere else in these tests.
declare -gA messages=()

load_messages() {
	local line
	while IFS= read -r line; do
		case $line in
		'' | '#'*) ;;
		*) messages[${line%%: *}]=${line#*: } ;;
		esac
	done <"${BASH_SOURCE[0]%/*}/messages"
}

# escape TEXT: sets $escaped, a pattern for [[ ]] in which only * is special.
escape() {
	escaped=${1//\\/\\\\} escaped=${escaped//\?/\\?} escaped=${escaped//\[/\\[} escaped=${escaped//\(/\\(}
}

# pattern_of NAME [ARG...]: sets $pattern, for [[ ]], to the text of tests/messages with this name. The arguments take
# the places of %s, %d and so on; a missing one is any text, * in one is any text, @NAME is the text with that name.
pattern_of() {
	local text arg built= conversion='^([^%]*)%([-#0 +]*[0-9*]*(\.[0-9*]+)?(h|l|z|j)*[diuxXscfp]|%)(.*)$'
	[ ${#messages[@]} -gt 0 ] || load_messages
	text=${messages[$1]-}
	[ -n "$text" ] || { echo "tests/messages has no '$1'"; return 1; }
	shift
	while [[ $text =~ $conversion ]]; do
		text=${BASH_REMATCH[5]}
		arg=%
		[ "${BASH_REMATCH[2]}" = % ] || { arg=${1-*}; shift $(($# > 0)); }
		[[ $arg != @* ]] || arg=${messages[${arg#@}]:?"tests/messages has no '$arg'"}
		escape "${BASH_REMATCH[1]}"
		built+=${escaped//\*/\\*}
		escape "$arg"
		built+=$escaped
	done
	[ $# -eq 0 ] || { echo "too many arguments: $*"; return 1; }
	escape "$text"
	pattern=$built${escaped//\*/\\*}
}

# says NAME [ARG...]: the output contains that message.
says() {
	local pattern
	pattern_of "$@" || return
	[[ $output == *$pattern* ]]
}

# complains NAME [ARG...] [hint NAME [ARG...]]: one line on what failed, which contains that message, and one after it on
# what to do, which contains that hint. Hints before it belong to warnings. A first word that is not a NAME is the text
# itself, and a second one that of the hint.
complains() {
	local pattern line error hint= errors=0 hints=0 said=()
	while [ $# -gt 0 ] && [ "$1" != hint ]; do
		said+=("$1")
		shift
	done
	if [[ ${said[0]} =~ ^[a-z][a-z0-9-]+$ ]]; then
		pattern_of "${said[@]}" || return
		error=$pattern
	else
		escape "${said[0]}"
		error=${escaped//\*/\\*}
		escape "${said[1]-}"
		hint=${escaped//\*/\\*}
	fi
	if [ "${1-}" = hint ]; then
		shift
		pattern_of "$@" || return
		hint=$pattern
	fi
	while IFS= read -r line; do
		case $line in
		mtbpf:*) ((++errors)); [[ $line == *$error* ]] || return 1 ;;
		hint:*) ((errors)) || continue; ((++hints)); [[ $hints -gt 1 || $line == *$hint* ]] || return 1 ;;
		esac
	done <<<"$output"
	[ "$errors" -eq 1 ] && [ "$hints" -ge 1 ]
}
