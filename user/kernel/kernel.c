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

#define OF_FILE(name)	 [SYS_##name] = {SYSCALL_PREFIX #name, true}
#define OF_NO_FILE(name) [SYS_##name] = {SYSCALL_PREFIX #name, false}

static const struct known {
	const char *selector;
	bool is_of_file;
} known[] = {
	OF_FILE(read),
	OF_FILE(write),
	OF_FILE(pread64),
	OF_FILE(pwrite64),
	OF_FILE(readv),
	OF_FILE(writev),
	OF_FILE(preadv),
	OF_FILE(pwritev),
	OF_FILE(preadv2),
	OF_FILE(pwritev2),
	OF_FILE(recvfrom),
	OF_FILE(sendto),
	OF_FILE(recvmsg),
	OF_FILE(sendmsg),
	OF_FILE(recvmmsg),
	OF_FILE(sendmmsg),
	OF_FILE(accept),
	OF_FILE(accept4),
	OF_FILE(connect),
	OF_FILE(shutdown),
	OF_FILE(close),
	OF_FILE(ioctl),
	OF_FILE(fcntl),
	OF_FILE(flock),
	OF_FILE(fsync),
	OF_FILE(fdatasync),
	OF_FILE(sync_file_range),
	OF_FILE(syncfs),
	OF_FILE(ftruncate),
	OF_FILE(fallocate),
	OF_FILE(fstat),
	OF_FILE(lseek),
	OF_FILE(getdents64),
	OF_FILE(sendfile),
	OF_FILE(splice),
	OF_FILE(tee),
	OF_FILE(vmsplice),
	OF_FILE(copy_file_range),
	OF_FILE(epoll_wait),
	OF_FILE(epoll_pwait),
	OF_FILE(epoll_pwait2),
	OF_FILE(epoll_ctl),
	OF_FILE(timerfd_settime),
	OF_FILE(io_uring_enter),
	OF_FILE(readahead),
	OF_FILE(fadvise64),
	OF_FILE(getsockopt),
	OF_FILE(setsockopt),
	OF_FILE(getsockname),
	OF_FILE(getpeername),
	OF_FILE(fchmod),
	OF_FILE(fchown),
	OF_FILE(fchdir),
	OF_FILE(timerfd_gettime),
	OF_FILE(inotify_add_watch),
	OF_FILE(getdents),
	OF_NO_FILE(execveat),
	OF_NO_FILE(kill),
	OF_NO_FILE(tgkill),
	OF_NO_FILE(tkill),
	OF_NO_FILE(socket),
	OF_NO_FILE(socketpair),
	OF_NO_FILE(bind),
	OF_NO_FILE(listen),
	OF_NO_FILE(dup),
	OF_NO_FILE(dup2),
	OF_NO_FILE(dup3),
	OF_NO_FILE(pipe),
	OF_NO_FILE(pipe2),
	OF_NO_FILE(eventfd2),
	OF_NO_FILE(timerfd_create),
	OF_NO_FILE(epoll_create1),
	OF_NO_FILE(inotify_init1),
	OF_NO_FILE(memfd_create),
	OF_NO_FILE(getpid),
	OF_NO_FILE(getppid),
	OF_NO_FILE(gettid),
	OF_NO_FILE(prctl),
	OF_NO_FILE(rt_sigaction),
	OF_NO_FILE(rt_sigprocmask),
	OF_NO_FILE(rt_sigreturn),
	OF_NO_FILE(sched_setaffinity),
	OF_NO_FILE(io_submit),
	OF_NO_FILE(io_uring_setup),
	OF_NO_FILE(link),
	OF_NO_FILE(linkat),
	OF_NO_FILE(symlink),
	OF_NO_FILE(symlinkat),
	OF_NO_FILE(chmod),
	OF_NO_FILE(fchmodat),
	OF_NO_FILE(chdir),
	OF_NO_FILE(mkdirat),
	OF_NO_FILE(utimensat),
	OF_NO_FILE(mlockall),
	OF_NO_FILE(munlock),
	OF_NO_FILE(setpriority),
	OF_NO_FILE(ioprio_set),
	OF_NO_FILE(futex),
	OF_NO_FILE(futex_waitv),
	OF_NO_FILE(poll),
	OF_NO_FILE(ppoll),
	OF_NO_FILE(select),
	OF_NO_FILE(pselect6),
	OF_NO_FILE(nanosleep),
	OF_NO_FILE(clock_nanosleep),
	OF_NO_FILE(pause),
	OF_NO_FILE(sched_yield),
	OF_NO_FILE(wait4),
	OF_NO_FILE(waitid),
	OF_NO_FILE(rt_sigsuspend),
	OF_NO_FILE(rt_sigtimedwait),
	OF_NO_FILE(restart_syscall),
	OF_NO_FILE(msgrcv),
	OF_NO_FILE(msgsnd),
	OF_NO_FILE(mq_timedreceive),
	OF_NO_FILE(mq_timedsend),
	OF_NO_FILE(semop),
	OF_NO_FILE(semtimedop),
	OF_NO_FILE(io_getevents),
	OF_NO_FILE(open),
	OF_NO_FILE(openat),
	OF_NO_FILE(openat2),
	OF_NO_FILE(creat),
	OF_NO_FILE(stat),
	OF_NO_FILE(lstat),
	OF_NO_FILE(newfstatat),
	OF_NO_FILE(statx),
	OF_NO_FILE(access),
	OF_NO_FILE(faccessat),
	OF_NO_FILE(readlink),
	OF_NO_FILE(rename),
	OF_NO_FILE(renameat2),
	OF_NO_FILE(unlink),
	OF_NO_FILE(unlinkat),
	OF_NO_FILE(mkdir),
	OF_NO_FILE(rmdir),
	OF_NO_FILE(truncate),
	OF_NO_FILE(sync),
	OF_NO_FILE(mmap),
	OF_NO_FILE(munmap),
	OF_NO_FILE(mremap),
	OF_NO_FILE(mprotect),
	OF_NO_FILE(madvise),
	OF_NO_FILE(msync),
	OF_NO_FILE(mlock),
	OF_NO_FILE(mincore),
	OF_NO_FILE(brk),
	OF_NO_FILE(membarrier),
	OF_NO_FILE(getrandom),
	OF_NO_FILE(process_vm_readv),
	OF_NO_FILE(clone),
	OF_NO_FILE(clone3),
	OF_NO_FILE(fork),
	OF_NO_FILE(vfork),
	OF_NO_FILE(execve),
	OF_NO_FILE(exit),
	OF_NO_FILE(exit_group),
	OF_NO_FILE(ptrace),
	OF_NO_FILE(perf_event_open),
	OF_NO_FILE(bpf),
};

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

