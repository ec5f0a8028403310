# mtbpf: an eBPF trigger and Intel Processor Trace capture tool.
#
#   make            build/mtbpf            make demo       the main job, on a sample service
#   make deps       get what is missing    make test       what a person runs between two edits: minutes
#                                          make test-all   that, and VMs, sanitizers, fuzzers, Perfetto
#                                          make test-nightly   VM tests that rarely find anything
#   make bench      figures, as ratios     make fuzz T=60   the fuzzers, T seconds each
#   make test-san   every test with sanitizers      make coverage   which lines of user/ they run
#   make install DESTDIR= PREFIX=      make image   what a container is built from
#   make deb        a Debian package        make bundle   one static executable: build/bundle/mtbpf
#   make screenshots   the pictures in docs/user
#   make release    steps the version (STEP=patch|minor|major)
#   make trust      what docs/dev/trust.md says, tried      make test-distros   Debian 12, 13 and sid, in clean roots
#
#   O=DIR build folder   V=1 show commands   SAN=address,undefined   WERROR=1   SOURCE=pt|sample|soft|vm (demo)

# All CPUs, unless -j says otherwise.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

O       ?= build
# One name for a folder below this one, whatever it is called by: what was built says in its .d file what it is.
override O := $(patsubst $(CURDIR)/%,%,$(abspath $(O)))
PREFIX  ?= /usr/local
prefix  ?= $(PREFIX)
CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(shell PATH=$$PATH:/usr/sbin:/sbin command -v bpftool)
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' "$(1)" "$(2)")

VERSION := $(shell cat VERSION)
PKGS    := libbpf libelf libdw zlib libzstd libcjson libmicrohttpd
CFLAGS  ?= -O2 -g
LDFLAGS ?= -Wl,-z,relro,-z,now
WARN    := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wno-unused-parameter \
           $(if $(filter 1,$(WERROR)),-Werror)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
# What is missing is said by the check below, once and by name.
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
# The nearest that clang has to gcc's attribute noipa.
COMPAT  := $(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),-Dnoipa=noinline)
# Debug info names files as they are called here: what is built does not depend on the folder it is built in.
MAPPED  := -fdebug-prefix-map=$(abspath $(O))=build -fdebug-prefix-map=$(CURDIR)=.
# One set of objects for the program and for what others load (tests/ptgen). Hidden symbols are
# called directly, so that this costs decoding nothing.
PICFLAGS := -fPIC -fvisibility=hidden
# Other programs cannot load code that has sanitizers or counts lines: such a build has the plain build's.
MEASURED := $(SAN)$(findstring coverage,$(CFLAGS))
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DMTBPF_VERSION='"$(VERSION)"' $(WARN) $(CFLAGS) $(MAPPED) $(COMPAT) $(SANFLAGS) \
             -Iuser -Iinclude -I$(O)/gen $(PKG_CFLAGS) $(PICFLAGS) -MMD -MP
LIBS    := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lipt -lZydis -liberty -lm -lpthread

