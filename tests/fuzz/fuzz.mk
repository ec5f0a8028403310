# The fuzzers, in a build folder of their own: clang's libFuzzer, with sanitizers. tests/fuzz/run.
FUZZERS := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
T ?= 60

.PHONY: fuzz fuzzers
fuzz:
	$(Q)$(MAKE) --no-print-directory O=$(O)/fuzz CC=$(CLANG) WERROR= \
	    SAN=fuzzer-no-link,address,undefined fuzzers
	$(Q)O=$(O)/fuzz T=$(T) tests/fuzz/run

# Only there: what is compiled for the fuzzers counts the branches it takes.
fuzzers: $(FUZZERS) $(O)/tests/fuzz/seeds
$(FUZZERS): $(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(ORACLE_OBJ) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o $@ \
	    $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(FUZZERS:=.o) $(O)/tests/fuzz/seeds.o: ALL_CFLAGS += -Itests -Itests/unit
-include $(FUZZERS:=.d)
