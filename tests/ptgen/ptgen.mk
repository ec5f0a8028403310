# SPDX-License-Identifier: MIT
# A generator of Intel PT streams: a plugin for qemu-x86_64, and its driver (tests/ptgen/README).
PTGEN     := $(O)/tests/ptgen/ptgen $(O)/tests/ptgen/libptgen.so
PTGEN_OBJ := $(patsubst %.c,$(O)/%.o,tests/ptgen/ptgen.c tests/ptgen/convert.c)
PTGEN_PLUGIN_SRC := $(filter-out tests/ptgen/ptgen.c tests/ptgen/convert.c,$(wildcard tests/ptgen/*.c)) \
                    user/capture/soft/pt_stream.c user/capture/soft/truth.c \
                    user/target/maps.c user/util/fs.c user/util/insn.c user/util/vec.c
PTGEN_PLUGIN_OBJ := $(PTGEN_PLUGIN_SRC:%.c=$(O)/%.o)
# What its unit tests test.
PTGEN_UNIT_OBJ := $(addprefix $(O)/tests/ptgen/,block.o goroutine.o signals.o walk.o walk_go.o)
PTGEN_TESTS    := $(filter $(O)/tests/unit/capture/test_ptgen_%,$(UNIT))
$(PTGEN_TESTS): $(PTGEN_UNIT_OBJ)

PTGEN_PROGRAMS := $(patsubst tests/ptgen/%.c,$(O)/tests/ptgen/%,$(wildcard tests/ptgen/programs/*.c)) \
                  $(patsubst tests/ptgen/%.cc,$(O)/tests/ptgen/%,$(wildcard tests/ptgen/programs/*.cc))

# With backtraces, and without: then every raise is one that leaves none.
OCAMLOPT ?= $(shell command -v ocamlopt)
PTGEN_PROGRAMS += $(if $(OCAMLOPT),$(addprefix $(O)/tests/ptgen/programs/,raises raises-notrace))

# Beside the programs that use them.
PTGEN_LIBS := $(patsubst tests/ptgen/programs/lib/%.cc,$(O)/tests/ptgen/programs/lib%.so,$(wildcard tests/ptgen/programs/lib/*.cc))

# Also without a dynamic linker: jumps and switches that are no calls of a library.
PTGEN_PROGRAMS += $(addprefix $(O)/tests/ptgen/programs/,longjmps-static switches-static)

PTGEN_PROGRAMS += $(O)/tests/ptgen/programs/exceptions-stripped
# Where there is a compiler for them.
RUSTC ?= rustc
PTGEN_PROGRAMS += $(if $(shell command -v $(RUSTC)),$(patsubst tests/ptgen/%.rs,$(O)/tests/ptgen/%,$(wildcard tests/ptgen/programs/*.rs)))

GO ?= go
PTGEN_PROGRAMS += $(if $(shell command -v $(GO)),$(patsubst tests/ptgen/%.go,$(O)/tests/ptgen/%,$(wildcard tests/ptgen/programs/*.go)))

# Files of their own, which a live test's probe for everybody who has mapped one is not in: QEMU reads code from them.
PTGEN_COPIES   := $(addprefix $(O)/tests/ptgen/programs/,cxx_service service signals tailcalls threads)
PTGEN_PROGRAMS += $(PTGEN_COPIES)
$(PTGEN_COPIES): $(O)/tests/ptgen/programs/%: $(O)/programs/%
	$(Q)mkdir -p $(@D) && cp $< $@

ptgen: $(PTGEN) $(PTGEN_PROGRAMS) $(PTGEN_LIBS)

$(PTGEN_OBJ) $(PTGEN_PLUGIN_OBJ) $(PTGEN_UNIT_OBJ) $(PTGEN_TESTS:=.o): ALL_CFLAGS += -Itests/ptgen

$(O)/tests/ptgen/ptgen: $(PTGEN_OBJ) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/tests/ptgen/libptgen.so: $(PTGEN_PLUGIN_OBJ)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) -shared -o $@ $^ -lZydis -lpthread

$(O)/tests/ptgen/programs/%: tests/ptgen/programs/%.c tests/ptgen/ptgen.mk | $(O)/.deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 $(PROGRAM_CFLAGS) -o $@ $< -Wl,-z,lazy

$(O)/tests/ptgen/programs/%-static: tests/ptgen/programs/%.c tests/ptgen/ptgen.mk | $(O)/.deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 $(PROGRAM_CFLAGS) -o $@ $< -static

$(O)/tests/ptgen/programs/%: tests/ptgen/programs/%.cc tests/ptgen/ptgen.mk | $(O)/.test-deps-ok
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=gnu++17 $(PROGRAM_CFLAGS) -o $@ $< $(PTGEN_LDFLAGS)

# No module, no network, and no C.
$(O)/tests/ptgen/programs/%: tests/ptgen/programs/%.go tests/ptgen/ptgen.mk
	$(call say,GO,$@)
	$(Q)mkdir -p $(@D) && GOCACHE=$(abspath $(O))/gocache GOPROXY=off GO111MODULE=off CGO_ENABLED=0 \
	    $(GO) build -o $@ $<

$(O)/tests/ptgen/programs/lib%.so: tests/ptgen/programs/lib/%.cc tests/ptgen/ptgen.mk | $(O)/.test-deps-ok
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=gnu++17 $(PROGRAM_CFLAGS) -fPIC -shared -o $@ $<

$(O)/tests/ptgen/programs/exceptions: PTGEN_LDFLAGS = -L$(@D) -lthrough -Wl,-rpath,'$$ORIGIN' -pthread -ldl
$(O)/tests/ptgen/programs/exceptions: $(O)/tests/ptgen/programs/libthrough.so

$(O)/tests/ptgen/programs/raises: OCAML_FLAGS := -g
# The compiler puts what it makes beside the sources.
$(O)/tests/ptgen/programs/raises $(O)/tests/ptgen/programs/raises-notrace: \
    $(wildcard tests/ptgen/programs/ocaml/*) tests/ptgen/ptgen.mk | $(O)/.test-deps-ok
	$(call say,OCAML,$@)
	$(Q)mkdir -p $@.d && cp $(filter %.ml %.c,$^) $@.d && cd $@.d && \
	    $(OCAMLOPT) $(OCAML_FLAGS) -o ../$(@F) raises_stubs.c raises.ml

$(O)/tests/ptgen/programs/%-stripped: $(O)/tests/ptgen/programs/%
	$(call say,STRIP,$@)
	$(Q)strip -o $@ $<

$(O)/tests/ptgen/programs/%: tests/ptgen/programs/%.rs tests/ptgen/ptgen.mk
	$(call say,RUSTC,$@)
	$(Q)mkdir -p $(@D) && env -u MAKEFLAGS -u MFLAGS $(RUSTC) -O -g -C force-frame-pointers=yes $(if $(filter 1,$(WERROR)),-D warnings) -o $@ $<

.PHONY: ptgen
-include $(PTGEN_OBJ:.o=.d) $(PTGEN_UNIT_OBJ:.o=.d) $(PTGEN_PLUGIN_OBJ:.o=.d)
