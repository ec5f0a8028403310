# SPDX-License-Identifier: MIT
# What perf loads (perf script --dlfilter): a few stages.
DLFILTER_SRC := $(wildcard user/perf/*.c user/stack/*.c user/stack/*/*.c user/trace/*.c user/trace/*/*.c user/target/*.c user/target/*/*.c user/util/*.c user/kernel/*.c) \
                user/decode/branch.c user/decode/pt_note.c user/pipeline/output_name.c
DLFILTER_OBJ := $(DLFILTER_SRC:%.c=$(PIC_O)/%.o)

# From an archive, so that it is linked with what it needs and no more.
$(O)/pic/libmtbpf.a: $(DLFILTER_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/mtbpf-dlfilter.so: $(PIC_O)/user/dlfilter/dlfilter.o $(PIC_O)/libmtbpf.a user/dlfilter/dlfilter.mk
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,--as-needed,--no-undefined,--exclude-libs,ALL -o $@ \
	    $(filter-out %.mk,$^) $(LIBS)

-include $(DLFILTER_OBJ:.o=.d) $(PIC_O)/user/dlfilter/dlfilter.d
