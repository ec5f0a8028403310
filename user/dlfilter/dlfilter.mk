# SPDX-License-Identifier: MIT
# What perf loads (perf script --dlfilter): a few stages, position-independent, never with sanitizers.
# Of its own objects, since all of mtbpf is measured to decode more slowly that way.
DLFILTER_SRC := $(wildcard user/perf/*.c user/stack/*.c user/stack/*/*.c user/trace/*.c user/trace/*/*.c user/target/*.c user/target/*/*.c user/util/*.c user/kernel/*.c) \
                user/decode/branch.c user/decode/pt_note.c user/pipeline/output_name.c
DLFILTER_OBJ := $(DLFILTER_SRC:%.c=$(O)/pic/%.o) $(O)/pic/user/dlfilter/dlfilter.o

# From an archive, so that it is linked with what it needs and no more.
$(O)/pic/libmtbpf.a: $(filter-out %/dlfilter.o,$(DLFILTER_OBJ))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/mtbpf-dlfilter.so: $(O)/pic/user/dlfilter/dlfilter.o $(O)/pic/libmtbpf.a user/dlfilter/dlfilter.mk
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,--as-needed,--no-undefined,--exclude-libs,ALL -o $@ \
	    $(filter-out %.mk,$^) $(LIBS)

-include $(DLFILTER_OBJ:.o=.d)
