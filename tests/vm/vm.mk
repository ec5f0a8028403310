# Tests on kernels of our own, in VMs: tests/vm/README.
.PHONY: test-vm
test-vm: tests
	$(Q)O=$(O) tests/vm/run
