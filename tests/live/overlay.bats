# SPDX-License-Identifier: MIT
# Programs in containers: another mount namespace, another pid namespace, and an overlay whose lower layer
# many of them share. Probes belong to an inode, and an overlay has several for one name.

load ../helpers

setup() {
	[ -x "${O:?}/programs/service-static" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
	mkdir disk
	mount -t tmpfs none disk
	mkdir -p disk/image/{bin,proc,tmp}
	cp "$O/programs/service-static" disk/image/bin/service
}

teardown() {
	end_started
	local mount
	for mount in disk/*/root disk; do
		! mountpoint -q "$BATS_TEST_TMPDIR/$mount" || umount -l "$BATS_TEST_TMPDIR/$mount"
	done
}

# container NAME: the image's service in namespaces of its own; $target is its pid here.
container() {
	local dir=$PWD/disk/$1
	mkdir -p "$dir"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=$PWD/disk/image,upperdir=$dir/upper,workdir=$dir/work" "$dir/root" 2>/dev/null ||
		skip "no overlay can be mounted here"
	unshare --mount --pid --fork --kill-child --mount-proc="$dir/root/proc" \
		chroot "$dir/root" /bin/service -pause 1ms -n 0 >"$1.log" 2>&1 3>&- &
	started+=($!)
	eventually 5 grep -q '^pid 1' "$1.log"
	target=$(pgrep -P $!)
	started+=("$target")
}

# hits ARGS: how many watch has counted.
hits() {
	mtbpf_run watch -symbol "${symbol:-one_iter}" "$@" -timeout 500ms
	[ "$status" -eq 0 ]
	hits=$(sed -n 's/^\([0-9]*\) hits .*/\1/p' <<<"$output")
}

@test "a program in namespaces of its own: found, hit, and recorded by its pid here" {
	container one
	mtbpf_run list -pid "$target" 'one_*'
	[[ $output == *" service "*" one_iter" ]]
	hits -pid "$target"
	[ "$hits" -gt 0 ]
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -delay-thresh 500us -timeout 10s -o s.fxt
	[ "$status" -eq 0 ]
	"$O/mtbpf" decode s.mtbpf -format text | grep -q "^$target .* one_iter"
}

@test "one image, two containers: only the chosen one counts" {
	container one
	first=$target
	container two
	kill -STOP "$first"
	hits -pid "$first"
	[ "$hits" -eq 0 ]
	hits -pid "$target"
	[ "$hits" -gt 0 ]
}

@test "one image, two containers, both chosen: one probe, though one of them has written to the file" {
	container one
	first=$target
	container two
	mtbpf_run watch -v -pid "$first,$target" -symbol one_iter -max-hits 1
	[ "$status" -eq 0 ]
	[ "$(grep -c '^debug: probe: ' <<<"$output")" -eq 1 ]
	touch disk/one/root/bin/service
	mtbpf_run watch -v -pid "$first,$target" -symbol one_iter -max-hits 1
	[ "$status" -eq 0 ]
	[ "$(grep -c '^debug: probe: ' <<<"$output")" -eq 1 ]
}

@test "a program that was written to in its container since it started: the probe is in what runs" {
	container one
	touch disk/one/root/bin/service
	[ -e disk/one/upper/bin/service ]
	hits -pid "$target"
	[ "$hits" -gt 0 ]
	[[ $output == *"/bin/service was modified since process $target started: the probe is in the file that the process runs, "*/image/bin/service* ]]
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -delay-thresh 500us -timeout 10s -o s.fxt
	[ "$status" -eq 0 ]
	[[ $output == *triggered* ]]
}

@test "one that was replaced under its name" {
	container one
	cp disk/one/root/bin/service disk/one/root/bin/new
	mv disk/one/root/bin/new disk/one/root/bin/service
	hits -pid "$target"
	[ "$hits" -gt 0 ]
}

@test "the layer cannot be reached: said, and what to do" {
	container one
	touch disk/one/root/bin/service
	mkdir over
	mount -t tmpfs none disk/image
	mtbpf_run watch -pid "$target" -symbol one_iter -timeout 500ms
	umount disk/image
	[ "$status" -eq 1 ]
	complains modified-program "*/bin/service" "$target" hint restart-process
}

@test "the names of generated code are those of the process's own pid and /tmp" {
	[[ $O != /tmp/* ]] || skip "the program lies below /tmp, which is another one in the test"
	unshare --mount --pid --fork --kill-child --mount-proc bash -c \
		'mount -t tmpfs none /tmp && exec "$1" -scale small -pause 1ms' - "$O/programs/jit_service" >log 2>&1 3>&- &
	started+=($!)
	eventually 5 grep -q '^pid 1' log
	target=$(pgrep -P $!)
	started+=("$target")
	[ -e "/proc/$target/root/tmp/perf-1.map" ]
	mtbpf_run record -source sample -sample-rate 10000 -pid "$target" -timeout 500ms -o s.mtbpf
	name=$(awk '{ print $3; exit }' "/proc/$target/root/tmp/perf-1.map")
	grep -rq "$name" s.mtbpf
}

@test "mtbpf in a pid namespace of its own: its pids are meant" {
	cat >inside <<-EOF
		"$O/programs/service" -scale small -pause 1ms -n 0 >log 2>&1 3>&- &
		target=\$!
		for i in {1..100}; do [ ! -s log ] || break; sleep 0.05; done
		"$O/mtbpf" watch -pid \$target -symbol one_iter -timeout 500ms
		"$O/mtbpf" attach -source sample -pid \$target -symbol one_iter -delay-thresh 500us -timeout 10s -o s.fxt
		"$O/mtbpf" watch -pid \$target -children -symbol one_iter -timeout 500ms
		kill \$target
	EOF
	run timeout -k 5 30 unshare --pid --fork --mount-proc --kill-child bash inside
	printf '%s\n' "$output"
	[[ $output =~ ([0-9]+)\ hits ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
	[[ $output == *triggered:* ]]
	[[ $output == *"-children: mtbpf runs in its own pid namespace"*"hint: run mtbpf on the host"* ]]
	target=$(sed -n 's/^pid //p' log)
	"$O/mtbpf" decode s.mtbpf -format text | grep -q "^$target .* one_iter"
}

# with_musl FLAG: a service in C against musl, with one_iter in it: disk/image/bin/service.
with_musl() {
	command -v musl-gcc >/dev/null || skip "musl-gcc is missing"
	# The first process of a pid namespace has to ask for SIGTERM.
	cat >service.c <<-EOF
		#include <signal.h>
		#include <stdio.h>
		#include <unistd.h>
		__attribute__((noipa)) void step(int us) { usleep(us); }
		__attribute__((noipa)) void one_iter(void) { step(1000); }
		int main(void)
		{
			signal(SIGTERM, _exit);
			printf("pid %d\n", getpid());
			fflush(stdout);
			for (int i = 0; i < 30000; i++)
				one_iter();
		}
	EOF
	musl-gcc -O2 -g -fno-omit-frame-pointer "$@" -o disk/image/bin/service service.c
}

@test "musl, as in Alpine's containers: a program with its libc" {
	with_musl
	mkdir disk/image/lib
	cp "$(realpath /lib/ld-musl-x86_64.so.1)" disk/image/lib/ld-musl-x86_64.so.1
	container one
	hits -pid "$target"
	[ "$hits" -gt 0 ]
	mtbpf_run attach -source sample -pid "$target" -symbol one_iter -delay-thresh 500us -timeout 10s -o s.fxt
	[ "$status" -eq 0 ]
	"$O/mtbpf" decode s.mtbpf -format text | grep -q "^$target .* one_iter"
}

@test "a static program without symbols: by address, and by name from a debug file" {
	with_musl -static
	at=$(nm disk/image/bin/service | awk '/ one_iter$/ { print $1 }')
	objcopy --only-keep-debug disk/image/bin/service service.debug
	strip disk/image/bin/service
	container one
	symbol=addr:0x$at hits -pid "$target"
	[ "$hits" -gt 0 ]
	mtbpf_run watch -pid "$target" -symbol one_iter -timeout 200ms
	[ "$status" -eq 2 ]
	end_started
	umount -l disk/one/root
	cp service.debug disk/image/bin/
	(cd disk/image/bin && objcopy --add-gnu-debuglink=service.debug service)
	container two
	hits -pid "$target"
	[ "$hits" -gt 0 ]
}
