# SPDX-License-Identifier: MIT
# make install, into a folder of its own: all of it, each file where it is looked for.

load ../helpers

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.."
	export root=$BATS_FILE_TMPDIR/root
	make --no-print-directory O="${O:?}" install DESTDIR="$root" PREFIX=/opt/m
}

setup() {
	placed=$root/opt/m
	cd "$BATS_TEST_TMPDIR"
}

@test "every part of it is there, for everybody, and nothing is outside of the prefix" {
	[ "$("$placed/bin/mtbpf" -version)" = "$("$O/mtbpf" -version)" ]
	for file in include/mtbpf.h share/pkgconfig/mtbpf.pc \
		share/bash-completion/completions/mtbpf share/zsh/site-functions/_mtbpf \
		share/fish/vendor_completions.d/mtbpf.fish lib/systemd/system/mtbpf@.service \
		share/doc/mtbpf/examples/web.conf \
		share/doc/mtbpf/README.md share/doc/mtbpf/LICENSE share/doc/mtbpf/docs/user/sources.md; do
		[ -s "$placed/$file" ] || { echo "$file is missing"; return 1; }
	done
	[ -z "$(find "$root" -type f ! -perm -444)" ]
	[ "$(ls "$root")" = opt ]
	[ "$(ls "$root/opt")" = m ]
	[ -z "$(grep -rlIE '@[a-z]+@' "$placed/share")" ]
}

@test "the man pages name the places that they were installed to" {
	command -v scdoc >/dev/null || skip "scdoc is missing"
	command -v groff >/dev/null || skip "groff is missing"
	groff -Tascii -mandoc -P-cbou -rLL=200n "$placed/share/man/man1/mtbpf.1" >page
	for place in include/mtbpf.h share/doc/mtbpf; do
		grep -q "/opt/m/$place" page
		[ -e "$placed/$place" ]
	done
}

@test "a program finds the header by pkg-config, in C and in C++" {
	export PKG_CONFIG_PATH=$placed/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
	[ "$(pkg-config --modversion mtbpf)" = "$(cat "$BATS_TEST_DIRNAME/../../VERSION")" ]
	[ -z "$(pkg-config --libs mtbpf)" ]
	printf '#include <mtbpf.h>\nint main(void) { mtbpf_take_snapshot(); return 0; }\n' >a.c
	cp a.c a.cc
	# shellcheck disable=SC2046
	${CC:-gcc} -Wall -Werror $(pkg-config --cflags mtbpf) -o in_c a.c
	# shellcheck disable=SC2046
	${CXX:-g++} -Wall -Werror $(pkg-config --cflags mtbpf) -o in_cxx a.cc
	./in_c
	./in_cxx
}

@test "the systemd unit starts the program that was installed" {
	unit=$placed/lib/systemd/system/mtbpf@.service
	[[ $(grep ^ExecStart= "$unit") == "ExecStart=/opt/m/bin/mtbpf record "* ]]
	diff <(grep -v ^ExecStart= "$unit") <(grep -v ^ExecStart= "$BATS_TEST_DIRNAME/../../deploy/systemd/mtbpf@.service")
}

@test "a shell finds the completion that was installed" {
	bash --norc -c '. "$1" && complete -p mtbpf' - "$placed/share/bash-completion/completions/mtbpf"
	cmp "$placed/share/zsh/site-functions/_mtbpf" "$O/completion/_mtbpf"
	cmp "$placed/share/fish/vendor_completions.d/mtbpf.fish" "$O/completion/mtbpf.fish"
}

@test "make uninstall leaves no file" {
	cp -r "$root" again
	make --no-print-directory -C "$BATS_TEST_DIRNAME/../.." O="$O" uninstall DESTDIR="$PWD/again" PREFIX=/opt/m
	[ -z "$(find again -type f)" ]
}
