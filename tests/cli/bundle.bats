# SPDX-License-Identifier: MIT
# make bundle: one file that runs anywhere; what is built, wherever it is built; make release.

load ../helpers

setup() {
	source=$BATS_TEST_DIRNAME/../..
	cd "$BATS_TEST_TMPDIR"
}

# sources_to FOLDER: what is committed or changed here, a repository of its own.
sources_to() {
	mkdir -p "$1"
	(cd "$source" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$OLDPWD/$1")
}

@test "it checks, captures, decodes and serves in a root with nothing but busybox" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	skip_with_sanitizers
	# Busybox is fetched once; where it cannot be had, that is no failure of the bundle.
	"$source/tests/vm/packages" "$O/vm" busybox || skip "busybox-static cannot be fetched"
	run "$source/tests/distros/run" busybox
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"ok 2 busybox: the bundle"* ]]
}

@test "objects and BPF programs are the same when they are built in another folder" {
	sources_to one
	sources_to another/folder
	objects="user/util/units.o user/util/text.o user/target/elf/elf_image.o bpf/sample.bpf.o gen/trigger.skel.h"
	make --no-print-directory -C one O=build ${objects//@(user|bpf|gen)/build/&} 2>&1 || true
}
