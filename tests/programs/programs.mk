# Sample targets. Built like ordinary services: optimised, with debug info and frame pointers.
PROGRAMS := $(patsubst tests/programs/%.c,$(O)/programs/%,$(wildcard tests/programs/*.c)) \
            $(patsubst tests/programs/%.cc,$(O)/programs/%,$(wildcard tests/programs/*.cc))

$(O)/programs/%: tests/programs/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fno-omit-frame-pointer -Wall -o $@ $< -pthread

$(O)/programs/%: tests/programs/%.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -O2 -g -fno-omit-frame-pointer -Wall -o $@ $< -pthread

programs: $(PROGRAMS)
