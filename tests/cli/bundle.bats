# SPDX-License-Identifier: MIT
# bats file_tags=slow
# make bundle: one file that runs anywhere. What is built is the same wherever it is built. make release.

load ../helpers

setup() {
	source=$(realpath "$BATS_TEST_DIRNAME/../..")
	cd "$BATS_TEST_TMPDIR"
}

# sources_to FOLDER: what is committed, or changed, here; of what is no clone, all but its builds.
sources_to() {
	mkdir -p "$1"
	(cd "$source" &&
		{ git ls-files -z --cached --others --exclude-standard 2>/dev/null || find . -path './build*' -prune -o -type f -print0; } |
		xargs -0 cp --parents -t "$BATS_TEST_TMPDIR/$1")
}

@test "it checks, captures, decodes and serves in a root with nothing but busybox" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	skip_with_sanitizers
	"$source/tests/deps.sh" -check bundle || skip "the libraries that only the bundle needs are missing"
	"$source/tests/vm/packages" "$O/vm" busybox || skip "busybox-static cannot be fetched"
	run "$source/tests/distros/run" busybox
	echo "$output"
	[[ $output != "1..0 # skip "* ]] || skip "${output#1..0 # skip }"
	[ "$status" -eq 0 ]
	[[ $output == *"ok 2 busybox: the bundle"* ]]
}

@test "objects and BPF programs are the same when they are built in another folder" {
	objects=(user/util/units.o user/target/elf/elf_image.o bpf/recorder.bpf.o gen/trigger.skel.h)
	sources_to one
	sources_to another/folder
	make -C one O=build "${objects[@]/#/build/}"
	make -C another/folder O="$PWD/elsewhere" "${objects[@]/#/$PWD/elsewhere/}"
	for object in "${objects[@]}"; do
		cmp "one/build/$object" "elsewhere/$object"
	done
	# Objects that are optimised as one differ in names of sections; the program has only what they say of lines.
	make -C one O=build build/user/trace/text.o
	grep -q 'user/trace/text.c' one/build/user/trace/text.o
	! grep -qF "$PWD/one" one/build/user/trace/text.o || false
}

# A repository with the version 1.2.3, of which `line` stands in CHANGELOG.md as new.
repository() {
	mkdir -p repository/deploy
	cd repository
	cp "$source/deploy/release" deploy
	echo 1.2.3 >VERSION
	printf '# Changes\n\n## Unreleased\n\n%s\n\n## 1.2.3 (2026-01-02)\n\nold\n' "$1" >CHANGELOG.md
	git init -q .
	git config user.email a@b.org
	git config user.name A
	git add .
	git commit -q -m first
}

@test "release steps the version, dates what is new, commits and tags it" {
	repository "- new"
	[ "$(deploy/release date)" = "$(date -u -d 2026-01-02 +%s)" ]
	SOURCE_DATE_EPOCH=$(date -u -d 2026-03-04 +%s) deploy/release minor
	[ "$(cat VERSION)" = 1.3.0 ]
	[ "$(cat CHANGELOG.md)" = "$(printf '# Changes\n\n## Unreleased\n\n## 1.3.0 (2026-03-04)\n\n- new\n\n## 1.2.3 (2026-01-02)\n\nold')" ]
	[ "$(git describe --exact-match)" = v1.3.0 ]
	[ -z "$(git status --porcelain)" ]
	[ "$(deploy/release date)" = "$(date -u -d 2026-03-04 +%s)" ]
}

@test "release refuses when nothing is new, when changes are not committed, and a step that it does not know" {
	repository ""
	run deploy/release patch
	[ "$status" -eq 1 ]
	[[ $output == *"nothing stands under 'Unreleased'"*hint:* ]]
	run deploy/release sideways
	[ "$status" -eq 2 ]
	touch new
	run deploy/release patch
	[ "$status" -eq 1 ]
	[[ $output == *"not committed"*hint:* ]]
	[ "$(cat VERSION)" = 1.2.3 ]
}

@test "CHANGELOG.md tells of the version that VERSION has" {
	grep -Eq "^## $(sed 's/\./\\./g' "$source/VERSION") \([0-9]{4}-[0-9]{2}-[0-9]{2}\)\$" "$source/CHANGELOG.md"
	grep -q '^## Unreleased$' "$source/CHANGELOG.md"
}
