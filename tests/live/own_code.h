/* SPDX-License-Identifier: MIT */
/* Probing functions of the test program itself, in a forked child: same addresses, same file. */
#ifndef MTBPF_TESTS_OWN_CODE_H
#define MTBPF_TESTS_OWN_CODE_H

#include <errno.h>
#include <stdint.h>

#include "capture/probe/uprobe_event.h"

/* The probe of one address of this program in process pid. Returns a descriptor or -errno. */
static inline int own_code__probe(pid_t pid, uintptr_t address, bool on_return)
{
	struct uprobe_spec spec;
	int err = own_probe__spec_of(&spec, address);

	spec.pid = pid;
	spec.on_return = on_return;
	return err ? err : uprobe_event__open(&spec);
}

#endif
