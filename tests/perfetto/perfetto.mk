# Trees for Perfetto to read back: tests/cli/perfetto.bats.
PERFETTO := $(O)/tests/perfetto/gen_trees

tests: $(PERFETTO)

-include $(PERFETTO:=.d)
