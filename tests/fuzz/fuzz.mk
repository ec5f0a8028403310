# The fuzzers, in a build folder of their own: clang's libFuzzer, with sanitizers. tests/fuzz/fuzz.sh.
# The suite "fuzz" of tests/run, which needs no libFuzzer, runs through what they begin with.
FUZZ_TARGETS := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
SEEDS_OBJ    := $(patsubst tests/%.c,$(O)/tests/%.o,$(wildcard tests/fuzz/makers/*.c))
MAKE_SEEDS   := $(O)/tests/fuzz/makers/make_seeds
T ?= 60
JOBS ?= 2

.PHONY: fuzz fuzzers
fuzz:
	$(Q)$(MAKE) --no-print-directory O=$(O)/fuzz CC=$(CLANG) WERROR= \
	    SAN=fuzzer-no-link,address,undefined fuzzers
	$(Q)O=$(O)/fuzz T=$(T) JOBS="$(JOBS)" FUZZERS="$(FUZZERS)" tests/fuzz/fuzz.sh

# Only there: what is compiled for the fuzzers counts the branches it takes.
fuzzers: $(FUZZ_TARGETS) $(MAKE_SEEDS)
$(FUZZ_TARGETS): $(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(ORACLE_OBJ) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o $@ \
	    $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(MAKE_SEEDS): $(SEEDS_OBJ)

FUZZ_REPLAYS := $(FUZZ_TARGETS:$(O)/tests/fuzz/fuzz_%=$(O)/tests/fuzz/replay_%)
.PHONY: fuzz-replays
fuzz-replays: $(FUZZ_REPLAYS) $(MAKE_SEEDS)
$(FUZZ_REPLAYS): $(O)/tests/fuzz/replay_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay.o $(ORACLE_OBJ) \
    $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(FUZZ_TARGETS:=.o) $(O)/tests/fuzz/replay.o $(SEEDS_OBJ): ALL_CFLAGS += -Itests -Itests/unit -Itests/fuzz
-include $(FUZZ_TARGETS:=.d) $(SEEDS_OBJ:.o=.d)
