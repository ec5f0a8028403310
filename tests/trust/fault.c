// SPDX-License-Identifier: MIT
/*
 * Preloaded into mtbpf: lets one call fail. Calls are told apart by who made them, five callers up;
 * the first call from the FAULT_AT'th place fails, and is noted in the file FAULT_LOG; 0: none.
 * FAULT_KIND: memory (ENOMEM), files (EMFILE), kernel (of perf events and BPF: ENOMEM), writes
 * (ENOSPC), kill (no write fails: SIGKILL comes at it). Addresses have to be the same each time:
 * setarch -R. A program that mtbpf starts is left alone; what it forks is not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLERS 5
#define PLACES	65536 /* a power of two */

enum kind { KIND_NONE, KIND_MEMORY, KIND_FILES, KIND_KERNEL, KIND_WRITES, KIND_KILL };

static enum kind kind;
static unsigned long at, n_places;
static uint64_t places[PLACES];
static const char *log_path;
static char lock;
static __thread bool is_inside;

static void *next_of(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static enum kind kind_named(const char *name)
{
	static const char *const names[] = {"", "memory", "files", "kernel", "writes", "kill"};

	for (int i = KIND_MEMORY; i <= KIND_KILL; i++)
		if (name && !strcmp(name, names[i]))
			return (enum kind)i;
	return KIND_NONE;
}

static bool is_mtbpf(void)
{
	char path[256] = "";

	return readlink("/proc/self/exe", path, sizeof(path) - 1) > 6 &&
	       !strcmp(path + strlen(path) - 6, "/mtbpf");
}

__attribute__((constructor)) static void begin(void)
{
	void *primed[2]; /* It loads a library at its first call. */
	const char *text = getenv("FAULT_AT");

	backtrace(primed, 2);
	at = text ? strtoul(text, NULL, 10) : 0;
	log_path = getenv("FAULT_LOG");
	if (is_mtbpf() && log_path)
		kind = kind_named(getenv("FAULT_KIND"));
}

/* With nothing that is itself let fail. */
static void note(const char *what, unsigned long n)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s %lu\n", what, n);
	long fd = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (fd < 0)
		return;
	syscall(SYS_write, fd, line, (size_t)len);
	syscall(SYS_close, fd);
}

__attribute__((destructor)) static void end(void)
{
	is_inside = true;
	if (kind != KIND_NONE)
		note("places", n_places);
}

static bool is_new(uint64_t place)
{
	size_t i = place & (PLACES - 1);

	while (places[i] && places[i] != place)
		i = (i + 1) & (PLACES - 1);
	if (places[i] || n_places >= PLACES / 2)
		return false;
	places[i] = place;
	n_places++;
	return true;
}

static uint64_t place_of_caller(void **caller)
{
	void *callers[CALLERS + 3];
	int n = backtrace(callers, CALLERS + 3);
	uint64_t hash = 0xcbf29ce484222325;

	/* This, fails(), and the function that stands in. */
	for (int i = 3; i < n; i++)
		hash = (hash ^ (uint64_t)(uintptr_t)callers[i]) * 0x100000001b3;
	*caller = n > 3 ? callers[3] : NULL;
	return hash | 1;
}

/* What these do where they get no memory is their own doing: they end the program. */
static bool is_of_library(const void *caller)
{
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return false;
	return strstr(info.dli_fname, "/libdw") ||
	       (info.dli_sname && !strcmp(info.dli_sname, "fts_open"));
}

/* Whether this call is the one. */
__attribute__((noinline)) static bool fails(enum kind of)
{
	void *caller;
	bool is_it;

	if (kind != of || is_inside)
		return false;
	is_inside = true;
	while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
		;
	is_it = is_new(place_of_caller(&caller)) && n_places == at;
	__atomic_clear(&lock, __ATOMIC_RELEASE);
	if (is_it)
		note(is_of_library(caller) ? "failed library" : "failed", n_places);
	is_inside = false;
	return is_it;
}

static bool fails_with(enum kind of, int err)
{
	if (!fails(of))
		return false;
	errno = err;
	return true;
}

#define NEXT(type, name)                                                                           \
	static type next;                                                                          \
	if (!next)                                                                                 \
	next = (type)next_of(name)

typedef void *(*malloc_fn)(size_t);
typedef void *(*realloc_fn)(void *, size_t);
typedef int (*open_fn)(const char *, int, ...);
typedef int (*openat_fn)(int, const char *, int, ...);
typedef void *(*mmap_fn)(void *, size_t, int, int, int, off_t);
typedef long (*syscall_fn)(long, ...);
typedef ssize_t (*write_fn)(int, const void *, size_t);
typedef FILE *(*fopen_fn)(const char *, const char *);

extern void *__libc_calloc(size_t n, size_t size);

void *malloc(size_t size)
{
	NEXT(malloc_fn, "malloc");
	return fails_with(KIND_MEMORY, ENOMEM) ? NULL : next(size);
}

/* dlsym() itself needs it. */
void *calloc(size_t n, size_t size)
{
	return fails_with(KIND_MEMORY, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	NEXT(realloc_fn, "realloc");
	return fails_with(KIND_MEMORY, ENOMEM) ? NULL : next(old, size);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	NEXT(mmap_fn, "mmap");
	return fails_with(KIND_MEMORY, ENOMEM) ? MAP_FAILED
					       : next(addr, len, prot, flags, fd, offset);
}

static mode_t mode_of(va_list ap, int flags)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_of(ap, flags);
	va_end(ap);
	NEXT(open_fn, "open");
	return fails_with(KIND_FILES, EMFILE) ? -1 : next(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_of(ap, flags);
	va_end(ap);
	NEXT(openat_fn, "openat");
	return fails_with(KIND_FILES, EMFILE) ? -1 : next(dir, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	NEXT(fopen_fn, "fopen");
	return fails_with(KIND_FILES, EMFILE) ? NULL : next(path, mode);
}

ssize_t write(int fd, const void *data, size_t len)
{
	NEXT(write_fn, "write");
	if (fails(KIND_KILL))
		raise(SIGKILL);
	return fails_with(KIND_WRITES, ENOSPC) ? -1 : next(fd, data, len);
}

long syscall(long number, ...)
{
	va_list ap;
	long args[6];

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(ap, long);
	va_end(ap);
	NEXT(syscall_fn, "syscall");
	if ((number == SYS_perf_event_open || number == SYS_bpf) && fails_with(KIND_KERNEL, ENOMEM))
		return -1;
	return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