LIB_SRC  := $(filter-out user/main.c $(wildcard user/cmd_*.c user/manual/*.c),$(wildcard user/*.c user/*/*.c user/*/*/*.c))
CMD_SRC  := $(wildcard user/main.c user/cmd_*.c)
LIB_OBJ  := $(LIB_SRC:%.c=$(O)/%.o)
CMD_OBJ  := $(CMD_SRC:%.c=$(O)/%.o)
UNIT     := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/unit/*/test_*.c tests/live/test_*.c))
BENCH    := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/bench/bench_*.c))

.PHONY: all deps test test-all test-rest test-unit test-golden test-cli test-live demo bench bench-trigger bench-sample bench-services bench-decode bench-whole \
        bench-growth bench-recordings causes screenshots install uninstall deb image clean \
        format format-check vmlinux programs tests proven
.DELETE_ON_ERROR:
.SECONDARY:

all: $(O)/mtbpf

# README's table of what has been proven where, from the bundles that 'mtbpf selftest -bundle' has made.
proven:
	$(Q)tests/bundles/proven README.md

# What selftest finds in its own program, also when that is stripped.
SELFTEST_SYMBOLS := -Wl,--export-dynamic-symbol=mtbpf_hit -Wl,--export-dynamic-symbol='mtbpf_selftest_*'
$(O)/mtbpf: $(CMD_OBJ) $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) $(SELFTEST_SYMBOLS) -o $@ $^ $(LIBS)

# It measures what it costs to follow its own frame pointers.
$(O)/user/capture/sample/sample_cost.o: ALL_CFLAGS += -fno-omit-frame-pointer
# Its functions have clean-ups that run when they are unwound, and are unwound by frame pointers, too. Each is in one
# piece: in a stripped program a second piece has no name.
$(patsubst %,$(O)/user/selftest/%.o,programs noted): ALL_CFLAGS += -fexceptions -fno-omit-frame-pointer \
    $(if $(findstring clang,$(CC)),,-fno-reorder-blocks-and-partition)
$(O)/libmtbpf.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/%.o: %.c Makefile VERSION | $(O)/.deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -c -o $@ $<

# The skeleton is made anew only when the BPF object changes.
$(O)/gen/%.skel.h: $(O)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< > $@

$(O)/bpf/%.bpf.o: bpf/%.bpf.c | $(O)/.deps-ok
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D) && $(CLANG) -g -O2 $(MAPPED) -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -Wall \
	    $(if $(filter 1,$(WERROR)),-Werror) -Ivmlinux -Iinclude -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# Whatever in user/trigger includes a skeleton waits for all of them.
SKELETONS := $(patsubst bpf/%.bpf.c,$(O)/gen/%.skel.h,$(wildcard bpf/*.bpf.c))
$(patsubst %.c,$(O)/%.o,$(wildcard user/trigger/*.c)): | $(SKELETONS)

# The commit, where this is a clone of its own: of the one file that tells it. By a name of its own first:
# builds with sanitizers share this folder.
$(O)/gen/commit.h: FORCE
	$(Q)mkdir -p $(@D) && git_of=$$(git rev-parse --show-cdup 2>/dev/null || echo none) && \
	    echo "#define MTBPF_COMMIT \"$$([ -n "$$git_of" ] || git rev-parse --short=12 HEAD)\"" >$@.$$$$ && \
	    { cmp -s $@.$$$$ $@ && rm $@.$$$$ || mv $@.$$$$ $@; }
$(O)/user/cmd_version.o: $(O)/gen/commit.h
# The names of system calls: NUMBER(read, 0)
$(O)/gen/syscalls.h:
	$(Q)mkdir -p $(@D) && echo '#include <sys/syscall.h>' | $(CC) -E -dM - | \
	    sed -nE 's/^#define __NR_([a-z0-9_]+) ([0-9]+)$$/NUMBER(\1, \2)/p' | sort >$@
$(O)/user/kernel/kernel.o: | $(O)/gen/syscalls.h
# Phony: as a file that is missing, .SECONDARY would let it be.
.PHONY: FORCE
FORCE:

vmlinux: ## the full kernel types, to look things up in; the build uses vmlinux/vmlinux.h
	$(Q)mkdir -p $(O) && $(BPFTOOL) btf dump file /sys/kernel/btf/vmlinux format c > $(O)/vmlinux.full.h
	@echo $(O)/vmlinux.full.h

TOOLS = CC="$(CC)" CXX="$(CXX)" CLANG="$(CLANG)" BPFTOOL="$(BPFTOOL)" RUSTC="$(RUSTC)" GO="$(GO)"

deps:
	$(Q)$(TOOLS) tests/deps.sh

# Checked once in a build folder: what the build needs, and what its tests need beyond that.
$(O)/.deps-ok: tests/deps.sh
	$(Q)$(TOOLS) tests/deps.sh -check && mkdir -p $(O) && touch $@
$(O)/.test-deps-ok: tests/deps.sh
	$(Q)$(TOOLS) tests/deps.sh -check test && mkdir -p $(O) && touch $@
$(UNIT:=.o): | $(O)/.test-deps-ok
# cmocka.h by way of ours.
$(O)/tests/%.o: ALL_CFLAGS += -Itests/cmocka
# What several of their folders share. What they assert takes twice as long to optimise as to compile, and next to nothing
# to run; -Og still warns of what may be uninitialised.
$(filter $(O)/tests/unit/%,$(UNIT:=.o)): ALL_CFLAGS += -Itests/unit -I$(O) -Og
# The texts of tests/messages, for tests/unit/said.h.
$(filter $(O)/tests/unit/%,$(UNIT:=.o)): | $(O)/gen/messages.h
$(O)/gen/messages.h: tests/messages
	$(Q)mkdir -p $(@D) && sed -nE -e '/^[a-z0-9-]+: /!d; s/[\\"]/\\&/g; s/%\.\*s/%s/g; s/^([a-z0-9-]+): (.*)/\1 "\2"/; h' \
	    -e 's/ .*//; y/-/_/; G; s/^([^\n]*)\n[^ ]* /#define TEXT_\1 /; p' $< >$@

