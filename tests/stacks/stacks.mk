# SPDX-License-Identifier: MIT
# Decoded stacks against the true ones, program by program: the table in docs/dev/stacks.md.
JUDGE := $(O)/tests/stacks/judge
JUDGE_SHARED := $(addprefix $(O)/tests/stacks/,mistakes.o shown.o truth_read.o tree_walk.o verdict.o)
$(JUDGE).o $(JUDGE_SHARED): ALL_CFLAGS += -Itests/stacks
$(JUDGE): $(JUDGE_SHARED) $(O)/tests/unit/without_rule.o
# So that a rule can be taken out: tests/stacks/rules.
$(JUDGE): override LDFLAGS += -Wl,--wrap=rules__classify

stacks: all programs ptgen $(JUDGE)
	$(Q)O=$(O) tests/stacks/run

.PHONY: stacks
-include $(JUDGE:=.d) $(JUDGE_SHARED:.o=.d)
