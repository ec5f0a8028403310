# SPDX-License-Identifier: MIT
# A generator of Intel PT streams: a plugin for qemu-x86_64, and its driver (tests/ptgen/README).
PTGEN     := $(O)/tests/ptgen/ptgen $(O)/tests/ptgen/libptgen.so
PTGEN_OBJ := $(patsubst %.c,$(O)/%.o,tests/ptgen/ptgen.c tests/ptgen/convert.c)
# Loaded into a program of others: position-independent, and never with sanitizers.
PTGEN_PLUGIN_SRC := $(filter-out tests/ptgen/ptgen.c tests/ptgen/convert.c,$(wildcard tests/ptgen/*.c)) \
                    user/capture/soft/pt_packet.c user/capture/soft/pt_stream.c user/capture/soft/truth.c \
                    user/target/maps.c user/util/fs.c user/util/insn.c user/util/vec.c
PTGEN_PLUGIN_OBJ := $(PTGEN_PLUGIN_SRC:%.c=$(O)/pic/%.o)

ptgen: $(PTGEN)

$(PTGEN_OBJ) $(PTGEN_PLUGIN_OBJ): ALL_CFLAGS += -Itests/ptgen

$(O)/tests/ptgen/ptgen: $(PTGEN_OBJ) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/pic/%.o: %.c Makefile | $(O)/.deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out $(SANFLAGS),$(ALL_CFLAGS)) -fPIC -fvisibility=hidden -c -o $@ $<

$(O)/tests/ptgen/libptgen.so: $(PTGEN_PLUGIN_OBJ)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) -shared -o $@ $^ -lZydis -lpthread

.PHONY: ptgen
-include $(PTGEN_OBJ:.o=.d) $(PTGEN_PLUGIN_OBJ:.o=.d)
