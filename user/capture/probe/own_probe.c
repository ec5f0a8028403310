// SPDX-License-Identifier: MIT
#include "capture/probe/own_probe.h"

#include <errno.h>
#include <link.h>
#include <unistd.h>

#include "util/cleanup.h"

/* The instruction is one that the kernel emulates: nothing is stepped out of line. */
__attribute__((noinline, noipa)) void own_probe__hit(void)
{
	__asm__ volatile("nop");
}

struct search {
	uintptr_t address;
	uint64_t offset;
	int err;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;

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

int own_probe__spec_of(struct uprobe_spec *spec, uintptr_t address)
{
	struct search search = {.address = address, .err = -ENOENT};

	dl_iterate_phdr(visit, &search);
	*spec = (struct uprobe_spec){
		.path = "/proc/self/exe", .offset = search.offset, .pid = getpid()};
	return search.err;
}

int own_probe__spec(struct uprobe_spec *spec)
{
	return own_probe__spec_of(spec, (uintptr_t)own_probe__hit);
}

int own_probe__try(void)
{
	struct uprobe_group group = {.place = event_place__of_thread(gettid()), .leader = -1};
	_cleanup_close_ int fd = -1;
	struct uprobe_spec spec;
	uint64_t count;
	int err = own_probe__spec(&spec);

	if (err)
		return err;
	fd = uprobe_event__open_in_group(&spec, &group);
	if (fd < 0)
		return fd;
	own_probe__hit();
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return -EIO;
	return count == 1 ? 0 : -ENODATA;
}
