# Tests on kernels of our own, in VMs: tests/vm/README.
VM_TESTS := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/vm/test_*.c))

.PHONY: test-vm
tests: $(VM_TESTS)
test-vm: tests
	$(Q)O=$(O) tests/run vm

$(VM_TESTS:=.o): | $(O)/.test-deps-ok
-include $(VM_TESTS:=.d)
