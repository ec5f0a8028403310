# The fuzzers, in a build folder of their own: clang's libFuzzer, with sanitizers. tests/fuzz/run.
FUZZ_TARGETS := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
SEEDS_OBJ    := $(patsubst tests/%.c,$(O)/tests/%.o,$(wildcard tests/fuzz/makers/*.c))
MAKE_SEEDS   := $(O)/tests/fuzz/makers/make_seeds
T ?= 60
JOBS ?= 2

.PHONY: fuzz fuzz-build fuzzers
# Nothing without libFuzzer: their suite is skipped then.
fuzz-build:
	$(Q)$(TOOLS) tests/deps.sh -has fuzzer || exit 0; \
	    $(MAKE) --no-print-directory O=$(O)/fuzz CC=$(CLANG) WERROR= \
	    SAN=fuzzer-no-link,address,undefined CFLAGS='-O1 -g1' fuzzers
fuzz: fuzz-build
	$(Q)O=$(O) T=$(T) JOBS="$(JOBS)" FUZZERS="$(FUZZERS)" tests/run fuzz:fuzz

# Only there: what is compiled for the fuzzers counts the branches it takes.
fuzzers: $(FUZZ_TARGETS) $(MAKE_SEEDS)
$(FUZZ_TARGETS): $(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(ORACLE_OBJ) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o $@ \
	    $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(MAKE_SEEDS): $(SEEDS_OBJ)

$(FUZZ_TARGETS:=.o) $(SEEDS_OBJ): ALL_CFLAGS += -Itests -Itests/unit -Itests/fuzz
-include $(FUZZ_TARGETS:=.d) $(SEEDS_OBJ:.o=.d)
