# SPDX-License-Identifier: MIT
# Man pages and completion: a program that is linked with the option tables puts their content into
# hand-written templates.
MANUAL_OBJ  := $(patsubst %.c,$(O)/%.o,$(wildcard user/manual/*.c))
PAGES       := $(patsubst docs/man/%.scd,$(O)/man/%.1,$(wildcard docs/man/*.scd))
COMPLETIONS := $(O)/completion/mtbpf $(O)/completion/_mtbpf $(O)/completion/mtbpf.fish

$(O)/manual: $(MANUAL_OBJ) $(filter-out %/main.o,$(CMD_OBJ)) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# The date of a page is that of the version, not of the build.
$(O)/man/%.1: docs/man/%.scd user/manual/tidy.awk $(O)/manual VERSION CHANGELOG.md
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D) && $(O)/manual <$< >$(@:.1=.scd)
	$(Q)SOURCE_DATE_EPOCH=$(RELEASE_EPOCH) scdoc <$(@:.1=.scd) >$(@:.1=.roff)
	$(Q)awk -f user/manual/tidy.awk $(@:.1=.roff) >$@

$(O)/completion/mtbpf: user/manual/completion.bash $(O)/manual
	$(call say,SHELL,$@)
	$(Q)mkdir -p $(@D) && $(O)/manual <$< >$@
$(O)/completion/_mtbpf: user/manual/completion.zsh $(O)/manual
	$(call say,SHELL,$@)
	$(Q)mkdir -p $(@D) && $(O)/manual <$< >$@
$(O)/completion/mtbpf.fish: user/manual/completion.fish $(O)/manual
	$(call say,SHELL,$@)
	$(Q)mkdir -p $(@D) && $(O)/manual <$< >$@

# Without scdoc there are no pages, and nothing else is missing.
MADE_PAGES := $(if $(shell command -v scdoc),$(PAGES))
all: $(MADE_PAGES) $(COMPLETIONS)

-include $(MANUAL_OBJ:.o=.d)
