// SPDX-License-Identifier: MIT
#include "kernel/kernel.h"

#include <cpuid.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/page.h"

/* Parses the line [at, end), in the format of kernel/kallsyms.c: s_show(). */
static bool parse_line(const char *at, const char *end, struct kallsym *sym)
{
	char *behind;
	const char *tab;

	*sym = (struct kallsym){.address = strtoull(at, &behind, 16)};
	if (behind == at || end - behind < 4 || behind[0] != ' ' || behind[2] != ' ')
		return false;
	sym->type = behind[1];
	sym->name = behind + 3;
	tab = memchr(sym->name, '\t', (size_t)(end - sym->name));
	sym->name_len = (size_t)((tab ? tab : end) - sym->name);
	if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']') {
		sym->module = tab + 2;
		sym->module_len = (size_t)(end - 1 - sym->module);
	}
	return sym->name_len > 0;
}

bool kallsyms__next(const char **text, struct kallsym *sym)
{
	while (**text) {
		const char *at = *text, *end = strchrnul(at, '\n');

		*text = *end ? end + 1 : end;
		if (parse_line(at, end, sym))
			return true;
	}
	return false;
}

bool kallsyms__find(const char *text, const char *name, uint64_t *address)
{
	size_t len = strlen(name);
	struct kallsym sym;

	while (kallsyms__next(&text, &sym)) {
		if (sym.module || sym.name_len != len || memcmp(sym.name, name, len))
			continue;
		*address = sym.address;
		return true;
	}
	return false;
}

bool kallsym__is_code(const struct kallsym *sym)
{
	return sym->type && strchr("tTwW", sym->type);
}

/* The names of <sys/syscall.h>, which the Makefile lists. */
static const char *const syscall_selectors[] = {
#define NUMBER(name, number) [number] = SYSCALL_PREFIX #name,
#include "syscalls.h"
#undef NUMBER
};

/* System calls whose first argument is a file descriptor. */
/* clang-format off */
#define EACH_OF_FILE(X) \
	X(read) X(write) X(pread64) X(pwrite64) X(readv) X(writev) X(preadv) X(pwritev) \
	X(preadv2) X(pwritev2) X(recvfrom) X(sendto) X(recvmsg) X(sendmsg) X(recvmmsg) \
	X(sendmmsg) X(accept) X(accept4) X(connect) X(shutdown) X(close) X(ioctl) X(fcntl) \
	X(flock) X(fsync) X(fdatasync) X(sync_file_range) X(syncfs) X(ftruncate) X(fallocate) \
	X(fstat) X(lseek) X(getdents64) X(sendfile) X(splice) X(tee) X(vmsplice) \
	X(copy_file_range) X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) X(epoll_ctl) \
	X(timerfd_settime) X(io_uring_enter) X(readahead) X(fadvise64) X(getsockopt) \
	X(setsockopt) X(getsockname) X(getpeername) X(fchmod) X(fchown) X(fchdir) \
	X(timerfd_gettime) X(inotify_add_watch) X(getdents)
/* clang-format on */
#define MARK(name) [SYS_##name] = true,
static const bool of_file[] = {EACH_OF_FILE(MARK)};
#undef MARK

static const char *const kind_prefixes[KERNEL_PROBE_KINDS] = {
	[KERNEL_PROBE_SYSCALL] = SYSCALL_PREFIX,
	[KERNEL_PROBE_FUNCTION] = FUNCTION_PREFIX,
	[KERNEL_PROBE_TRACEPOINT] = TRACEPOINT_PREFIX,
	[KERNEL_PROBE_SIGNAL] = SIGNAL_PREFIX,
	[KERNEL_PROBE_EXIT] = EXIT_PREFIX,
	[KERNEL_PROBE_OOM] = OOM_PREFIX,
	[KERNEL_PROBE_BREAKPOINT] = JIT_PREFIX,
};

enum kernel_probe_kind kernel_probe_kind__of(const char *selector)
{
	for (int i = KERNEL_PROBE_NONE + 1; i < KERNEL_PROBE_KINDS; i++)
		if (!strncmp(selector, kind_prefixes[i], strlen(kind_prefixes[i])))
			return (enum kernel_probe_kind)i;
	return KERNEL_PROBE_NONE;
}

bool kernel_probe_kind__is_in(enum kernel_probe_kind kind, const char *selectors)
{
	while (selectors && *selectors) {
		selectors += strspn(selectors, ", ");
		if (kernel_probe_kind__of(selectors) == kind)
			return true;
		selectors = strchr(selectors, ',');
	}
	return false;
}

