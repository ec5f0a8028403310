# SPDX-License-Identifier: MIT
# fish completion for mtbpf.

function __mtbpf_wants_command
	test (count (commandline -opc)) -eq 1
end

# True if the command is one of the arguments. After "--" fish itself proposes no options.
function __mtbpf_in
	set -l words (commandline -opc)
	contains -- "$words[2]" $argv
end

function __mtbpf_runs_program
	set -l words (commandline -opc)
	test "$words[2]" = run; and contains -- -- $words
end

# Completes what is after "--" as if it were the whole command line.
function __mtbpf_program
	set -l words (commandline -opc)
	set -l at (contains -i -- -- $words)
	complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end

function __mtbpf_pids
	ps -eo pid=,comm= 2>/dev/null | string replace -r '^ *([0-9]+) +' '$1\t'
end

function __mtbpf_names
	ps -eo comm= 2>/dev/null | sort -u
end

function __mtbpf_containers
	docker ps --format '{{.Names}}' 2>/dev/null; or podman ps --format '{{.Names}}' 2>/dev/null
end

function __mtbpf_cgroups
	for folder in /sys/fs/cgroup/(commandline -ct)*/
		string replace /sys/fs/cgroup/ '' -- $folder
	end
end

function __mtbpf_folders
	__fish_complete_directories (commandline -ct) ''
end

# "FILE:NAME" is a function of one file, "ns::name" is not.
function __mtbpf_symbols
	set -l words (commandline -opc)
	set -l whom
	set -l file
	set -l name (commandline -ct)
	switch $name
		case 'usdt:*' 'line:*' 'addr:*' '*::*'
		case '*:*'
			set file (string split -m 1 : -- $name)[1]
			set name (string split -m 1 : -- $name)[2]
	end
	# Lists functions of the process that the command line names; mtbpf finds the process.
	for i in (seq 3 (count $words))
		if contains -- (string replace -r '^--?' '' -- $words[$i]) pid p name n container k8s-pod cgroup
			set -a whom $words[$i] $words[(math $i + 1)]
		end
	end
	test -n "$whom"; or return
	timeout 2 $words[1] list $whom "$name*" 2>/dev/null </dev/null | awk -v file="$file" 'index($3, file) == 1 {
		sub(/\(.*/, "", $4)
		print file (file == "" ? "" : ":") $4
	}' | sort -u
end

complete -c mtbpf -f
complete -c mtbpf -n __mtbpf_runs_program -a '(__mtbpf_program)'
complete -c mtbpf -n '__mtbpf_in list' -a '(__mtbpf_symbols)'
complete -c mtbpf -n '__mtbpf_in decode report diff view' -F
for row in (string split \n -- '
@rows@
')
	# The command, what the option takes, how often, its names, its argument's name, help.
	set -l row (string split \t -- $row)
	test (count $row) -eq 6; or continue
	if test $row[1] = mtbpf
		complete -c mtbpf -n '__mtbpf_wants_command; or __mtbpf_in help' -a $row[4] -d $row[6]
		continue
	end
	set -l takes (string split ' ' -- $row[2])
	set -l args
	switch $takes[1]
		case none
		case files
			set args -r -F
		case any
			set args -x
		case choices
			set args -x -a "$takes[2..-1]"
		case '*'
			set args -x -a "(__mtbpf_$takes)"
	end
	test $row[3] = maybe; and set args
	for name in (string split ' ' -- $row[4])
		set -a args -o (string sub -s 2 -- $name)
	end
	complete -c mtbpf -n "__mtbpf_in $row[1]" $args -d $row[6]
end