static const struct known *find(int number)
{
	static const struct known none;

	return number >= 0 && (size_t)number < sizeof(known) / sizeof(known[0]) ? &known[number]
										: &none;
}

const char *syscall__name(int number)
{
	const char *selector = find(number)->selector;

	return selector ? selector + sizeof(SYSCALL_PREFIX) - 1 : NULL;
}

const char *syscall__selector(int number)
{
	return find(number)->selector;
}

bool syscall__is_of_file(int number)
{
	return find(number)->is_of_file;
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
 * The whole mapping, which starts with malloc's own header: advice on a part would split the
 * mapping, and realloc() could then only move it by copying.
 */
void huge_pages__use(void *memory)
{
	uintptr_t start = (uintptr_t)memory & -PAGE;
	uintptr_t end = ((uintptr_t)memory + malloc_usable_size(memory)) & -PAGE;

	if (end > start && end - start >= 2 * HUGE_PAGE)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Whole large pages: to take some of one apart would cost more than it gives. */
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

/* proc(5), /proc/stat: user nice system idle iowait irq softirq steal. */
static bool has_stolen(void)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long steal = 0;
	size_t len;

	if (fs__read("/proc/stat", &text, &len))
		return false;
	return sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) == 1 && steal;
}

static bool is_refused(void)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return !fs__read("/proc/cmdline", &text, &len) && strstr(text, "no-steal-acc");
}

struct steal_facts steal__facts(void)
{
	struct steal_facts facts = {.is_refused = is_refused(), .any_stolen = has_stolen()};
	uint32_t a, b, c, d, name[3];

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
	/* Xen's tell always (drivers/xen/time.c). */
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
