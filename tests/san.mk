# The tests again in other builds: $(O)/asan (address, undefined; clang also counts branches there for the fuzzers, so
# that they share its objects), $(O)/tsan (thread), $(O)/cov (line counts).
# `make test-rest` runs ASAN_TESTS and TSAN_TESTS, `make test-san` all there are. The
# tests of other things than what mtbpf does are the same in every build; live ones wait rather than compute, and
# have limits of time that a slower build comes near.
ASAN_TESTS ?= unit golden \
    $(addprefix cli/,cgroup check choose confined keep output perf_text progress report target usage view) \
    $(addprefix live/,hostile library strict)
# In which threads begin (strace shows CLONE_THREAD), but for decode_damage, trace_writer and slice_args, which take long.
TSAN_TESTS ?= golden $(addprefix unit/,\
    $(addprefix capture/test_,code_capture drops hit_args kernel_copy recording recording_cpu recording_files \
        recording_meta recording_samples recording_stack) \
    decode/test_decode $(addprefix decode/test_decode_,caches errata kernel packets) \
    elf/test_elf_image elf/test_inlined sampled/test_sampled_exact session/test_early_threads \
    target/test_process $(addprefix trace/test_,early_queue sink sink_blocks) \
    $(addprefix util/test_,cut_files fs insn meter))
SAN_FOLDERS := asan tsan cov
san_programs = $(patsubst %,$(1)/tests/%,$(filter unit/% live/test_%,$(2))) \
    $(foreach suite,$(filter unit live,$(2)),\
        $(patsubst $(O)/%,$(1)/%,$(filter $(O)/tests/$(suite)/%,$(UNIT)))) \
    $(if $(filter cli,$(2)),$(1)/tests/perfetto/gen_trees) \
    $(if $(filter live,$(2)),$(addprefix $(1)/tests/,oracle/compare stacks/judge))

.PHONY: test-san coverage $(SAN_FOLDERS) $(SAN_FOLDERS:%=san-folder-%)
# What is the same in every build is that of the plain one.
$(SAN_FOLDERS:%=san-folder-%): san-folder-%: tests
	$(Q)mkdir -p $(O)/$*/tests/ptgen
	$(Q)for name in bpf gen programs trace-processor; do \
	    [ ! -e $(O)/$$name ] || ln -sfn ../$$name $(O)/$*/$$name; done
	$(Q)for name in ptgen programs; do \
	    ln -sfn ../../../tests/ptgen/$$name $(O)/$*/tests/ptgen/$$name; done
# libFuzzer comes with clang. Without it gcc builds the tests, and there are no fuzzers: their suite is skipped.
HAS_FUZZER = $(shell $(TOOLS) tests/deps.sh -has fuzzer && echo 1)
ASAN_KINDS := address,undefined
ASAN_BUILD = O=$(O)/asan WERROR= CFLAGS='-O1 -g1' SAN='$(HAS_FUZZER:1=fuzzer-no-link,)$(ASAN_KINDS)' $(HAS_FUZZER:1=CC=$(CLANG))
asan: san-folder-asan
	$(Q)$(MAKE) --no-print-directory $(ASAN_BUILD) all $(HAS_FUZZER:1=fuzz-programs) \
	    $(call san_programs,$(O)/asan,$(ASAN_TESTS))
fuzzers: san-folder-asan
	$(Q)$(if $(HAS_FUZZER),$(MAKE) --no-print-directory $(ASAN_BUILD) fuzz-programs)
tsan: san-folder-tsan
	$(Q)$(MAKE) --no-print-directory O=$(O)/tsan WERROR= SAN=thread CFLAGS='-O1 -g1' \
	    all $(call san_programs,$(O)/tsan,$(TSAN_TESTS))
test-san:
	$(Q)$(MAKE) --no-print-directory ASAN_TESTS='unit golden cli live' \
	    TSAN_TESTS='unit golden cli' asan tsan
	$(Q)O=$(O) tests/run $(addprefix asan:,unit golden cli live) $(addprefix tsan:,unit golden cli)

# What a unit test asserts takes eight times as long to optimise with these checks as to compile, and next to
# nothing to run. So does most of the program: what decodes, unwinds, reads files and steps computes for long, and is
# optimised; selftest judges calls that an optimised program makes.
SAN_OPTIMISED := $(addsuffix /%,$(addprefix $(O)/user/,capture decode perf pipeline sampled selftest stack target trace util))
$(if $(SAN),$(filter $(O)/tests/unit/%,$(UNIT:=.o)) \
    $(filter-out $(SAN_OPTIMISED),$(LIB_OBJ) $(CMD_OBJ))): ALL_CFLAGS += -O0
# There are two hundred programs to link. lld's own build ids are shorter than those of other linkers.
ifneq ($(SAN),)
LDFLAGS += $(if $(shell command -v ld.lld),-fuse-ld=lld -Xlinker --build-id=sha1)
endif

# Which lines of user/ the tests run: a line a file, and all of it.
COV_TESTS ?= unit golden cli live
COV_LEAST ?= 0
$(O)/cov/exit.o: tests/coverage_exit.c
	$(Q)mkdir -p $(@D) && $(CC) -D_GNU_SOURCE -O1 -c -o $@ $<
cov: san-folder-cov $(O)/cov/exit.o
	$(Q)$(MAKE) --no-print-directory O=$(O)/cov WERROR= \
	    LDFLAGS='--coverage -Wl,--wrap=_exit,--wrap=landlock__confine $(O)/cov/exit.o' \
	    CFLAGS='-O1 -g --coverage' all $(call san_programs,$(O)/cov,$(COV_TESTS))
coverage: cov
	$(Q)find $(O)/cov -name '*.gcda' -delete
	$(Q)O=$(O) tests/run $(COV_TESTS:%=cov:%) || true
	$(Q)tests/coverage $(O)/cov $(COV_LEAST)