# It reads its own debug info, also where others are built with less.
$(O)/tests/unit/elf/test_arguments.o: ALL_CFLAGS += -g

# They have a function__source() of their own, which stands in for the library's.
$(filter $(O)/tests/unit/trace/%,$(UNIT)) $(O)/tests/perfetto/gen_trees: override LDFLAGS += -Wl,-z,muldefs

# So that a rule can be taken out: tests/cli/rules.bats.
RULE_TESTS := $(filter $(O)/tests/unit/rules/% $(O)/tests/unit/stack/test_stack%,$(UNIT))
$(RULE_TESTS): $(O)/tests/unit/without_rule.o
$(RULE_TESTS): override LDFLAGS += -Wl,--wrap=rules__classify

# ---- tests
include tests/programs/programs.mk tests/perfetto/perfetto.mk tests/vm/vm.mk tests/ptgen/ptgen.mk

# What several live tests share.
LIVE_SHARED := $(patsubst %.c,$(O)/%.o,$(filter-out tests/live/test_%,$(wildcard tests/live/*.c)))
$(filter $(O)/tests/live/%,$(UNIT)): $(LIVE_SHARED)

# libipt's block decoder, and the program that compares ours with it.
ORACLE_OBJ := $(patsubst %,$(O)/tests/oracle/%.o,oracle emit)
ORACLE_USERS := $(addprefix $(O)/tests/,oracle/compare unit/decode/test_decode \
    unit/decode/test_decode_damage unit/decode/test_decode_errata)
$(ORACLE_USERS): $(ORACLE_OBJ)
$(ORACLE_OBJ) $(ORACLE_USERS:=.o): ALL_CFLAGS += -Itests

include tests/fuzz/fuzz.mk tests/san.mk tests/stacks/stacks.mk tests/trust/trust.mk \
        user/manual/manual.mk

$(O)/tests/%: $(O)/tests/%.o $(O)/libmtbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
	    -lcmocka $(LIBS)
.PRECIOUS: $(O)/tests/%.o $(O)/bpf/%.bpf.o

tests: all $(UNIT) $(BENCH) $(O)/tests/trust/fault.so $(O)/tests/oracle/compare $(O)/tests/stacks/judge programs $(if $(MEASURED),,ptgen)

# From nothing, like the demo. What was installed is seen only by a make that starts after it.
test:
	$(Q)$(TOOLS) tests/deps.sh -check test 2>/dev/null || $(MAKE) --no-print-directory deps
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)$(if $(KEEP_TRACES),rm -rf $(KEEP_TRACES))
	$(Q)O=$(O) tests/run quick:live quick:cli golden unit

# The rest of test-all: tests tagged slow, VMs, the tests in builds with sanitizers, the fuzzers for FUZZ_SECONDS
# each, and Perfetto reading the traces that `make test KEEP_TRACES=DIR` has left. In a new clone, where nobody knows
# how long each file takes, they start in this order: the longest first.
FUZZ_SECONDS ?= 3
test-rest: export TRACES ?= $(abspath $(O))/traces
test-rest:
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)$(MAKE) --no-print-directory asan tsan
	$(Q)O=$(O) T=$(FUZZ_SECONDS) tests/run -j 3 vm slow:live slow:cli asan:fuzz perfetto \
	    $(ASAN_TESTS:%=asan:%) $(TSAN_TESTS:%=tsan:%) slow:golden slow:unit
test-all:
	$(Q)$(MAKE) --no-print-directory test KEEP_TRACES=$(abspath $(O))/traces
	$(Q)$(MAKE) --no-print-directory test-rest
test-unit test-golden test-cli test-live: test-%: tests
	$(Q)O=$(O) tests/run $*

# Seven minutes of CPU time; INSTRUCTIONS=1e7 GROWTH='4e6 16e6' takes one.
bench:
	$(Q)for part in trigger sample decode whole growth; do $(MAKE) --no-print-directory -j1 bench-$$part || exit; done
bench-trigger: all $(BENCH) programs
	$(Q)$(O)/tests/bench/bench_trigger
# What -source sample costs the target: recorder on against off.
# Rows for docs/user/sources.md; takes two minutes.
bench-sample: $(O)/tests/bench/bench_sample $(O)/tests/bench/bench_lookback $(O)/tests/bench/bench_idle_cpu
	$(Q)$(O)/tests/bench/bench_sample 2>/dev/null
	$(Q)$(O)/tests/bench/bench_lookback
	$(Q)$(O)/tests/bench/bench_idle_cpu
# What it costs services: ping-pong, PostgreSQL, redis, Go; takes five minutes.
bench-services: all
	$(Q)O=$(O) tests/bench/services
# Intel PT of real programs to measure decoders on, up to 1e9 instructions each: $(O)/bench.
INSTRUCTIONS ?= 1e8
bench-recordings: ptgen programs
	$(Q)O=$(O) tests/bench/recordings $(INSTRUCTIONS)
	$(Q)O=$(O) tests/bench/recordings -timing tsc $(INSTRUCTIONS) cpython
# Packets to branches, against libipt's block decoder.
bench-decode: all $(BENCH) bench-recordings
	$(Q)$(O)/tests/bench/bench_decode $(O)/bench/*-$(INSTRUCTIONS)-*.mtbpf
# A recording to a trace, against perf script.
bench-whole: all $(BENCH) bench-recordings
	$(Q)$(O)/tests/bench/bench_whole $(O)/mtbpf $(O)/bench/*-$(INSTRUCTIONS)-*.mtbpf
# How that grows with the recording: 1 to 250 MB of one program, which has little code and many calls.
GROWTH ?= 4e6 16e6 64e6 250e6 1e9
bench-growth: all $(BENCH) ptgen programs
	$(Q)for n in $(GROWTH); do O=$(O) tests/bench/recordings $$n sqlite3; done | \
	    xargs -r $(O)/tests/bench/bench_whole -curve $(O)/mtbpf

# Real services with a planted cause each: how often the report names it. RUNS of each; CAUSES="redis go.mutex"
# are some. Installs Debian's packages of these services.
RUNS ?= 20
causes: all programs
	$(Q)O=$(O) tests/causes/run -runs $(RUNS) $(CAUSES)

demo:
	$(Q)O=$(O) SOURCE=$(SOURCE) tests/demo.sh

# The pictures in docs/user, as a browser draws them; needs chromium, node and npm. The page's captures need root.
screenshots: demo
	$(Q)O=$(O) tests/perfetto/screenshot $(O)/demo.fxt docs/user/demo.png
	$(Q)rm -rf $(O)/pattern && CAPTURES=100 KEEP=$(O)/pattern O=$(O) tests/trust/pattern
	$(Q)tests/perfetto/page_shot $(O)/pattern/report.html docs/user/report.png docs/user/report-capture.png docs/user/report-phone.png

include deploy/install.mk deploy/release.mk deploy/bundle/bundle.mk

# What a container's image is made of, without a registry: docker build -t mtbpf build/image
image: $(O)/mtbpf
	$(Q)rm -rf $(O)/image && mkdir -p $(O)/image && deploy/image-root $< $(O)/image/root
	$(Q)cp deploy/Containerfile $(O)/image && echo "$(O)/image: docker build -t mtbpf $(O)/image"

clean:
	rm -rf $(O)

FORMAT_FILES = $(shell git ls-files '*.c' '*.h' '*.cc' | grep -v '^vmlinux/')
format:
	clang-format -i $(FORMAT_FILES)
format-check:
	$(Q)clang-format --dry-run --Werror $(FORMAT_FILES) && echo "format: ok"

-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(UNIT:=.d) $(BENCH:=.d) $(ORACLE_OBJ:.o=.d) $(wildcard $(O)/bpf/*.d \
    $(O)/tests/live/*.d)
