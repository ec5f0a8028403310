# SPDX-License-Identifier: MIT
# bash completion for mtbpf.

_mtbpf_rows='
@rows@
'

# _mtbpf_table COMMAND: sets `table` to a line per name of an option: the name, what it takes, the choices.
_mtbpf_table() {
	table=$(awk -F '\t' -v command="$1" '$1 == command {
		for (i = split($4, names, " "); i; i--)
			print names[i], $2
	}' <<<"$_mtbpf_rows")
}

# The text before the cursor, unlike COMP_WORDS not cut at ':' and '='.
_mtbpf_typed() {
	local line=${COMP_LINE:0:COMP_POINT}
	typed=${line##*[[:space:]]}
}

_mtbpf_pids() {
	ps -eo pid= 2>/dev/null
}

_mtbpf_names() {
	ps -eo comm= 2>/dev/null | sort -u
}

_mtbpf_containers() {
	docker ps --format '{{.Names}}' 2>/dev/null || podman ps --format '{{.Names}}' 2>/dev/null
}

_mtbpf_cgroups() {
	(cd /sys/fs/cgroup 2>/dev/null && compgen -d -S / -- "$1")
}

# "FILE:NAME" is a function of one file, "ns::name" is not.
_mtbpf_symbols() {
	local i whom=() file= name=$1
	case $1 in
	usdt:* | line:* | addr:* | *::*) ;;
	*:*) file=${1%%:*} name=${1#*:} ;;
	esac
	# Lists functions of the process that the command line names; mtbpf finds the process.
	for ((i = 2; i < ${#words[@]} - 1; i++)); do
		case ${words[i]#-} in
		-pid | pid | -p | p | -name | name | -n | n | -container | container | -k8s-pod | k8s-pod | -cgroup | cgroup)
			whom+=("${words[i]}" "${words[i + 1]}")
			;;
		esac
	done
	[ ${#whom[@]} -eq 0 ] || timeout 2 "${words[0]}" list "${whom[@]}" "$name*" 2>/dev/null </dev/null |
		awk -v file="$file" 'index($3, file) == 1 {
			sub(/\(.*/, "", $4)
			print file (file == "" ? "" : ":") $4
		}' | sort -u
}

# _mtbpf_propose KIND CHOICES...: writes proposals for $value, the end of $typed, to COMPREPLY.
_mtbpf_propose() {
	local kind=$1 cut
	shift
	case $kind in
	choices) mapfile -t COMPREPLY < <(compgen -W "$*" -- "$value") ;;
	pids | names | containers) mapfile -t COMPREPLY < <(compgen -W "$("_mtbpf_$kind")" -- "$value") ;;
	cgroups) mapfile -t COMPREPLY < <(_mtbpf_cgroups "$value") ;;
	symbols) mapfile -t COMPREPLY < <(_mtbpf_symbols "$value") ;;
	folders) mapfile -t COMPREPLY < <(compgen -d -- "$value") ;;
	files) mapfile -t COMPREPLY < <(compgen -f -- "$value") ;;
	esac
	case $kind in
	folders | files) compopt -o filenames 2>/dev/null ;;
	cgroups) compopt -o nospace 2>/dev/null ;;
	esac
	# readline replaces only what is after the last word break.
	if [[ $value == *:* && $COMP_WORDBREAKS == *:* ]]; then
		cut=${value%"${value##*:}"}
		COMPREPLY=("${COMPREPLY[@]#"$cut"}")
	fi
}

# _mtbpf_takes NAME: sets `takes` to what the option NAME takes; fails if there is no such option.
_mtbpf_takes() {
	local row name=${1#-}
	name=-${name#-}
	while read -ra row; do
		if [ "${row[0]}" = "$name" ]; then
			takes=("${row[@]:1}")
			return 0
		fi
	done <<<"$table"
	return 1
}

# Proposes the names in `table`.
_mtbpf_options() {
	local dash= names
	[[ $typed != --* ]] || dash=-
	names=$(awk -v dash="$dash" '{ print dash $1 }' <<<"$table")
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$typed")
}

# Proposes the words of a command that are not options.
_mtbpf_words() {
	case $1 in
	help) _mtbpf_table mtbpf && _mtbpf_options ;;
	list) _mtbpf_propose symbols ;;
	decode | report | diff | view) _mtbpf_propose files ;;
	esac
}

# True if a word before the last is "--"; sets program_at to the word after it, `run`'s program.
_mtbpf_program_at() {
	local i
	for ((i = 2; i < ${#words[@]} - 1; i++)); do
		[ "${words[i]}" != -- ] || { program_at=$((i + 1)); return 0; }
	done
	return 1
}

_mtbpf_program() {
	if [ $((${#words[@]} - 1)) -eq "$program_at" ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$typed")
	else
		_mtbpf_propose files
	fi
}

_mtbpf() {
	local typed value words table program_at takes
	COMPREPLY=()
	_mtbpf_typed
	value=$typed
	read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
	[ -n "$typed" ] || words+=("")
	if [ ${#words[@]} -le 2 ]; then
		_mtbpf_table mtbpf
		_mtbpf_options
		return
	fi
	_mtbpf_table "${words[1]}"
	if [ "${words[1]}" = run ] && _mtbpf_program_at; then
		_mtbpf_program
	elif [[ $typed == -*=* ]] && _mtbpf_takes "${typed%%=*}"; then
		value=${typed#*=}
		_mtbpf_propose "${takes[@]}"
	elif [[ $typed == -* ]]; then
		_mtbpf_options
	elif _mtbpf_takes "${words[${#words[@]} - 2]}" && [ "${takes[0]}" != none ]; then
		_mtbpf_propose "${takes[@]}"
	else
		_mtbpf_words "${words[1]}"
	fi
}

complete -F _mtbpf mtbpf
