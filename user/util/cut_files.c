// SPDX-License-Identifier: MIT
#include "util/cut_files.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "util/page.h"

static _Atomic uintptr_t first; /* 0: none */

/*
 * Where nobody has put a file's page there is one of zeroes from now on. mmap() is a bare system
 * call, but for errno.
 */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr, none = 0;
	int saved = errno;
	void *page = MAP_FAILED;

	if (info->si_code == BUS_ADRERR && at)
		page = mmap((void *)(at & -PAGE), PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (page == MAP_FAILED)
		sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	else
		atomic_compare_exchange_strong(&first, &none, at);
	errno = saved;
}

void cut_files__survive(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, NULL);
}

bool cut_files__any(void)
{
	return atomic_load(&first);
}

bool cut_files__first_in(const void *start, size_t size)
{
	uintptr_t at = atomic_load(&first);

	return at && at - (uintptr_t)start < size;
}
