# SPDX-License-Identifier: MIT
# make install, DESTDIR= and prefix= (or PREFIX=) as everywhere.
bindir     ?= $(prefix)/bin
includedir ?= $(prefix)/include
datadir    ?= $(prefix)/share
docdir     ?= $(datadir)/doc/mtbpf
zshdir     ?= $(datadir)/zsh/site-functions
fishdir    ?= $(datadir)/fish/vendor_completions.d
unitdir    ?= $(prefix)/lib/systemd/system

# Files name the place where they and others are installed.
placed = sed -e 's|@prefix@|$(prefix)|g' -e 's|@includedir@|$(includedir)|g' -e 's|@version@|$(VERSION)|g'

install: all
	$(call say,INSTALL,$(DESTDIR)$(prefix))
	$(Q)install -D -m 755 $(O)/mtbpf $(DESTDIR)$(bindir)/mtbpf
	$(Q)install -D -m 644 include/mtbpf.h $(DESTDIR)$(includedir)/mtbpf.h
	$(Q)$(placed) include/mtbpf.pc.in >$(O)/mtbpf.pc
	$(Q)install -D -m 644 $(O)/mtbpf.pc $(DESTDIR)$(datadir)/pkgconfig/mtbpf.pc
	$(Q)install -D -m 644 $(O)/completion/mtbpf $(DESTDIR)$(datadir)/bash-completion/completions/mtbpf
	$(Q)install -D -m 644 $(O)/completion/_mtbpf $(DESTDIR)$(zshdir)/_mtbpf
	$(Q)install -D -m 644 $(O)/completion/mtbpf.fish $(DESTDIR)$(fishdir)/mtbpf.fish
	$(Q)sed -e 's|/usr/local/bin|$(bindir)|' deploy/systemd/mtbpf@.service >$(O)/mtbpf@.service
	$(Q)install -D -m 644 $(O)/mtbpf@.service $(DESTDIR)$(unitdir)/mtbpf@.service
	$(Q)install -D -m 644 deploy/systemd/web.conf $(DESTDIR)$(docdir)/examples/web.conf
	$(Q)install -d $(DESTDIR)$(docdir)/docs/user $(DESTDIR)$(docdir)/docs/dev
	$(Q)install -m 644 README.md CHANGELOG.md LICENSE $(DESTDIR)$(docdir)
	$(Q)install -m 644 docs/user/*.md docs/user/*.png $(DESTDIR)$(docdir)/docs/user
	$(Q)install -m 644 docs/dev/*.md $(DESTDIR)$(docdir)/docs/dev
	$(Q)install -d $(DESTDIR)$(datadir)/man/man1
	$(Q)for page in $(MADE_PAGES); do \
	    $(placed) $$page >$(DESTDIR)$(datadir)/man/man1/$${page##*/} || exit; done
	$(Q)[ -n "$(MADE_PAGES)" ] || echo "install: no man pages: scdoc was missing"

uninstall:
	rm -f $(DESTDIR)$(bindir)/mtbpf $(DESTDIR)$(includedir)/mtbpf.h $(DESTDIR)$(datadir)/pkgconfig/mtbpf.pc \
	    $(DESTDIR)$(datadir)/bash-completion/completions/mtbpf $(DESTDIR)$(zshdir)/_mtbpf \
	    $(DESTDIR)$(fishdir)/mtbpf.fish $(DESTDIR)$(unitdir)/mtbpf@.service \
	    $(addprefix $(DESTDIR)$(datadir)/man/man1/,$(notdir $(PAGES)))
	rm -rf $(DESTDIR)$(docdir)

# A Debian package, of what is built: $(O)/deb/mtbpf_VERSION_amd64.deb; DEBFULLNAME= and DEBEMAIL= say whose.
deb: all
	$(Q)rm -rf $(O)/deb
	$(Q)$(MAKE) --no-print-directory install DESTDIR=$(O)/deb/root prefix=/usr \
	    zshdir=/usr/share/zsh/vendor-completions
	$(Q)deploy/deb/build $(O)/deb $(VERSION)
