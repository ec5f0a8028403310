# SPDX-License-Identifier: MIT
# What the fuzzers begin with, for those who run them: O is the build folder.
fuzz_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The fuzzers' names; FUZZERS="elf fxt" chooses some.
fuzzers() {
	local fuzzer
	for fuzzer in "$fuzz_dir"/fuzz_*.c; do
		fuzzer=${fuzzer##*/fuzz_}
		fuzzer=${fuzzer%.c}
		case " ${FUZZERS:-$fuzzer} " in *" $fuzzer "*) echo "$fuzzer" ;; esac
	done
}

# corpora NAME: the folders of its inputs: seeds, regressions, texts of other tests.
corpora() {
	local dir
	for dir in "$O/seeds-$1" "$fuzz_dir/corpus-$1" "$fuzz_dir/../golden/$1"; do
		[ ! -d "$dir" ] || echo "$dir"
	done
}

make_seeds() {
	"$O/tests/fuzz/makers/make_seeds" "$O"
}
