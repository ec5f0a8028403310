# SPDX-License-Identifier: MIT
# Decoded stacks against the true ones, program by program: the table in docs/stacks.md.
JUDGE := $(O)/tests/stacks/judge
$(JUDGE).o $(O)/tests/stacks/truth_read.o: ALL_CFLAGS += -Itests/stacks
$(JUDGE): $(O)/tests/stacks/truth_read.o

stacks: all programs ptgen $(JUDGE)
	$(Q)O=$(O) tests/stacks/run

.PHONY: stacks
-include $(JUDGE:=.d) $(O)/tests/stacks/truth_read.d
