# SPDX-License-Identifier: MIT
# mtbpf version: what a report of a bug begins with.

load ../helpers

setup() {
	[ -x "${O:?}/mtbpf" ] || skip "mtbpf is not built"
	version=$(cat "$BATS_TEST_DIRNAME/../../VERSION")
	cd "$BATS_TEST_TMPDIR"
}

# json EXPRESSION: of the object d.
json() {
	/usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

@test "-version is one line, with the commit where that is known" {
	for word in -version --version; do
		mtbpf_run $word
		[ "$status" -eq 0 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ $output =~ ^"mtbpf $version"(" (commit "[0-9a-f]{12}")")?$ ]]
	done
	[ "$(git -C "$BATS_TEST_DIRNAME" rev-parse --show-cdup 2>/dev/null)" = ../../ ] || skip "this is no clone"
	[[ $output == *" (commit "* ]]
}

# A first build named its own commit for ever, whatever was built later.
@test "the commit is the one that it was built at" {
	root=$BATS_TEST_DIRNAME/../..
	[ "$(git -C "$BATS_TEST_DIRNAME" rev-parse --show-cdup 2>/dev/null)" = ../../ ] || skip "this is no clone"
	commit=$("$O/mtbpf" -version | sed -n 's/.*(commit \(.*\))/\1/p')
	grep -qF "\"$commit\"" "$O/gen/commit.h"
	git clone -q --shared "$root" clone 2>/dev/null
	mkdir clone/o
	touch clone/o/.deps-ok
	for message in first second; do
		git -C clone -c user.name=a -c user.email=a@b commit -q --allow-empty -m $message
		make -s -C clone O=o o/user/cmd_version.o
		grep -qaF "$(git -C clone rev-parse --short=12 HEAD)" clone/o/user/cmd_version.o
	done
}

@test "version begins with that line, and has a line a library and a feature" {
	mtbpf_run version
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "$("$O/mtbpf" -version)" ]
	for name in libbpf libipt elfutils Zydis cJSON libmicrohttpd zlib zstd; do
		grep -Eq "^$name +[0-9]+\.[0-9]" <<<"$output"
	done
	for name in kernel btf intel_pt perfetto_ui fzf; do
		grep -Eq "^$name +[^ ]" <<<"$output"
	done
	grep -q "^kernel .*$(uname -r)" <<<"$output"
}

@test "the libraries' versions are those that are installed" {
	mtbpf_run version
	for library in libbpf libelf:elfutils libcjson:cJSON libmicrohttpd zlib libzstd:zstd; do
		installed=$(pkg-config --modversion "${library%:*}") || skip "no pkg-config files of the libraries"
		# libbpf leaves the last part out.
		grep -Eq "^${library#*:} +$(cut -d. -f1-2 <<<"$installed")(\.|\$)" <<<"$output" ||
			{ echo "$library: $installed"; return 1; }
	done
}

@test "-json is the same for programs; what is missing is null" {
	command -v /usr/bin/python3 >/dev/null || skip "python3 is missing"
	"$O/mtbpf" version -json >out
	[ "$(json 'd["version"]' <out)" = "$version" ]
	[ "$(json 'len(d["libraries"]), len(d["features"])' <out)" = "(8, 5)" ]
	if has_pt; then
		[ "$(json 'd["features"]["intel_pt"]' <out)" != None ]
	else
		[ "$(json 'd["features"]["intel_pt"]' <out)" = None ]
	fi
	mkdir ui
	MTBPF_PERFETTO_UI=$PWD/ui "$O/mtbpf" version -json >out
	[ "$(json 'd["features"]["perfetto_ui"]' <out)" = None ]
	touch ui/index.html
	MTBPF_PERFETTO_UI=$PWD/ui "$O/mtbpf" version -json >out
	[ "$(json 'd["features"]["perfetto_ui"]' <out)" = "$PWD/ui" ]
}

@test "fzf is found where it is" {
	mkdir bin
	PATH=$PWD/bin run "$O/mtbpf" version
	grep -Eq '^fzf .*(missing|none)' <<<"$output"
	printf '#!/bin/sh\n' >bin/fzf
	chmod +x bin/fzf
	PATH=$PWD/bin run "$O/mtbpf" version
	! grep -Eq '^fzf .*(missing|none)' <<<"$output" || false
}

@test "what version does not know is refused" {
	mtbpf_run version now
	[ "$status" -eq 2 ]
	complains unexpected-argument "*" now
	mtbpf_run version -jsn
	[ "$status" -eq 2 ]
	complains unknown-option "*" -jsn hint meant-option json
}

# rebuilt FOLDER: how many files are compiled after a change of that header, when the build folder is called so.
rebuilt() {
	(cd "$BATS_TEST_DIRNAME/../.." && make --no-print-directory -n -o Makefile -W user/util/log.h O="$1" all) | grep -c '"CC" '
}

@test "what includes a header is compiled again, also when O is the whole path of a folder below this one" {
	local root here
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd -P)
	here=$(realpath "${O:?}")
	[ "$(rebuilt "$here")" -gt 50 ]
	[ "$(rebuilt "$here")" -eq "$(rebuilt "${here#"$root"/}")" ]
}
