/* SPDX-License-Identifier: MIT */
/* Probing functions of the test program itself, in a forked child: same addresses, same file. */
#ifndef MTBPF_TESTS_OWN_CODE_H
#define MTBPF_TESTS_OWN_CODE_H

#include <errno.h>
#include <link.h>
#include <stdint.h>

#include "capture/probe/uprobe_event.h"

/* An address in memory, and where in the file it comes from; err is 0 once found. */
struct own_code_search {
	uintptr_t address;
	uint64_t offset;
	int err;
};

static inline int own_code__visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct own_code_search *search = data;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD || search->address < start ||
		    search->address - start >= phdr->p_filesz)
			continue;
		search->offset = phdr->p_offset + (search->address - start);
		search->err = 0;
	}
	return 1; /* the program itself comes first: no further */
}

/* The probe of one address of this program in process pid. Returns a descriptor or -errno. */
static inline int own_code__probe(pid_t pid, uintptr_t address, bool on_return)
{
	struct own_code_search search = {.address = address, .err = -ENOENT};
	struct uprobe_spec spec = {.path = "/proc/self/exe", .pid = pid, .on_return = on_return};

	dl_iterate_phdr(own_code__visit, &search);
	if (search.err)
		return search.err;
	spec.offset = search.offset;
	return uprobe_event__open(&spec);
}

#endif
