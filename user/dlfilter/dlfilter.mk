# SPDX-License-Identifier: MIT
# What perf loads (perf script --dlfilter): a few stages. From the archive, so that it is linked with what it needs
# and no more.
$(O)/mtbpf-dlfilter.so: $(O)/user/dlfilter/dlfilter.o $(O)/libmtbpf.a user/dlfilter/dlfilter.mk
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,--as-needed,--no-undefined,--exclude-libs,ALL -o $@ \
	    $(filter-out %.mk,$^) $(LIBS)

-include $(O)/user/dlfilter/dlfilter.d
