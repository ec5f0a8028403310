# SPDX-License-Identifier: MIT
# bats file_tags=slow
# make deb: a package that lintian finds nothing in, and that leaves nothing when it is removed.

load ../helpers

setup_file() {
	export MISSING=
	for tool in dpkg-deb dpkg-shlibdeps dpkg-gencontrol; do
		command -v "$tool" >/dev/null || MISSING="$tool is missing (dpkg-dev)"
	done
	[ -z "$MISSING" ] || return 0
	cd "$BATS_TEST_DIRNAME/../.."
	make --no-print-directory O="${O:?}" deb >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- ||
		{ cat "$BATS_FILE_TMPDIR/log"; return 1; }
	package=$(tail -n 1 "$BATS_FILE_TMPDIR/log")
	export package
}

setup() {
	[ -z "$MISSING" ] || skip "$MISSING"
	cd "$BATS_TEST_TMPDIR"
}

@test "it has the version, the libraries that it needs, and what make install installs" {
	[ "$(dpkg-deb -f "$package" Version)" = "$(cat "$BATS_TEST_DIRNAME/../../VERSION")" ]
	for library in libc6 libbpf libipt libdw libelf libzydis libcjson libmicrohttpd zlib libzstd; do
		[[ $(dpkg-deb -f "$package" Depends) == *"$library"* ]]
	done
	dpkg-deb -c "$package" >content
	for file in bin/mtbpf include/mtbpf.h share/pkgconfig/mtbpf.pc \
		share/doc/mtbpf/copyright share/doc/mtbpf/README.md \
		share/bash-completion/completions/mtbpf share/zsh/vendor-completions/_mtbpf \
		share/fish/vendor_completions.d/mtbpf.fish lib/systemd/system/mtbpf@.service \
		share/doc/mtbpf/examples/web.conf; do
		grep -q " root/root .* ./usr/$file\$" content
	done
	[ ! -e "$O/man/mtbpf.1" ] || grep -q ' ./usr/share/man/man1/mtbpf-attach.1.gz$' content
}

@test "DEBFULLNAME and DEBEMAIL say whose it is" {
	folder=$PWD/other
	install -D /bin/true "$folder/root/usr/bin/mtbpf"
	install -D -m 644 /dev/null "$folder/root/usr/share/doc/mtbpf/LICENSE"
	other=$(DEBFULLNAME='A & B/C' DEBEMAIL=a@b.org "$BATS_TEST_DIRNAME/../../deploy/deb/build" "$folder" 1.2.3)
	[ "$(dpkg-deb -f "$other" Maintainer)" = 'A & B/C <a@b.org>' ]
	zcat "$folder/root/usr/share/doc/mtbpf/changelog.gz" | grep -q '^ -- A & B/C <a@b.org>  '
	[[ $(dpkg-deb -f "$package" Maintainer) == *" <"*"@"*">" ]]
}

@test "lintian finds nothing" {
	command -v lintian >/dev/null || skip "lintian is missing"
	[ -e "$O/man/mtbpf.1" ] || skip "without scdoc there are no man pages in it"
	# Without debug info of the build.
	skip_with_sanitizers
	run timeout 200 lintian --allow-root --fail-on error,warning "$package"
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "dpkg installs it and removes it, without a script, and without a file left" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	mkdir -p root/var/lib/dpkg/{updates,info} root/etc
	touch root/var/lib/dpkg/status
	[ "$(dpkg-deb -e "$package" control && ls control)" = "$(printf 'control\nmd5sums')" ]
	dpkg --root="$PWD/root" --log=/dev/null --force-depends -i "$package"
	[ "$(root/usr/bin/mtbpf -version)" = "$("$O/mtbpf" -version)" ]
	(cd root && md5sum --quiet -c ../control/md5sums)
	dpkg --root="$PWD/root" --log=/dev/null -P mtbpf
	[ -z "$(find root/usr -type f 2>/dev/null)" ]
}
