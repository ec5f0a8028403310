# SPDX-License-Identifier: MIT
# Types each LINE and a tab into an interactive zsh, and waits until it shows something like PATTERN: what it
# lists, and then the line as it has become, in <brackets>.
#
#   zsh -f type.zsh FOLDER LINE PATTERN...    FOLDER has _mtbpf; mtbpf is in PATH
zmodload zsh/zpty || exit 1
zpty shell "PS1='ready>' TERM=dumb LINES=500 COLUMNS=200 zsh -f"
zpty -r shell shown '*ready>*'
zpty -w shell "fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -D -u; setopt autolist listambiguous; LISTMAX=10000; tell() print -r -- '<'\"\$BUFFER\"'>'; zle -N tell; bindkey '^X' tell; PS1='go''>'"
zpty -r shell shown '*go>*'
for line pattern in "${@:2}"; do
	print -r -- "'$line' is to become '$pattern'"
	zpty -w -n shell $'\x15'"$line"$'\t\x18'
	zpty -r shell shown "*$pattern*"
	print -r -- "$shown"
done
zpty -d shell
