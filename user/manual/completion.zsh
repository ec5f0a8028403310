#compdef mtbpf
# SPDX-License-Identifier: MIT
# zsh completion for mtbpf.

# This file is read as the function's first call, by which all of it has to last.
typeset -g _mtbpf_rows='
@rows@
'

# Sets `specs` to what _arguments takes: '(-output -o)-output[...]:FILE:_mtbpf_files', where the names in () exclude
# each other. For "mtbpf" it is what _describe takes: 'attach:...'.
_mtbpf_table() {
	setopt localoptions extendedglob
	local -a row
	local line value name help before
	specs=()
	for line in ${(f)_mtbpf_rows}; do
		row=("${(@ps:\t:)line}")
		[[ $row[1] == $1 ]] || continue
		help=${row[6]//(#m)[][\\:]/\\$MATCH}
		if [[ $1 == mtbpf ]]; then
			specs+=("$row[4]:$help")
			continue
		fi
		case $row[2] in
		none) value= ;;
		any) value=": " ;;
		choices*) value=":(${row[2]#choices})" ;;
		*) value=":_mtbpf_$row[2]" ;;
		esac
		[[ -z $value ]] || value=":${row[5]//(#m)[][\\:]/\\$MATCH}$value"
		before="($row[4])"
		case $row[3] in
		many) before="*" ;;
		maybe) value=":$value" ;;
		alone) before="(-)" ;;
		esac
		for name in ${=row[4]}; do
			specs+=("$before${name}[$help]$value")
		done
	done
}

_mtbpf_commands() {
	local -a specs
	_mtbpf_table mtbpf
	_describe -t commands command specs
}

_mtbpf_pids() {
	local -a pids
	pids=(${${${(f)"$(ps -eo pid=,comm= 2>/dev/null)"}## #}/ ##/:})
	_describe -t processes process pids
}

_mtbpf_names() {
	local -aU names
	names=(${(f)"$(ps -eo comm= 2>/dev/null)"})
	_describe -t names 'process name' names
}

_mtbpf_containers() {
	local -a names
	names=(${(f)"$(docker ps --format '{{.Names}}' 2>/dev/null || podman ps --format '{{.Names}}' 2>/dev/null)"})
	_describe -t containers container names
}

_mtbpf_cgroups() {
	_path_files -/ -W /sys/fs/cgroup
}

_mtbpf_files() {
	_files
}

_mtbpf_folders() {
	_files -/
}

# "FILE:NAME" is a function of one file, "ns::name" is not.
_mtbpf_symbols() {
	local -a whom functions
	local i file name=$PREFIX
	case $PREFIX in
	(usdt:*|line:*|addr:*|*::*) ;;
	(*:*) file=${PREFIX%%:*} name=${PREFIX#*:} ;;
	esac
	# Lists functions of the process that the command line names; mtbpf finds the process.
	for ((i = 1; i < $#words; i++)); do
		case ${words[i]#-} in
		(-pid|pid|-p|p|-name|name|-n|n|-container|container|-k8s-pod|k8s-pod|-cgroup|cgroup)
			whom+=($words[i] ${(Q)words[i+1]}) ;;
		esac
	done
	(($#whom)) || { _message 'function (known once the process is)'; return }
	functions=(${(fu)"$(timeout 2 $_mtbpf_program list $whom "$name*" 2>/dev/null </dev/null |
		awk -v file="$file" 'index($3, file) == 1 {
			sub(/\(.*/, "", $4)
			print file (file == "" ? "" : ":") $4
		}')"})
	compadd -a functions
}

_mtbpf_words() {
	case $1 in
	help) _mtbpf_commands ;;
	list) _mtbpf_symbols ;;
	decode|report|diff|view) _files ;;
	esac
}

_mtbpf() {
	local -a specs
	local _mtbpf_program=${(Q)words[1]} command=$words[2]
	if ((CURRENT == 2)); then
		_mtbpf_commands
		return
	fi
	shift words
	((CURRENT--))
	_mtbpf_table $command
	case $command in
	run) specs+=('(-)*:::program:_normal') ;;
	*) specs+=("*: : _mtbpf_words $command") ;;
	esac
	_arguments -S $specs
}

_mtbpf "$@"
