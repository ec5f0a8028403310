# SPDX-License-Identifier: MIT
# A target chooses the names of its file, its threads and its functions: whatever they are, what is
# printed and written is fit for a terminal, a line is a line, and JSON is JSON.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	command -v perl >/dev/null || skip "needs perl"
	cd "$BATS_TEST_TMPDIR"
	started=()
	# A thread is named after its file; table_find is ten bytes long, too.
	file=$PWD/$'\e]0;x\a\n<b>"'
	perl -pe 's/table_find/\e[31m<i>\n"/g' "$O/programs/service" >"$file"
	chmod +x "$file"
}

teardown() {
	end_started
}

start_hostile() {
	begin_log out
	"$file" -scale small >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' out
}

# is_clean FILE: nothing that a terminal obeys, and no name goes on in a line of its own.
is_clean() {
	[ -s "$1" ]
	! LC_ALL=C grep -anP '[\x00-\x08\x0b-\x1f\x7f]|^(<b>|")' "$1" || false
}

@test "lists and messages" {
	start_hostile
	"$O/mtbpf" list -pid "$target" >listed 2>&1
	is_clean listed
	grep -q '?\[31m<i>?"$' listed
	"$O/mtbpf" attach -v -pid "$target" -symbol tabel_find -o t.fxt >said 2>&1 && false
	is_clean said
	grep -q '^hint: ' said
	"$O/mtbpf" attach -v -name $'\e*' -symbol one_ider -o t.fxt >said 2>&1 && false
	is_clean said
	timeout -k 5 20 "$O/mtbpf" watch -v -pid "$target" -symbol one_iter -max-hits 3 >said 2>&1
	is_clean said
}

@test "the names and arguments of USDT probes" {
	perl -pe 's/\0always\0/\0\e[31m\n\0/; s/8\@%r(..) -4\@/\e\@%r$1 \n4\@/g' "$O/programs/usdt" >usdt
	! cmp -s "$O/programs/usdt" usdt || false
	chmod +x usdt
	begin_log out
	./usdt >out 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' out
	"$O/mtbpf" list -pid "$target" 'usdt:*' >listed 2>&1
	is_clean listed
	cat listed
	grep -qF 'usdt:app:?[31m?' listed
	grep -qF '?@%r' listed
}

# captured OPTIONS: a trace of it, t.fxt, and what was said.
captured() {
	start_hostile
	timeout -k 5 60 "$O/mtbpf" attach "$@" -v -pid "$target" -symbol one_iter -delay-thresh 1us \
		-o t.fxt >said 2>&1
	cat -v said
	is_clean said
}

# Whatever is made of them again.
check_outputs() {
	local from name
	for from in t.fxt t.mtbpf; do
		"$O/mtbpf" report "$from" >report 2>&1
		is_clean report
		"$O/mtbpf" report -folded "$from" >folded 2>&1
		is_clean folded
	done
	grep -q '^?\]0:x?;' folded
	"$O/mtbpf" decode t.mtbpf -format text -o text.txt 2>said
	is_clean text.txt
	is_clean said
	"$O/mtbpf" diff t.fxt t.mtbpf >said 2>&1
	is_clean said
	for name in t.fxt t.mtbpf/meta.json; do
		! grep -aFq $'\e]0;' "$name" || false
		! grep -aFq $'\e[31m' "$name" || false
	done
}

@test "a trace of every call, and its report" {
	captured -source soft -skip 3
	check_outputs
	grep -q '?\[31m<i>?"$' text.txt
	# JSON has an escape for a quote.
	"$O/mtbpf" report -json t.fxt >report.json 2>said
	is_clean report.json
	[ "$(wc -l <report.json)" -eq 1 ]
	grep -qF '"name":"?[31m<i>?\""' report.json
}

@test "a trace of samples" {
	captured -source sample -skip 200
	check_outputs
}

@test "a folder of recordings" {
	start_hostile
	timeout -k 5 60 "$O/mtbpf" record -source sample -pid "$target" -symbol one_iter -delay-thresh 1us \
		-dir kept -skip 200 -max-hits 202 >said 2>&1
	is_clean said
	ls -b kept >names
	[ "$(wc -l <names)" -ge 1 ]
	! grep -q '[^A-Za-z0-9_.:-]' names || false
}
