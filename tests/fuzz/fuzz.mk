# The fuzzers: clang's libFuzzer, in the build folder with its sanitizers (tests/san.mk). tests/fuzz/run.
FUZZ_TARGETS := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
SEEDS_OBJ    := $(patsubst tests/%.c,$(O)/tests/%.o,$(wildcard tests/fuzz/makers/*.c))
MAKE_SEEDS   := $(O)/tests/fuzz/makers/make_seeds
T ?= 60
JOBS ?= 2

.PHONY: fuzz fuzzers fuzz-programs
fuzz-programs: $(FUZZ_TARGETS) $(MAKE_SEEDS)
fuzz: fuzzers
	$(Q)O=$(O) T=$(T) JOBS="$(JOBS)" FUZZERS="$(FUZZERS)" tests/run asan:fuzz
$(FUZZ_TARGETS): $(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(ORACLE_OBJ) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o $@ \
	    $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(MAKE_SEEDS): $(SEEDS_OBJ)

$(FUZZ_TARGETS:=.o) $(SEEDS_OBJ): ALL_CFLAGS += -Itests -Itests/unit -Itests/fuzz
-include $(FUZZ_TARGETS:=.d) $(SEEDS_OBJ:.o=.d)
