# Sample targets. Built like ordinary services: optimised, with debug info and frame pointers.
PROGRAMS := $(patsubst tests/programs/%.c,$(O)/programs/%,$(wildcard tests/programs/*.c)) \
            $(patsubst tests/programs/%.cc,$(O)/programs/%,$(wildcard tests/programs/*.cc))
# Without a dynamic loader, which a stepper would spend ten seconds in.
PROGRAMS += $(addprefix $(O)/programs/,crash-static library-static service-static thread_exec-static)
PLUGINS  := $(patsubst tests/programs/plugin/%.c,$(O)/programs/lib%.so,$(wildcard tests/programs/plugin/*.c))

PROGRAM_CFLAGS = -O2 -g -Iinclude -fno-omit-frame-pointer -Wall -Wextra -Wno-unused-parameter \
                 $(if $(filter 1,$(WERROR)),-Werror)
# Lazy, whatever the distribution's default is: a first call through the PLT is one of the things to trace.
PROGRAM_LDFLAGS = -Wl,-z,lazy -Wl,-rpath,'$$ORIGIN' -pthread -ldl

# As distributions have built them for years.
$(O)/programs/nofp $(O)/programs/sorts $(O)/programs/librelay.so: PROGRAM_CFLAGS += -fomit-frame-pointer
$(O)/programs/nofp: $(O)/programs/librelay.so
$(O)/programs/host: $(O)/programs/libsays.so $(O)/programs/libsays_too.so
$(O)/programs/nofp: PROGRAM_LDFLAGS += -L$(O)/programs -lrelay

$(O)/programs/%: tests/programs/%.c $(wildcard tests/programs/*.h) tests/programs/programs.mk | $(O)/.deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(PROGRAM_CFLAGS) -o $@ $< $(PROGRAM_LDFLAGS)

$(O)/programs/%-static: tests/programs/%.c $(wildcard tests/programs/*.h) tests/programs/programs.mk | $(O)/.test-deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(PROGRAM_CFLAGS) -static -o $@ $< -pthread

$(O)/programs/%: tests/programs/%.cc $(wildcard tests/programs/*.h) tests/programs/programs.mk | $(O)/.test-deps-ok
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=gnu++17 $(PROGRAM_CFLAGS) -o $@ $< $(PROGRAM_LDFLAGS)

$(O)/programs/lib%.so: tests/programs/plugin/%.c tests/programs/programs.mk | $(O)/.test-deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(PROGRAM_CFLAGS) -fPIC -shared -o $@ $< -Wl,-z,lazy

# Only where there is Go.
GO ?= go
GO_PROGRAMS := $(if $(shell command -v $(GO)),$(patsubst tests/programs/%.go,$(O)/programs/%,$(wildcard tests/programs/*.go)) \
                 $(addprefix $(O)/programs/,go_waits-stripped go_waits-pie go_waits-pie-stripped))
$(O)/programs/go_waits-stripped: GO_FLAGS = -ldflags '-s -w'
$(O)/programs/go_waits-pie: GO_FLAGS = -buildmode=pie
$(O)/programs/go_waits-pie-stripped: GO_FLAGS = -buildmode=pie -ldflags '-s -w'
# Otherwise both compile Go's library as position-independent code, at the same time.
$(O)/programs/go_waits-pie-stripped: | $(O)/programs/go_waits-pie
GO_BUILD = mkdir -p $(@D) && GOCACHE=$(abspath $(O))/gocache GOPROXY=off GO111MODULE=off \
           CGO_ENABLED=0 $(GO) build $(GO_FLAGS) -o $@ $<
$(O)/programs/%: tests/programs/%.go tests/programs/programs.mk
	$(call say,GO,$@)
	$(Q)$(GO_BUILD)
$(O)/programs/go_waits-%: tests/programs/go_waits.go tests/programs/programs.mk
	$(call say,GO,$@)
	$(Q)$(GO_BUILD)

# Only where there is OCaml. The compiler writes beside its source, so that it gets a copy.
OCAML_PROGRAMS := $(if $(shell command -v ocamlopt),$(patsubst tests/programs/%.ml,$(O)/programs/%,$(wildcard tests/programs/*.ml)))
$(O)/programs/%: tests/programs/%.ml tests/programs/programs.mk
	$(call say,OCAML,$@)
	$(Q)mkdir -p $(@D) $(O)/ocaml && cp $< $(O)/ocaml && ocamlopt -g -o $@ unix.cmxa $(O)/ocaml/$*.ml

programs: $(PROGRAMS) $(PLUGINS) $(GO_PROGRAMS) $(OCAML_PROGRAMS)
