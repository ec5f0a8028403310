# SPDX-License-Identifier: MIT
# make bundle: $(O)/bundle/mtbpf, one static executable, to copy to a machine that has none of the libraries.
BUNDLE := $(O)/bundle
# Debian has static libraries of these, but for the three that are embedded (embed.c), and for GnuTLS, which
# libmicrohttpd would serve https with (no_tls.c). One of them is incomplete in Debian 13 (eu_search.c).
BUNDLE_EMBEDDED := ipt Zydis cjson
# zlib comes first: a newer libelf.a has a crc32() of its own.
BUNDLE_LIBS = -lz $(shell pkg-config --static --libs libbpf libelf libdw zlib libzstd) -lmicrohttpd -liberty -lm -lpthread
library_file = $(shell $(CC) -print-file-name=$(1))

.PHONY: bundle
bundle: $(BUNDLE)/mtbpf
	@echo $<
$(BUNDLE)/.deps-ok: tests/deps.sh
	$(Q)$(TOOLS) tests/deps.sh -check bundle && mkdir -p $(@D) && touch $@

$(BUNDLE)/embed: deploy/bundle/embed.c | $(BUNDLE)/.deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O1 -o $@ $<

# The library under a name of this folder: the assembler's file names it.
$(BUNDLE)/%.s $(BUNDLE)/%.ld &: $(BUNDLE)/embed
	$(call say,EMBED,lib$*)
	$(Q)cp -L $(call library_file,lib$*.so) $(BUNDLE)/lib$*.so
	$(Q)cd $(BUNDLE) && ./embed $* lib$*.so $*.s $*.ld
$(BUNDLE)/%.o: $(BUNDLE)/%.s
	$(Q)cd $(BUNDLE) && $(CC) -c -o $*.o $*.s

# The functions of GnuTLS that libmicrohttpd calls where it serves https, which mtbpf never asks for.
$(BUNDLE)/no_tls.o: deploy/bundle/no_tls.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && nm -u $(call library_file,libmicrohttpd.a) 2>/dev/null | \
	    sed -nE '/ gnutls_global_(de)?init$$/d; s/^ +U (gnutls_.*)/NO_TLS(\1)/p' | sort -u >$(BUNDLE)/no_tls.h
	$(Q)$(CC) $(CFLAGS) -I$(BUNDLE) -c -o $@ $<

$(BUNDLE)/libeu_search.a: deploy/bundle/eu_search.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -D_GNU_SOURCE $(CFLAGS) $(MAPPED) -c -o $(@:.a=.o) $< && $(AR) rcs $@ $(@:.a=.o)

BUNDLE_OBJ := $(patsubst %,$(BUNDLE)/%.o,$(BUNDLE_EMBEDDED) no_tls)
$(BUNDLE)/mtbpf: $(CMD_OBJ) $(O)/libmtbpf.a $(BUNDLE_OBJ) $(BUNDLE)/libeu_search.a deploy/bundle/bundle.mk
	$(call say,LINK,$@)
	$(Q)$(CC) -static-pie $(LDFLAGS) -s -o $@ $(CMD_OBJ) $(O)/libmtbpf.a $(BUNDLE_OBJ) \
	    $(BUNDLE_EMBEDDED:%=-T $(BUNDLE)/%.ld) $(BUNDLE_LIBS) $(BUNDLE)/libeu_search.a