const char *syscall__selector(int number)
{
	return number >= 0 && (size_t)number <
				       sizeof(syscall_selectors) / sizeof(syscall_selectors[0])
		       ? syscall_selectors[number]
		       : NULL;
}

const char *syscall__name(int number)
{
	const char *selector = syscall__selector(number);

	return selector ? selector + sizeof(SYSCALL_PREFIX) - 1 : NULL;
}

bool syscall__is_of_file(int number)
{
	return number >= 0 && (size_t)number < sizeof(of_file) && of_file[number];
}

/* include/linux/proc_ns.h: PROC_PID_INIT_INO */
#define INITIAL_INO 0xeffffffcu

bool pid_namespace__is_own(uint64_t *dev, uint64_t *ino)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == INITIAL_INO)
		return false;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return true;
}

#define HUGE_PAGE ((uintptr_t)2 << 20)

void *huge_pages__alloc(size_t size)
{
	void *memory;

	if (size < HUGE_PAGE)
		return malloc(size ? size : 1);
	if (posix_memalign(&memory, HUGE_PAGE, size))
		return NULL;
	madvise(memory, size, MADV_HUGEPAGE);
	return memory;
}

/*
 * Advises for the whole mapping, which starts with malloc's own header: advice for a part would
 * split the mapping, and realloc() could then only move it by copying.
 */
void huge_pages__use(void *memory)
{
	uintptr_t start = (uintptr_t)memory & -PAGE;
	uintptr_t end = ((uintptr_t)memory + malloc_usable_size(memory)) & -PAGE;

	if (end > start && end - start >= 2 * HUGE_PAGE)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Only whole large pages: splitting one would cost more than it frees. */
void huge_pages__give_back(void *from, const void *to)
{
	uintptr_t start = ((uintptr_t)from + HUGE_PAGE - 1) & -HUGE_PAGE;
	uintptr_t end = (uintptr_t)to & -HUGE_PAGE;

	if (end > start)
		madvise((void *)start, end - start, MADV_DONTNEED);
}

/* CPUID 1 ECX: set by hypervisors, and by no CPU. */
#define CPUID_GUEST (1u << 31)
/* Documentation/virt/kvm/x86/cpuid.rst: KVM_FEATURE_STEAL_TIME */
#define KVM_STEAL_TIME (1u << 5)
#define LEAF_NAME      0x40000000
#define LEAF_KVM       0x40000001

struct steal_facts steal__facts(void)
{
	_cleanup_free_ char *command_line = NULL, *stat = NULL;
	struct steal_facts facts = {0};
	unsigned long long stolen = 0;
	uint32_t a, b, c, d, name[3];
	size_t len;

	facts.is_refused = !fs__read("/proc/cmdline", &command_line, &len) &&
			   strstr(command_line, "no-steal-acc");
	/* proc(5), /proc/stat: user nice system idle iowait irq softirq steal. */
	if (!fs__read("/proc/stat", &stat, &len))
		facts.any_stolen =
			sscanf(stat, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) == 1 &&
			stolen;
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return facts;
	facts.is_guest = c & CPUID_GUEST;
	if (!facts.is_guest)
		return facts;
	__cpuid(LEAF_NAME, a, name[0], name[1], name[2]);
	memcpy(facts.hypervisor, name, sizeof(name));
	__cpuid(LEAF_KVM, facts.kvm_features, b, c, d);
	return facts;
}

bool steal__is_told(const struct steal_facts *facts)
{
	if (!facts->is_guest || facts->any_stolen)
		return true;
	if (facts->is_refused)
		return false;
	/* Xen always reports stolen time (drivers/xen/time.c). */
	if (!strcmp(facts->hypervisor, "XenVMMXenVMM"))
		return true;
	return !strcmp(facts->hypervisor, "KVMKVMKVM") && facts->kvm_features & KVM_STEAL_TIME;
}

int cgroup__level(int fd)
{
	struct stat st, above;
	int level = 0, at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (at >= 0 && !fstat(at, &st)) {
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		close(at);
		at = up;
		if (up < 0 || fstat(up, &above) || above.st_dev != st.st_dev ||
		    above.st_ino == st.st_ino)
			break;
		level++;
	}
	if (at >= 0)
		close(at);
	return level;
}
