# SPDX-License-Identifier: MIT
# The code of a recording: whatever becomes of the files and of the process, its functions have names.

load ../helpers

setup() {
	export HOME=$BATS_TEST_TMPDIR # whose build-id cache is empty
	[ -x "${O:?}/programs/jit_service" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	[ -z "${killed:-}" ] || kill -KILL "$killed"
	end_started
	[ -z "${public:-}" ] || rm -rf "$public"
}

# start_file FILE ARGS: like start, of a program of our own: $target.
start_file() {
	"$@" >"$BATS_TEST_TMPDIR/started" 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' "$BATS_TEST_TMPDIR/started"
}

# record NAME OPTION...: two hits of one_iter in $target, and what lies between them.
record() {
	local name=$1
	shift
	mtbpf_run record -source soft -pid "$target" -symbol one_iter -delay-thresh 1us -o "$name.mtbpf" "$@"
	[ "$status" -eq 0 ]
}

# decode NAME: to the files calls and said; $gaps is how many pieces of the trace are missing.
decode() {
	"$O/mtbpf" decode "$1.mtbpf" -print calls >calls 2>all_said
	grep -v '^decoding ' all_said >said || true # its progress, if it takes longer than a second
	"$O/mtbpf" decode "$1.mtbpf" -print branches >branches 2>/dev/null
	gaps=$(grep -c ' gap ' branches) || true
	cat said
	echo "$gaps gaps, $(wc -l <calls) calls"
}

build_id() {
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}

# ---- code that no file holds

# The functions of both kinds of memory; the later line of the perf map is right.
expect_jit_names() {
	decode "$1"
	[ ! -s said ]
	[ "$gaps" -eq 0 ]
	grep -Eq ' jit_outer_v[0-9]+$' calls
	! grep -q ' jit_outer_v1$' calls || false
	grep -q ' jit_inner$' calls
	grep -q ' jit shared(int)$' calls
	grep -q ' jit_shared_inner$' calls
	! grep -q '\[jit' calls || false
	# Each in the one that called it.
	awk '/ one_iter$/ { iter = $2 } / jit_outer_v/ { outer = $2; if (outer <= iter) exit 1 }
		/ jit_inner$/ { if ($2 <= outer) exit 1 }' calls
}

@test "JIT code has its names, also when the process is gone" {
	start jit_service -scale small -slow-every 2
	eventually 5 grep -q jit_outer_v5 "/tmp/perf-$target.map"
	record x -delay-thresh 5ms
	expect_jit_names x
	end_started
	[ ! -e "/tmp/perf-$target.map" ]
	expect_jit_names x
}

@test "JIT code of a process that has its own pids and its own /tmp" {
	mkdir private
	cat >inside <<-EOF
		# The build folder may be in the /tmp that is covered.
		exec 9<"$O/programs/jit_service"
		mount -t tmpfs none /tmp
		exec /proc/self/fd/9 -scale small -slow-every 2
	EOF
	unshare --mount --pid --fork --kill-child sh ./inside >started 2>&1 3>&- &
	started+=("$!")
	eventually 20 grep -q '^pid 1$' started
	target=$(pgrep -P "$!")
	[ -n "$target" ]
	# Neither it, the first of its namespace, nor unshare ends by SIGTERM.
	killed=$target
	sleep 0.1
	record x -delay-thresh 5ms
	expect_jit_names x
	# Its names were in no file of ours.
	[ ! -e /tmp/perf-1.map ] && [ ! -e "/tmp/perf-$target.map" ]
	[ -s "x.mtbpf/images/perf-$target.map" ]
}

@test "more JIT code than is copied: said, with what is missing" {
	cat >big.c <<-'EOF'
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		__attribute__((noipa)) void one_iter(void) { __asm__ volatile("nop"); }
		int main(void)
		{
			size_t n = 80u << 20;
			char *p = mmap(NULL, n, PROT_READ | PROT_WRITE | PROT_EXEC,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			memset(p, 0xc3, n);
			printf("pid %d\n", (int)getpid());
			fflush(stdout);
			for (;;) {
				one_iter();
				((void (*)(void))p)();
				usleep(1000);
			}
		}
	EOF
	"${CC:-cc}" -O1 -o big big.c
	start_file ./big
	record x
	says too-much-code "*" "64.0 MiB" "16.0 MiB"
	[ "$(du -sm x.mtbpf | cut -f 1)" -lt 70 ]
}

# Another tool's probe, on a nop of five bytes, which Linux 6.18 makes a call: neither the file nor
# anybody's view from outside shows what runs there.
@test "a probe that the kernel has optimised" {
	cat >probed.c <<-'EOF'
		#include <fcntl.h>
		#include <linux/perf_event.h>
		#include <stdint.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		extern char __executable_start;
		__attribute__((naked, noipa, aligned(16))) void probed(void)
		{
			__asm__(".byte 0x0f, 0x1f, 0x44, 0, 0; push %rbp; pop %rbp; ret");
		}
		__attribute__((noipa)) void one_iter(void)
		{
			__asm__ volatile("nop");
			probed();
			__asm__ volatile("nop");
		}
		int main(void)
		{
			struct perf_event_attr attr = {.size = sizeof(attr), .disabled = 0};
			FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
			if (!type || fscanf(type, "%u", &attr.type) != 1)
				return 1;
			attr.config1 = (uintptr_t)"/proc/self/exe";
			attr.config2 = (uintptr_t)probed - (uintptr_t)&__executable_start;
			if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0)
				return 2;
			probed();
			probed();
			printf("pid %d\n", (int)getpid());
			fflush(stdout);
			for (;;) {
				one_iter();
				usleep(1000);
			}
		}
	EOF
	"${CC:-cc}" -O1 -o probed probed.c
	start_file ./probed
	grep -q 'uprobes-trampoline' "/proc/$target/maps" || skip "this kernel does not optimise probes"
	record x -delay-thresh 3ms
	end_started
	decode x
	[ ! -s said ]
	[ "$gaps" -eq 0 ]
	awk '/ probed$/ { depth = $2 } / \[uprobes-trampoline\]$/ { if ($2 != depth + 1) exit 1; n++ }
		END { exit !n }' calls
}

# ---- files that are moved, replaced, deleted

# A program of our own to do that to, twice the same, and another of its name.
make_programs() {
	cp "$O/programs/service" prog
	cp "$O/programs/tailcalls" other
	id=$(build_id prog)
	other_id=$(build_id other)
	[ -n "$id" ] && [ "$id" != "$other_id" ]
}

@test "a file that is gone: said by name and build id, its code is a gap" {
	make_programs
	start_file ./prog -scale small
	record x
	decode x
	[ ! -s said ]
	cp calls whole
	end_started
	mv prog elsewhere
	decode x
	[ "$gaps" -gt 0 ]
	[ "$(wc -l <said)" -eq 2 ]
	grep -q "^warning: .*/prog (No such file or directory): the trace has gaps where this code ran" said
	grep -q "^hint: put the file with build ID $id at that path" said
	# Copied back, it is another inode; its build id tells that it is right.
	cp elsewhere prog
	decode x
	[ ! -s said ]
	cmp calls whole
}

@test "another file of that name: both build ids are said, and it is not taken" {
	make_programs
	start_file ./prog -scale small
	record x
	end_started
	rm prog
	cp other prog
	decode x
	[ "$gaps" -gt 0 ]
	[ "$(wc -l <said)" -eq 2 ]
	grep -q "^warning: .*/prog is not the file that ran: it has build ID $other_id instead of $id" said
	grep -q "^hint: .*-portable" said
	! grep -Eq ' op_[a-z]*$' calls || false
}

@test "the right file is found by its build id" {
	make_programs
	start_file ./prog -scale small
	record x
	decode x
	cp calls whole
	end_started
	export HOME=$PWD
	mkdir -p ".debug/.build-id/${id:0:2}/${id:2}"
	mv prog ".debug/.build-id/${id:0:2}/${id:2}/elf"
	cp other prog
	decode x
	[ ! -s said ]
	cmp calls whole
}

@test "replaced or deleted while it runs: the recording has what ran" {
	make_programs
	for what in replaced deleted; do
		cp "$O/programs/service" prog
		start_file ./prog -scale small
		if [ $what = replaced ]; then
			mv -f other prog
		else
			rm prog
		fi
		record $what
		end_started
		[ -s "$what.mtbpf/images/.build-id/${id:0:2}/${id:2}/elf" ]
		# And nothing that can be found again.
		[ "$(find "$what.mtbpf/images" -name elf | wc -l)" -eq 1 ]
		decode $what
		[ ! -s said ]
		[ "$gaps" -eq 0 ]
		[ "$(grep -c ' one_iter$' calls)" -ge 2 ]
	done
}

@test "who may not open a deleted file gets its code from memory" {
	public=$(mktemp -d)
	chmod 777 "$public"
	cp "$O/programs/service-static" "$public/prog"
	cp "$O/mtbpf" "$public"
	cd "$public"
	setpriv --reuid 65534 --regid 65534 --clear-groups ./prog -scale small >started 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 grep -q '^pid ' started
	rm -f prog
	LIMIT=30 run timeout 30 setpriv --reuid 65534 --regid 65534 --clear-groups ./mtbpf record -source soft \
		-pid "$target" -timeout 1500ms -o x.mtbpf
	echo "$output"
	[ "$status" -eq 3 ]
	end_started
	decode x
	[ ! -s said ]
	[ "$(wc -l <branches)" -gt 20 ]
	[ "$gaps" -eq 0 ]
}

# ---- on another machine

# A root in which there is mtbpf, with what it needs by other names, the recording, and no more.
make_root() {
	local lib
	mkdir -p root/lib-of-ours root/tmp
	cp "$O/mtbpf" root/
	ldd "$O/mtbpf" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while read -r lib; do
		cp "$lib" root/lib-of-ours/
	done
	mv root/lib-of-ours/ld-linux-x86-64.so.2 root/ld.so
}

# bats test_tags=slow
@test "-portable: decoded where none of the programs are" {
	skip_with_sanitizers
	make_programs
	start_file ./prog -scale small
	record x -portable
	record y
	end_started
	decode x
	[ ! -s said ]
	cp calls whole
	make_root
	mv x.mtbpf y.mtbpf root/
	chroot root /ld.so --library-path /lib-of-ours /mtbpf decode x.mtbpf -print calls >there 2>said
	cat said
	[ ! -s said ]
	cmp whole there
	chroot root /ld.so --library-path /lib-of-ours /mtbpf decode y.mtbpf -print calls >there 2>said
	grep -q "/prog (No such file or directory)" said
	grep -q "libc.so.6 (No such file or directory)" said
	! cmp -s whole there || false
}

@test "perf knows the files by their build ids, and reads them from the recording" {
	command -v perf >/dev/null || skip "perf is missing"
	make_programs
	start_file ./prog -scale small
	record x -portable
	end_started
	perf buildid-list -i x.mtbpf | grep -q "^$id .*/prog$"
	rm prog
	perf script -i x.mtbpf --itrace=be -F ip,addr,sym >without 2>&1 || true
	grep -q 'trace error' without
	perf --buildid-dir x.mtbpf/images script -i x.mtbpf --itrace=be -F ip,addr,sym >with 2>&1
	! grep -q 'trace error' with || false
	grep -q one_iter with
}

# ---- symbols and lines in another file

@test "a stripped program with its debug file: the trigger by name, names and lines in the trace" {
	cp "$O/programs/service" whole
	objcopy --only-keep-debug whole prog.dbg
	objcopy --strip-all --add-gnu-debuglink=prog.dbg whole prog
	mkdir .debug
	mv prog.dbg .debug
	rm whole
	start_file ./prog -scale small
	record x
	decode x
	[ ! -s said ]
	[ "$(grep -c ' one_iter$' calls)" -ge 2 ]
	grep -q ' table_find$' calls
	"$O/mtbpf" decode x.mtbpf -o x.fxt
	grep -aq 'service\.c' x.fxt
	# With the debug file elsewhere only libraries have names.
	mv .debug hidden
	decode x
	! grep -q ' one_iter$' calls || false
	mtbpf_run record -source soft -pid "$target" -symbol one_iter -o y.mtbpf
	[ "$status" -eq 2 ]
	[[ $output == *"its debug symbols are not installed"* ]]
	# tests/perfetto/suites decodes it once more.
	mv hidden .debug
}

@test "-portable takes the debug file along" {
	cp "$O/programs/service" whole
	objcopy --only-keep-debug whole prog.dbg
	objcopy --strip-all --add-gnu-debuglink=prog.dbg whole prog
	start_file ./prog -scale small
	record x -portable
	end_started
	decode x
	cp calls before
	rm prog prog.dbg whole
	decode x
	[ ! -s said ]
	cmp calls before
	grep -q ' table_find$' calls
}
