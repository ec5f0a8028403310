# Tests on kernels of our own, in VMs: tests/vm/README.
VM_TESTS := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/vm/test_*.c))

.PHONY: test-vm test-nightly
tests: $(VM_TESTS)
test-vm: tests
	$(Q)O=$(O) tests/run vm
# What takes long and rarely finds anything: make test-all leaves it out.
test-nightly: tests
	$(Q)O=$(O) tests/vm/run -nightly

$(VM_TESTS:=.o): | $(O)/.test-deps-ok
-include $(VM_TESTS:=.d)
