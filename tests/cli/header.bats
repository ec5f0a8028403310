# SPDX-License-Identifier: MIT
# bats file_tags=slow
# include/mtbpf.h with the compilers and flags that programs are built with: one stub, that begins with
# the nop, and marks that all files of a program share and no two threads.

load ../helpers

setup() {
	include=$BATS_TEST_DIRNAME/../../include
	sources=("$BATS_TEST_DIRNAME/header/main.c" "$BATS_TEST_DIRNAME/header/other.c")
	cd "$BATS_TEST_TMPDIR"
}

# The stub's instructions, "0f 1f 44 00 00 90 c3".
stub_of() {
	objdump -d --disassemble=mtbpf_hit "$1" | awk -F '\t' '/^ / { print $2 }' | tr -s ' \n' ' '
}

# expect_good COMMAND...: it compiles both files without a warning, and the program is right.
expect_good() {
	echo "$*"
	rm -f prog
	"$@" -Wall -Wextra -Wshadow -Wredundant-decls -Werror -I"$include" -o prog -pthread "${sources[@]}"
	./prog
	[ "$(nm prog | grep -c ' mtbpf_hit$')" -eq 1 ]
	[[ $(stub_of prog) == "${nop:-}0f 1f 44 00 00 90 c3 "* ]]
}

# How a library would be built, and a program with it.
expect_good_library() {
	"$@" -fPIC -shared -fvisibility=hidden -I"$include" -o libother.so -pthread "${sources[1]}"
	"$@" -I"$include" -o prog "${sources[0]}" -L. -lother -Wl,-rpath,"$PWD"
	./prog
}

has() {
	command -v "$1" >/dev/null || skip "$1 is missing"
}

for_c() {
	local flags
	has "$1"
	for flags in -O0 -O1 -Os "-O3 -flto" "-O2 -static" "-O3 -flto -static" "-O2 -no-pie" "-O2 -pg" \
		"-O2 -std=c99 -pedantic" "-O2 -std=c89" "-fsanitize=address,undefined -O1" \
		"-O2 -fvisibility=hidden -ffunction-sections -Wl,--gc-sections" \
		"-O2 -fpie -pie -fstack-protector-all"; do
		expect_good "$1" $flags -Wmissing-prototypes -Wstrict-prototypes
	done
	nop="f3 0f 1e fa " expect_good "$1" -O2 -fcf-protection=full
	expect_good_library "$1" -O2
}

for_cxx() {
	local flags
	has "$1"
	for flags in -O0 "-std=c++11 -O2 -pedantic" "-std=c++20 -O3 -flto" "-std=c++17 -O2 -fvisibility=hidden"; do
		expect_good "$1" $flags -x c++
	done
}

@test "gcc" {
	for_c gcc
	expect_good gcc -O2 -flto -fwhole-program
}

@test "clang" {
	for_c clang
}

@test "g++" {
	for_cxx g++
}

@test "clang++" {
	for_cxx clang++
}

@test "a check that nobody looks at is warned of" {
	printf '#include <mtbpf.h>\nvoid f(void) { mtbpf_min_duration(1); }\n' >x.c
	run gcc -c -I"$include" x.c
	[[ $output == *"ignoring return value"* ]]
}

@test "elsewhere the calls are there, and do nothing" {
	gcc -U__linux__ -O0 -Wall -Wextra -Werror -I"$include" -c -o x.o -x c - <<-END
	#include <mtbpf.h>
	int f(void);
	int f(void)
	{
		mtbpf_mark_start();
		mtbpf_take_snapshot();
		mtbpf_take_snapshot_with_arg(1);
		return mtbpf_min_duration(0);
	}
	END
	[ -z "$(nm -u x.o | grep -v _GLOBAL_OFFSET_TABLE_)" ]
}
