# What make trust needs beside the tests' own: tests/trust/run.
$(O)/tests/trust/fault.so: tests/trust/fault.c | $(O)/.test-deps-ok
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) \
	    -shared -fPIC -o $@ $< -ldl

.PHONY: trust
# The figures of docs/dev/trust.md: T seconds a fuzzer, TRIGGERS, ATTACHES, EVERY.
trust: tests $(O)/tests/trust/fault.so
	$(Q)O=$(O) tests/trust/run
